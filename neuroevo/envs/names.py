"""What the families of environments share: how names are compared, and how options are written for the native code."""

from __future__ import annotations

import re


def key_of(name: str) -> str:
    """What of a name decides: its letters and digits, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def option_text(value: object) -> str:
    """An option's value as the native code reads it."""
    if isinstance(value, tuple):
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
