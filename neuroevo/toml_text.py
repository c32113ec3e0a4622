"""Values as TOML writes them."""

from __future__ import annotations

from typing import Any

import tomli_w


def said(value: Any) -> str:
    """As in a sentence: text as it is, anything else as TOML writes it."""
    return value if isinstance(value, str) else inline(value)


def inline(value: Any) -> str:
    """`value` on one line; what TOML has no word for as Python writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(inline, value)) + "]"
    try:
        return tomli_w.dumps({"v": value}).removeprefix("v = ").strip()
    except TypeError:
        return repr(value)
