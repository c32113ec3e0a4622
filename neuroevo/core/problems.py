"""Values as TOML writes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to `word`, or None when none is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1)
    return near[0] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?' for the known word nearest to `word`, or '' when none is near."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


_TAGS = ("number", "int", "str", "ConstantSchedule", "LinearSchedule", "ExponentialSchedule")  # of schedules


_TAGS += ("adam", "sgd")  # of optimizers


_WORDS = {  # pydantic's and ours; the last two are the beginnings of many messages
    "Input should be greater than or equal to ": "at least ",
    "Input should be greater than ": "more than ",
    "Input should be less than or equal to ": "at most ",
    "Input should be less than ": "less than ",
    "Input should be ": "",
    "String should have ": "",
}


def value_problem(section: str, detail: Mapping[str, Any]) -> str:
    """One of pydantic's errors about a section."""
    where = [str(part) for part in detail["loc"] if part not in _TAGS]
    key = ".".join([section, *where])
    if detail["type"] == "unexpected_keyword_argument":
        return f"{key} = {inline(detail['input'])}: there is no such key"
    if detail["type"] == "missing":
        return f"{key}: missing, expected a value"
    expected = detail["msg"].removeprefix("Value error, ")
    for theirs, ours in _WORDS.items():
        if expected.startswith(theirs):
            expected = f"expected {ours}{expected.removeprefix(theirs)}"
            break
    if not where:
        separator = "." if " = " in expected.partition(":")[0] else ": "
        return f"{key}{separator}{expected}"
    return f"{key} = {inline(detail['input'])}: {expected}"
