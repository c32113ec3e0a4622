"""How settings are declared: frozen pydantic dataclasses that reject unknown keys and wrong types when constructed.

An algorithm is such a dataclass too: its fields are its keys in a configuration's [algorithm] section.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict
from pydantic.dataclasses import dataclass

from neuroevo.core.bounds import MAX_COUNT, MAX_SLOTS, MAX_STEPS, MAX_THREADS
from neuroevo.core.problems import did_you_mean

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
if TYPE_CHECKING:  # a type checker is to know their fields as it knows those of any dataclass
    from dataclasses import dataclass as nested_settings
    from dataclasses import dataclass as settings
else:
    settings = partial(dataclass, frozen=True, config={**_CONFIG, "strict": True})
    nested_settings = partial(dataclass, frozen=True, config=_CONFIG)  # may be given as a dict where it is a field


def whole(value: object) -> object:
    """A float without a fraction as int, so that 1e9 is a number of steps; anything else unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def one_of(known: Collection[str]) -> AfterValidator:
    """What a text field that takes only the known words is annotated with."""

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"expected one of {', '.join(known)}{did_you_mean(value, known)}")
        return value

    return AfterValidator(check)


def _in_32_bits(value: float) -> float:
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if not 0 < rounded < np.inf:
        raise ValueError("expected a number that is positive and finite in 32 bits")
    return value


Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_COUNT)]  # how many, at least one
CountOrZero = Annotated[int, BeforeValidator(whole), Field(ge=0, le=MAX_COUNT)]
Steps = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_STEPS)]  # of a whole run
Threads = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_THREADS)]
Slots = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_SLOTS)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Strict(), Field(gt=0)]
Positive32 = Annotated[Positive, AfterValidator(_in_32_bits)]  # what ops take as a float32, such as sigma
Name = Annotated[str, Field(min_length=1)]
