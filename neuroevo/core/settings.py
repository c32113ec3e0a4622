"""The decorators and field types of settings: frozen dataclasses that reject unknown keys and wrong types.

pydantic validates them at construction. Algorithms are such dataclasses, too: their fields are the keys of the
[algorithm] section of a configuration.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Mapping
from dataclasses import field as dataclass_field
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, TypeVar, cast

import numpy as np
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict
from pydantic.dataclasses import dataclass
from typing_extensions import dataclass_transform

from neuroevo.core.bounds import MAX_COUNT, MAX_SLOTS, MAX_STEPS, MAX_THREADS
from neuroevo.core.problems import did_you_mean

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
_STRICT = ConfigDict(**_CONFIG, strict=True)
_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclass_field, Field))
def settings(kind: type[_Class]) -> type[_Class]:
    """Decorate a class of settings: a frozen pydantic dataclass that rejects unknown keys and wrong types.

    Args:
        kind: A class with annotated fields, each followed by its documentation as a string.

    Returns:
        The dataclass.
    """
    return cast(type[_Class], dataclass(frozen=True, config=_STRICT)(kind))


@dataclass_transform(frozen_default=True, field_specifiers=(dataclass_field, Field))
def nested_settings(kind: type[_Class]) -> type[_Class]:
    """Decorate a class of settings like settings(), but accept a table (dict) for a field of that class.

    Args:
        kind: A class with annotated fields.

    Returns:
        The dataclass.
    """
    return cast(type[_Class], dataclass(frozen=True, config=_CONFIG)(kind))


def documentation(kind: type, key: str) -> str:
    """Return the documentation of a key.

    The source is parsed on demand: pydantic's own extraction would take a third of every command's startup time.

    Args:
        kind: A class decorated with settings or nested_settings.
        key: The name of a field.

    Returns:
        The string below the field in the class that declares it, or the description of its type; "" without either.
    """
    found = next((text for each in kind.__mro__ if (text := _documented(each).get(key))), "")
    return inspect.cleandoc(found)


@cache
def _documented(kind: type) -> Mapping[str, str]:
    fields = vars(kind).get("__pydantic_fields__", {})
    texts = {key: field.description for key, field in fields.items() if field.description}
    try:
        (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, ValueError):  # no source, as for object and dynamically created classes
        return texts
    for declared, below in pairwise(definition.body if fields and isinstance(definition, ast.ClassDef) else ()):
        match declared, below:
            case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[key] = text
    return texts


def whole(value: object) -> object:
    """Convert a float without a fractional part to int, so that steps may be written as 1e9.

    Args:
        value: Any value.

    Returns:
        The integer, or the value unchanged.
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def listed(value: object) -> object:
    """Convert a list to a tuple, so that TOML's lists may be given for tuples.

    Args:
        value: Any value.

    Returns:
        The tuple, or the value unchanged.
    """
    return tuple(value) if isinstance(value, list) else value


class OneOf:
    """Validator that accepts only known words, which the documentation lists.

    Attributes:
        known: The words.
    """

    def __init__(self, known: Collection[str]) -> None:
        self.known = tuple(known)

    def __call__(self, value: str) -> str:
        """Return the value.

        Raises:
            ValueError: The value is not one of the words.
        """
        if value not in self.known:
            raise ValueError(f"expected one of {', '.join(self.known)}{did_you_mean(value, self.known)}")
        return value


def one_of(known: Collection[str]) -> AfterValidator:
    """Make the validator of a text field that accepts only known words.

    Args:
        known: The words.

    Returns:
        The annotation of the field.
    """
    return AfterValidator(OneOf(known))


def host_and_port(address: str) -> tuple[str, int] | None:
    """Parse the address of a cluster's head.

    Args:
        address: HOST:PORT.

    Returns:
        Host and port, or None if the address is malformed.
    """
    host, _, port = address.rpartition(":")
    return (host, int(port)) if host and port.isdecimal() and 0 < int(port) < 2**16 else None


def cluster_address(*words: str) -> AfterValidator:
    """Make the validator of a text field that accepts known words and HOST:PORT.

    Args:
        words: The known words.

    Returns:
        The annotation of the field.
    """

    def check(value: str) -> str:
        if value not in words and host_and_port(value) is None:
            raise ValueError(f"expected {', '.join(words)} or HOST:PORT")
        return value

    return AfterValidator(check)


def _in_32_bits(value: float) -> float:
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if not 0 < rounded < np.inf:
        raise ValueError("expected a number that is positive and finite in 32 bits")
    return value


Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_COUNT)]  # a number of things, at least 1
CountOrZero = Annotated[int, BeforeValidator(whole), Field(ge=0, le=MAX_COUNT)]
Steps = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_STEPS)]  # steps of a whole run
Threads = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_THREADS)]
Slots = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_SLOTS)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Strict(), Field(gt=0)]
Positive32 = Annotated[Positive, AfterValidator(_in_32_bits)]  # for numbers that ops take as float32, such as sigma
Name = Annotated[str, Field(min_length=1)]
