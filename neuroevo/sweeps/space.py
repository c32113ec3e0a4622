"""The space of a sweep: which values each key of the configuration may have.

"network.name" = ["model", "large_model"]          # one of these
"algorithm.sigma" = {log_uniform = [1e-3, 1e-1]}   # a number; also {uniform = [0.0, 1.0]}
"algorithm.population" = {integer = [50, 500]}     # an integer, both ends included; also {log_integer = [10, 1000]}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.core.problems import Problem, did_you_mean, shown

RANGES = ("uniform", "log_uniform", "integer", "log_integer")
_LARGEST = 1e300  # of a bound: the difference of two is finite


@dataclass(frozen=True)
class Choice:
    """One of several values.

    Attributes:
        values: The values, as TOML has them.
    """

    values: tuple[Any, ...]

    @property
    def probes(self) -> tuple[Any, ...]:
        """The values to try before a sweep starts: all."""
        return self.values

    def draw(self, rng: np.random.Generator) -> Any:
        """Draws a value, each as likely."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any, rng: np.random.Generator) -> Any:
        """Draw a neighbor in the list."""
        at = self.values.index(value) + (1 if rng.integers(2) else -1)
        return self.values[min(max(at, 0), len(self.values) - 1)]


@dataclass(frozen=True)
class Range:
    """A number between two bounds.

    Attributes:
        low: The lower bound.
        high: The upper bound; of integers it is included.
        log: Whether the number's logarithm is uniform rather than the number.
        integer: Whether it is an integer.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    @property
    def probes(self) -> tuple[Any, ...]:
        """The values to try before a sweep starts: both ends."""
        return self.clip(self.low), self.clip(self.high)

    def draw(self, rng: np.random.Generator) -> Any:
        """Draws a value."""
        low, high = (self.low, self.high + 1) if self.integer else (self.low, self.high)
        value = math.exp(rng.uniform(math.log(low), math.log(high))) if self.log else rng.uniform(low, high)
        return self.clip(math.floor(value) if self.integer else value)

    def clip(self, value: Any) -> Any:
        """Return the nearest value in the range."""
        nearest = min(max(value, self.low), self.high)
        return round(nearest) if self.integer else float(nearest)

    def near(self, value: Any, rng: np.random.Generator) -> Any:
        """Draw a value a fifth larger or smaller."""
        return self.clip(value * (1.2 if rng.integers(2) else 0.8))


Space = Mapping[str, Choice | Range]


def parse_space(table: Mapping[str, Any]) -> tuple[dict[str, Choice | Range], list[Problem]]:
    """Reads [sweep.space].

    Args:
        table: Its keys, each a key of the configuration such as "algorithm.sigma", and their values.

    Returns:
        The space without what is wrong, and the problems.
    """
    space: dict[str, Choice | Range] = {}
    problems: list[Problem] = []
    for key, value in _flat(table).items():
        try:
            space[key] = _parse(value)
        except ValueError as error:
            problems.append(Problem(f"sweep.space.{key}", str(error), value))
    return space, problems


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """TOML reads algorithm.sigma without quotes as a table in a table; here it is the same as with quotes."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not any(name in RANGES for name in value) and "." not in key:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _parse(value: Any) -> Choice | Range:
    """ValueError: it is neither a list nor a range."""
    if isinstance(value, list):
        if not value or any(value.count(each) > 1 for each in value):
            raise ValueError("expected a list of different values, at least one")
        return Choice(tuple(value))
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"expected a list of values, or a table with one of {', '.join(RANGES)}")
    ((kind, bounds),) = value.items()
    if kind not in RANGES:
        raise ValueError(f"there is no {kind}{did_you_mean(kind, RANGES)}; expected one of {', '.join(RANGES)}")
    log, integer = kind.startswith("log"), kind.endswith("integer")
    if not (isinstance(bounds, list) and len(bounds) == 2 and all(_is_number(bound, integer) for bound in bounds)):
        kind, most = ("integers", "2**63") if integer else ("finite numbers", f"{_LARGEST:g}")
        raise ValueError(f"expected two {kind}, the bounds, of at most {most}")
    low, high = bounds
    if not low < high:
        raise ValueError("expected the lower bound before the upper one")
    if log and low <= 0:
        raise ValueError("expected bounds of more than 0, which have a logarithm")
    return Range(low, high, log, integer)


def _is_number(value: Any, integer: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) and abs(value) <= 2**63 if integer else abs(value) <= _LARGEST


def value_text(value: Any) -> str:
    """Formats a value of a key for people.

    Args:
        value: The value.

    Returns:
        Text; of a number that is not whole four digits.
    """
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
