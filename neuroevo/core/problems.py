"""What is wrong with a configuration, as objects: which key, which value, and what was expected instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from textwrap import indent
from typing import Any, Final

import tomli_w
from pydantic import ValidationError

from neuroevo.core.errors import UserError


class NoValue(Enum):
    """The kind of NO_VALUE, which None is not: a key may have it as its value."""

    NO_VALUE = "no value"


NO_VALUE: Final = NoValue.NO_VALUE


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a configuration. As text it is `key = value: reason`, on one line.

    Attributes:
        key: Where it is, such as "algorithm.sigma"; the author's own word for it in a file of another program. "" where
            it is of no single key, and the reason is a sentence of its own.
        reason: What was expected, such as "expected more than 0".
        value: What is there, or NO_VALUE where nothing is or it would say nothing.
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
        """The same problem of a key that goes by another name.

        Args:
            names: What a key, and those of the table that it is, are called instead. The first that fits counts.
        """
        for old, new in names.items():
            if self.key == old or self.key.startswith(f"{old}."):
                return replace(self, key=new + self.key.removeprefix(old))
        return self


class ConfigError(UserError):
    """A configuration has problems; the message lists all of them.

    Attributes:
        problems: All of them, at least one.
        source: Where they were found, such as a file's name; "" where that goes without saying.
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
    """Does nothing where there are no problems.

    Args:
        problems: What is wrong.
        source: Where it was found, such as a file's name.

    Raises:
        ConfigError: There are problems; it has them all.
    """
    found = tuple(problems)
    if found:
        raise ConfigError(found, source)


def problems_in(error: UserError) -> tuple[Problem, ...]:
    """The problems that an error is about, to be listed among others: one without a key where it has none itself."""
    if isinstance(error, ConfigError) and not error.source:
        return error.problems
    return (Problem("", str(error)),)


def shown(value: Any) -> str:
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


# What pydantic adds to the place of a value that may be of several kinds: of schedules, then of optimizers.
_TAGS = ("number", "int", "str", "ConstantSchedule", "LinearSchedule", "ExponentialSchedule", "adam", "sgd")

_WORDS = {  # pydantic's and ours; the last two are the beginnings of many messages
    "Input should be greater than or equal to ": "at least ",
    "Input should be greater than ": "more than ",
    "Input should be less than or equal to ": "at most ",
    "Input should be less than ": "less than ",
    "Input should be ": "",
    "String should have ": "",
}


def problems_of(section: str, error: ValidationError) -> list[Problem]:
    """What pydantic says is wrong with a section, in the words that all problems have.

    Args:
        section: Whose values were checked, such as "algorithm"; what the keys begin with.
        error: What making the section's settings raised. Settings may raise ConfigError themselves where one value
            does not fit another; its problems' keys are those of the settings alone.
    """
    found: list[Problem] = []
    for detail in error.errors():
        where = [str(part) for part in detail["loc"] if part not in _TAGS]
        key = ".".join([section, *where])
        raised = detail.get("ctx", {}).get("error")
        if isinstance(raised, ConfigError):
            found += [replace(problem, key=f"{key}.{problem.key}") for problem in raised.problems]
        elif detail["type"] == "unexpected_keyword_argument":
            found.append(Problem(key, "there is no such key", detail["input"]))
        elif detail["type"] == "missing":
            found.append(Problem(key, "missing, expected a value"))
        else:
            found.append(Problem(key, _expected(detail["msg"]), detail["input"] if where else NO_VALUE))
    return found


def _expected(message: str) -> str:
    """Pydantic's message in our words."""
    message = message.removeprefix("Value error, ")
    for theirs, ours in _WORDS.items():
        if message.startswith(theirs):
            return f"expected {ours}{message.removeprefix(theirs)}"
    return message
