"""Encode an algorithm's state as JSON, genomes and arrays, and decode it without running code.

A state consists of None, bool, int, float, str, Genome, NumPy arrays, tuples, mappings with string keys, and frozen
dataclasses. Genomes and arrays are stored in separate lists and represented by {"genome": index} and {"array": index}.
A dataclass is encoded as {"fields": {...}}, a mapping as {"map": {...}}, and a tuple as a JSON list.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from neuroevo.core.arrays import Checked
from neuroevo.core.genome import Center, Genome
from neuroevo.core.tree import centers_of

_STRICT = ConfigDict(arbitrary_types_allowed=True, strict=True, allow_inf_nan=False)


@dataclass
class Encoded:
    """States encoded as plain values.

    Attributes:
        values: JSON values, one per state.
        genomes: The genomes that {"genome": index} refers to.
        arrays: The arrays that {"array": index} refers to.
        centers: The centers with weights that the genomes need.
    """

    values: list[Any] = field(default_factory=list)
    genomes: list[Genome] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    centers: list[Center] = field(default_factory=list)


def encode(*states: Any) -> Encoded:
    """Encode states.

    Args:
        states: The states.

    Returns:
        The states as plain values.

    Raises:
        ValueError: A value has an unsupported type or is not finite, or the value of a dataclass field does not match
            the field's annotation, so that decode() would reject it.
    """
    genomes: dict[Genome, int] = {}
    arrays: list[np.ndarray] = []

    def plain(value: Any, where: str) -> Any:
        if isinstance(value, Genome):
            return {"genome": genomes.setdefault(value, len(genomes))}
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        if isinstance(value, tuple):
            return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if is_dataclass(value):
            check_fields(value, where)
            return {"fields": {f.name: plain(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"map": {key: plain(item, f"{where}[{key}]") for key, item in value.items()}}
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{where} is {value}, expected a finite number")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ValueError(f"{where} is a {type(value).__name__}, which checkpoints do not support")

    values = [plain(state, type(state).__name__) for state in states]
    centers = [center for center in centers_of(genomes).values() if center.has_weights]
    return Encoded(values, list(genomes), arrays, centers)


def decode(encoded: Encoded, *kinds: Any) -> tuple[Any, ...]:
    """Decode states.

    Args:
        encoded: The return value of encode().
        kinds: Types of the states.

    Returns:
        The states.

    Raises:
        ValueError: The values do not match the types; a dataclass must have exactly the fields of its type.
    """

    def made(value: Any, hint: Any, where: str) -> Any:
        if isinstance(value, list):
            return tuple(made(item, hint, f"{where}[{i}]") for i, item in enumerate(value))
        if not isinstance(value, Mapping):
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{where} is {value}, expected a finite number")
            return value
        if len(value) != 1:
            raise ValueError(f"{where} is {str(value)[:80]}, expected another value")
        ((kind, inner),) = value.items()
        if kind == "genome":
            return _chosen(encoded.genomes, inner, f"{where}: genome")
        if kind == "array":
            return _chosen(encoded.arrays, inner, f"{where}: array")
        if kind not in ("map", "fields") or not isinstance(inner, Mapping):
            raise ValueError(f"{where} is {str(value)[:80]}, expected another value")
        if kind == "map":
            return {key: made(item, hint, f"{where}[{key}]") for key, item in inner.items()}
        return _dataclass(inner, hint, where)

    def _dataclass(given: Mapping[str, Any], hint: Any, where: str) -> Any:
        own = _dataclass_of(hint, given)
        if own is None:
            raise ValueError(f"{where} has the fields {sorted(given)}, expected another value")
        names, hints = [f.name for f in fields(own)], _hints_of(own)
        if set(given) != set(names):
            raise ValueError(f"{where} has the fields {sorted(given)}, expected {sorted(names)}")
        value = own(**{name: made(given[name], hints.get(name), f"{where}.{name}") for name in names})
        check_fields(value, where)
        return value

    try:
        for center in centers_of(encoded.genomes).values():
            if not center.has_weights:
                raise ValueError(f"the weights of center {center.name} are missing")
        states = []
        for value, kind in zip(encoded.values, kinds, strict=True):
            name = getattr(kind, "__name__", "a state")
            states.append(made(value, kind, name))
            if not _fits(states[-1], kind):
                raise ValueError(f"{name} is {str(value)[:80]}, expected another value")
        return tuple(states)
    except (AttributeError, IndexError, TypeError) as error:  # raised by a class that validates its values
        raise ValueError(f"the state is invalid: {error}") from None


def _chosen(items: Sequence[Any], index: object, what: str) -> Any:
    """Return items[index]. ValueError: the index is out of range or not an integer."""
    if type(index) is not int or not 0 <= index < len(items):
        raise ValueError(f"{what} {str(index)[:80]} is out of range, expected an index in [0, {len(items)})")
    return items[index]


def check_fields(value: Any, where: str) -> None:
    """Check each field of a dataclass against its type and, for classes derived from Checked, call check_state().

    The fields of nested dataclasses are not checked.

    Args:
        value: The dataclass.
        where: Name of the dataclass in messages.

    Raises:
        ValueError: A field has a value of another type, or check_state() rejects a value.
    """
    kind: Any = type(value)  # Any, since mypy does not accept it as hashable
    hints = _hints_of(kind)
    for each in fields(value):
        own, hint = getattr(value, each.name), hints.get(each.name, Any)
        if not _fits(own, hint):
            expected = hint.__name__ if isinstance(hint, type) else hint
            raise ValueError(f"{where}.{each.name} is {type(own).__name__} {str(own)[:80]}, expected {expected}")
    if isinstance(value, Checked):
        try:
            value.check_state()
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


@lru_cache(maxsize=256)
def _hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields; empty if annotations cannot be resolved at run time."""
    try:
        return typing.get_type_hints(kind)
    except Exception:  # evaluating a user's annotations may raise anything
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has a type according to pydantic's strict mode; True for types unknown to pydantic."""
    if isinstance(hint, type) and is_dataclass(hint):  # its fields are checked when it is decoded
        return isinstance(value, hint)
    try:
        _adapter(hint).validate_python(value)
    except ValidationError:
        return False
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError):
        return True
    return True


def _dataclass_of(hint: Any, names: Collection[str]) -> type | None:
    """Find the dataclass with these fields, or else the first one, in a type such as X | None or tuple[X, ...]."""
    found = _dataclasses(hint)
    return next((kind for kind in found if {each.name for each in fields(kind)} == set(names)), next(iter(found), None))


def _dataclasses(hint: Any) -> list[Any]:
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [kind for part in typing.get_args(hint) for kind in _dataclasses(part)]


@lru_cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=_STRICT)
