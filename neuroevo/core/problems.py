"""Problems of a configuration as objects: the key, its value, and what was expected instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from textwrap import indent
from typing import Any, Final

import tomli_w
from pydantic import ValidationError

from neuroevo.core.errors import UserError


class NoValue(Enum):
    """Type of NO_VALUE. None cannot take its place, since a key may have the value None."""

    NO_VALUE = "no value"


NO_VALUE: Final = NoValue.NO_VALUE


@dataclass(frozen=True)
class Problem:
    """One problem of a configuration. Its text is `key = value: reason`, on one line.

    Attributes:
        key: The key, such as "algorithm.sigma"; in another program's file, that program's name for it. "" if the
            problem does not concern a single key; the reason is then a complete sentence.
        reason: The expected value, such as "expected more than 0".
        value: The given value; NO_VALUE if it is missing or not informative.
    """

    key: str
    reason: str
    value: Any = NO_VALUE

    def __str__(self) -> str:
        if not self.key:
            return self.reason
        where = self.key if self.value is NO_VALUE else f"{self.key} = {inline(self.value)}"
        return f"{where}: {self.reason}"

    def renamed(self, names: Mapping[str, str]) -> Problem:
        """Return the same problem with its key renamed.

        Args:
            names: New names of keys and tables by old name; renaming a table renames its keys. The first match applies.
        """
        for old, new in names.items():
            if self.key == old or self.key.startswith(f"{old}."):
                return replace(self, key=new + self.key.removeprefix(old))
        return self


class ConfigError(UserError):
    """A configuration has problems; the message lists all of them.

    Attributes:
        problems: All problems, at least one.
        source: Source of the problems, such as a file's name; "" where it is obvious.
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)

    def __str__(self) -> str:
        count = len(self.problems)
        if not self.source and count == 1:
            return str(self.problems[0])
        heading = f"{count} problem{'s' if count > 1 else ''}{f' in {self.source}' if self.source else ''}:"
        return "\n".join([heading, *(indent(str(problem), "  ") for problem in self.problems)])


def refuse(problems: Iterable[Problem], source: str = "") -> None:
    """Raise an error if there are problems.

    Args:
        problems: The problems; may be empty.
        source: Source of the problems, such as a file's name.

    Raises:
        ConfigError: There are problems; the error contains all of them.
    """
    found = tuple(problems)
    if found:
        raise ConfigError(found, source)


def problems_in(error: UserError) -> tuple[Problem, ...]:
    """Return the problems of an error, for a common list; other errors than ConfigError become one without a key."""
    if isinstance(error, ConfigError) and not error.source:
        return error.problems
    return (Problem("", str(error)),)


def shown(value: Any) -> str:
    """Format a value for a sentence: a string unchanged, anything else as TOML."""
    return value if isinstance(value, str) else inline(value)


def inline(value: Any) -> str:
    """Format a value on one line as TOML; as its Python repr if TOML cannot represent it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(inline, value)) + "]"
    try:
        return tomli_w.dumps({"v": value}).removeprefix("v = ").strip()
    except TypeError:
        return repr(value)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word closest to `word`, or None if no known word is close."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1)
    return by_lower[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return '; did you mean X?' for the known word closest to `word`, or '' if no known word is close."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


# Tags of unions that pydantic adds to a value's location: of schedules, then of optimizers.
_TAGS = ("number", "int", "str", "ConstantSchedule", "LinearSchedule", "ExponentialSchedule", "adam", "sgd")

_WORDS = {  # pydantic's prefixes and their replacements; the order matters, since the last two match many messages
    "Input should be greater than or equal to ": "at least ",
    "Input should be greater than ": "more than ",
    "Input should be less than or equal to ": "at most ",
    "Input should be less than ": "less than ",
    "Input should be ": "",
    "String should have ": "",
}


def problems_of(section: str, error: ValidationError, keys: Sequence[str] = ()) -> list[Problem]:
    """Convert pydantic's error for a section to problems, with the wording of all other problems.

    Args:
        section: The section whose values were validated, such as "algorithm"; the keys start with it.
        error: The error raised while making the section's settings. Settings may raise ConfigError themselves if two
            values do not fit each other; the keys of its problems do not include the section.
        keys: The section's valid keys, for messages.
    """
    found: list[Problem] = []
    for detail in error.errors():
        where = [str(part) for part in detail["loc"] if part not in _TAGS]
        key = ".".join([section, *where])
        raised = detail.get("ctx", {}).get("error")
        if isinstance(raised, ConfigError):
            found += [replace(problem, key=f"{key}.{problem.key}") for problem in raised.problems]
        elif detail["type"] == "unexpected_keyword_argument":
            expected = f"{did_you_mean(where[-1], keys)} (keys: {', '.join(keys)})" if keys else ""
            found.append(Problem(key, f"there is no such key{expected}", detail["input"]))
        elif detail["type"] == "missing":
            found.append(Problem(key, "missing, expected a value"))
        else:
            found.append(Problem(key, _expected(detail["msg"]), detail["input"] if where else NO_VALUE))
    return found


def _expected(message: str) -> str:
    """Rephrase pydantic's message with the wording of all other problems."""
    message = message.removeprefix("Value error, ")
    for theirs, ours in _WORDS.items():
        if message.startswith(theirs):
            return f"expected {ours}{message.removeprefix(theirs)}"
    return message
