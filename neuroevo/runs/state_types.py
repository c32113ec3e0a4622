"""Whether the values of a state are of the types that its dataclass says, before they are written and after."""

from __future__ import annotations

import typing
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from neuroevo.core.arrays import Checked

_STRICT = ConfigDict(arbitrary_types_allowed=True, strict=True, allow_inf_nan=False)


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
            expected = hint.__name__ if isinstance(hint, type) else hint
            raise ValueError(f"{where}.{each.name} is {type(own).__name__} {str(own)[:80]}, expected {expected}")
    if isinstance(value, Checked):
        try:
            value.check_state()
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; nothing if they name what does not exist at run time."""
    try:
        return typing.get_type_hints(kind)
    except Exception:  # whatever evaluating a user's annotations raises
        return {}


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type, as pydantic checks it strictly; no float is NaN or infinite.

    Args:
        value: A value that a state consists of.
        hint: A type as annotations have it; one that pydantic does not know is not checked.
    """
    if isinstance(hint, type) and is_dataclass(hint):  # whose own fields are checked where it is made
        return isinstance(value, hint)
    try:
        _adapter(hint).validate_python(value)
    except ValidationError:
        return False
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError):
        return True
    return True


def dataclass_of(hint: Any, names: Collection[str]) -> type | None:
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


@lru_cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=_STRICT)
