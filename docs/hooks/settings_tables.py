"""Tables of keys, made from the classes that declare them: their fields, defaults, ranges and documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import PlainValidator

from neuroevo.core.problems import inline
from neuroevo.core.settings import OneOf, documentation

HEAD = ("| key | default | values | meaning |", "|---|---|---|---|")
_SPECIAL = str.maketrans({"<": "&lt;", **{character: f"\\{character}" for character in "\\*_[]|"}})
_KINDS: dict[Any, str] = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_MOST = 10**5  # a larger bound only keeps numbers representable, and says nothing to a reader


def settings_table(kind: type, prefix: str = "") -> str:
    """Returns a table of a settings class's keys.

    Args:
        kind: A class decorated with neuroevo.core.settings.settings or nested_settings.
        prefix: What stands before each key, such as "training.".
    """
    return "\n".join([*HEAD, *_rows(kind, prefix)])


def summary(kind: type) -> str:
    """Returns the first paragraph of a class's documentation."""
    return escaped(" ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()))


def escaped(text: str) -> str:
    """Returns text for a cell of a table: nothing in it is Markdown, but for what stands between backticks."""
    parts = text.split("`")
    return "`".join(part if number % 2 else part.translate(_SPECIAL) for number, part in enumerate(parts))


def code(text: str) -> str:
    """Returns text as code for a cell of a table."""
    return f"`{text}`" if text else ""  # where a | needs no backslash


def _rows(kind: type, prefix: str) -> Iterator[str]:
    types = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        cells = (code(prefix + field.name), _default(field), escaped(_values(types[field.name], ())))
        yield f"| {' | '.join(cells)} | {escaped(' '.join(documentation(kind, field.name).split()))} |"


def _default(field: Field[Any]) -> str:
    """A field's default as TOML writes it; nothing where a key may be left out and has no value then."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is MISSING:
        return "required"
    if is_dataclass(value):  # settings within settings, such as an optimizer
        set_ = {each.name: getattr(value, each.name) for each in fields(value)}
        return code(inline({key: each for key, each in set_.items() if each is not None})) if set_ else ""
    if value is None or value == {}:
        return ""
    return code(inline(list(value) if isinstance(value, tuple) else value))


def _values(annotation: Any, checks: Sequence[Any]) -> str:
    """What a key may be, as far as its type says it in a word; what a function checks is in its documentation.

    Args:
        annotation: The field's type.
        checks: What the type is annotated with.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _values(arguments[0], [*arguments[1:], *checks])
    flat = [inner for each in checks for inner in getattr(each, "metadata", None) or [each]]
    if any(isinstance(each, PlainValidator) for each in flat):
        return ""
    known = [each.func.known for each in flat if isinstance(getattr(each, "func", None), OneOf)]
    if known or origin is Literal:
        return ", ".join(map(inline, known[0] if known else arguments))
    if origin in (Union, UnionType):
        said = [_values(each, checks) for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(filter(None, said)))
    if annotation in _KINDS:
        return " ".join(filter(None, (_KINDS[annotation], _range(flat))))
    kind = origin or annotation
    return "table" if kind is dict or is_dataclass(kind) else "list" if kind in (list, tuple) else ""


def _range(checks: Sequence[Any]) -> str:
    """The bounds among what a number is annotated with."""
    bounds: dict[str, float] = {}
    for check in checks:
        for name in ("ge", "gt", "le", "lt", "multiple_of"):
            if (value := getattr(check, name, None)) is not None:
                bounds[name] = max(bounds.get(name, value), value) if name in ("ge", "gt") else value
    if "ge" in bounds and bounds.get("le", _MOST) < _MOST:
        words = [f"in [{bounds['ge']:g}, {bounds['le']:g}]"]
    else:
        signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
        words = [f"{sign} {bounds[name]:g}" for name, sign in signs.items() if abs(bounds.get(name, _MOST)) < _MOST]
    if "multiple_of" in bounds:
        words.append("even" if bounds["multiple_of"] == 2 else f"a multiple of {bounds['multiple_of']:g}")
    return ", ".join(words)
