"""What is wrong with a configuration, as lines that begin with the key: `section.key = value: expected ...`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neuroevo import legacy
from neuroevo.errors import nearest
from neuroevo.toml_text import inline

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


def respell(
    table: Mapping[str, Any], section: str, keys: Mapping[str, Sequence[str]], problems: list[str], where: str
) -> dict[str, Any]:
    """The part of `table` that a configuration knows, after a line in `problems` for each key that it does not.

    section: whose table it is; "" for the file itself, whose keys are the sections. keys: of each section. where: what
    the section's keys are called. A misspelt key counts as what was probably meant: one mistake, one line.
    """
    own = list(keys) if section == "" else keys[section]
    known = {key: value for key, value in table.items() if key in own}
    for key, value in table.items():
        if key in own:
            continue
        meant, hint = _suggestion(key, section, keys, own)
        name = key if section == "" else f"{section}.{key}"
        said = name if isinstance(value, Mapping) else f"{name} = {inline(value)}"
        kind = "section" if section == "" else "key"
        problems.append(f"{said}: there is no such {kind}{hint} ({where}: {', '.join(own)})")
        if meant in own:
            known.setdefault(meant, value)
    return known


def _suggestion(key: str, section: str, keys: Mapping[str, Sequence[str]], own: Iterable[str]) -> tuple[str, str]:
    """What was probably meant by a key of a section, as the key there, and '; did you mean X?'; or two ''.

    Known are the section's own keys, those of other sections, and the 2018 code's.
    """
    suggestions = {name: (ours, f"{ours}, the 2018 code's {name}") for name, ours in legacy.KEYS.items()}
    for other, names in keys.items():
        if other != section:
            suggestions |= {name: (f"{other}.{name}", f"{other}.{name}") for name in names if name != "name"}
    suggestions |= {name: (name, name) for name in own}
    near = nearest(key, suggestions)
    if near is None:
        return "", ""
    meant, text = suggestions[near]
    return meant.removeprefix(f"{section}."), f"; did you mean {text}?"


def key_of(problem: str) -> str:
    """The key that a line begins with."""
    return re.split(r"[ :,]", problem, maxsplit=1)[0]


def in_their_words(problem: str, names: Mapping[str, str]) -> str:
    """The line with its key as its author wrote it; names: theirs for ours."""
    key = key_of(problem)
    for ours, theirs in names.items():
        if key == ours or key.startswith(f"{ours}."):
            return theirs + problem.removeprefix(ours)
    return problem
