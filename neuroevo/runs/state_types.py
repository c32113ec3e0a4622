"""Whether the values of a state are of the types that its dataclass says, before they are written and after."""

from __future__ import annotations

import collections.abc
import math
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from neuroevo.core.arrays import Checked

_MANY = (tuple, list, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def check_fields(value: Any, where: str) -> None:
    """Check a dataclass: each field against its type, then by its own check_state().

    One derived from Checked also checks itself. Dataclasses that are fields of this one are not looked into.

    Args:
        value: The dataclass.
        where: What it is called in messages.

    Raises:
        ValueError: A field has a value of another type, or the class refuses its values.
    """
    hints = hints_of(type(value))
    for each in fields(value):
        own, hint = getattr(value, each.name), hints.get(each.name, Any)
        if not fits(own, hint):
            expected = getattr(hint, "__name__", None) if isinstance(hint, type) else None
            raise ValueError(f"{where}.{each.name} is {_shown(own)}, expected {expected or hint}")
    if isinstance(value, Checked):
        try:
            value.check_state()
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; nothing if they name what does not exist at run time."""
    try:
        return typing.get_type_hints(kind)
    except Exception:  # whatever evaluating somebody's annotations raises
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Tells whether a value is of a type.

    Args:
        value: A value that a checkpoint holds.
        hint: A type as annotations have it. A whole number is a float, as for type checkers, if floats are as large;
            true and false are no numbers; a tuple is any sequence. What a type of another kind says is not looked at.
    """
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:  # NaN is none
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return any(fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin in _MANY:
        return _fits_each(value, origin, arguments)
    if origin in _TABLES:
        return isinstance(value, Mapping) and all(fits(each, arguments[1]) for each in value.values())
    if hint in _MANY:
        return isinstance(value, tuple)
    if hint in _TABLES:
        return isinstance(value, Mapping)
    if isinstance(hint, type) and hint not in (Any, object) and not getattr(hint, "_is_protocol", False):
        return isinstance(value, hint)
    return True


def dataclass_of(hint: Any, names: collections.abc.Collection[str]) -> type | None:
    """Find the dataclass in a type such as X, X | None or tuple[X, ...].

    Args:
        hint: The type.
        names: Of the fields of the one that is wanted, where there are several.

    Returns:
        The class; the first one where none has these fields; None where there is none.
    """
    found = _dataclasses(hint)
    return next((kind for kind in found if {each.name for each in fields(kind)} == set(names)), next(iter(found), None))


def _dataclasses(hint: Any) -> list[Any]:
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [kind for part in typing.get_args(hint) for kind in _dataclasses(part)]


def _fits_each(value: Any, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if origin is tuple and arguments[-1:] != (Ellipsis,):
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    return all(fits(each, arguments[0]) for each in value)


def finite(value: float) -> bool:
    """Tells whether a number of a state is finite; a whole one is, however large."""
    return isinstance(value, int) or math.isfinite(value)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:80]}"
