"""Search space of a sweep: a list of values or a range for each key of the configuration.

"network.name" = ["model", "large_model"]          # one of these values
"algorithm.sigma" = {log_uniform = [1e-3, 1e-1]}   # a number; also {uniform = [0.0, 1.0]}
"algorithm.population" = {integer = [50, 500]}     # an integer, bounds included; also {log_integer = [10, 1000]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.core.problems import Problem, did_you_mean, inline, shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SEED = "training.seed"
LIST = "list"
RANGES = ("uniform", "log_uniform", "integer", "log_integer")
_LARGEST = 1e300  # largest bound, so that the difference of two bounds is finite

Values = dict[str, Any]
"""Values of configuration keys."""


@dataclass(frozen=True)
class Domain:
    """Domain of a key: a list of values, or a range of numbers.

    Attributes:
        values: The values of the list as read from TOML, or the two bounds; they are tried before a sweep starts.
        kind: LIST or one of RANGES.
    """

    values: tuple[Any, ...]
    kind: str = LIST

    @property
    def distribution(self) -> BaseDistribution:
        """Optuna's distribution; its choices are strings if a value is a list or a table."""
        from optuna import distributions

        if self.kind == LIST:
            return distributions.CategoricalDistribution(self._labels)
        (low, high), log = self.values, self.kind.startswith("log")
        if self.kind.endswith("integer"):
            return distributions.IntDistribution(low, high, log=log)
        return distributions.FloatDistribution(low, high, log=log)

    @property
    def _labels(self) -> list[Any]:
        nested = any(isinstance(each, list | dict) for each in self.values)
        return [inline(each) if nested else each for each in self.values]

    def label(self, value: Any) -> Any:
        """Return the value's representation in Optuna's distribution."""
        return self._labels[self.values.index(value)] if self.kind == LIST else value

    def value(self, label: Any) -> Any:
        """Return the value with this representation in Optuna's distribution."""
        return self.values[self._labels.index(label)] if self.kind == LIST else label

    def near(self, value: Any, rng: np.random.Generator) -> Any:
        """Draw a neighbor in the list, or a number that is 20% larger or smaller, clipped to the bounds."""
        larger = bool(rng.integers(2))
        if self.kind == LIST:
            at = self.values.index(value) + (1 if larger else -1)
            return self.values[min(max(at, 0), len(self.values) - 1)]
        low, high = self.values
        nearest = min(max(value * (1.2 if larger else 0.8), low), high)
        return round(nearest) if self.kind.endswith("integer") else nearest


Space = Mapping[str, Domain]


def parse_space(table: Mapping[str, Any]) -> tuple[dict[str, Domain], list[Problem]]:
    """Parse [sweep.space].

    Args:
        table: Domains by keys of the configuration such as "algorithm.sigma".

    Returns:
        The space of the valid domains, and the problems of the others.
    """
    space: dict[str, Domain] = {}
    problems: list[Problem] = []
    for key, value in _flat(table).items():
        try:
            if "." not in key or not all(key.split(".")):
                raise ValueError("expected SECTION.KEY, a key of the configuration")
            space[key] = _parse(value)
        except ValueError as error:
            problems.append(Problem(f"sweep.space.{key}", str(error), value))
    return space, problems


def _flat(table: Mapping[str, Any], prefix: str = "") -> Values:
    """Flatten nested tables, as TOML reads algorithm.sigma without quotes, to dotted keys."""
    flat: Values = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not any(name in RANGES for name in value) and "." not in key:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _parse(value: Any) -> Domain:
    """Parse the domain of a key. Raise ValueError if it is neither a list nor a range."""
    if isinstance(value, list):
        if not value or any(value.count(each) > 1 for each in value):
            raise ValueError("expected a list of different values, at least one")
        return Domain(tuple(value))
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"expected a list of values, or a table with one of {', '.join(RANGES)}")
    ((kind, bounds),) = value.items()
    if kind not in RANGES:
        raise ValueError(f"{kind} is not a range{did_you_mean(kind, RANGES)}; expected one of {', '.join(RANGES)}")
    log, integer = kind.startswith("log"), kind.endswith("integer")
    if not (isinstance(bounds, list) and len(bounds) == 2 and all(_is_bound(each, integer) for each in bounds)):
        numbers, most = ("integers", "2**63") if integer else ("finite numbers", f"{_LARGEST:g}")
        raise ValueError(f"expected two {numbers} as bounds, at most {most}")
    low, high = bounds if integer else map(float, bounds)
    if not low < high:
        raise ValueError("expected the lower bound before the upper one")
    if log and low <= 0:
        raise ValueError("expected positive bounds for a logarithmic range")
    return Domain((low, high), kind)


def _is_bound(value: Any, integer: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) and abs(value) <= 2**63 if integer else abs(value) <= _LARGEST


def value_text(value: Any) -> str:
    """Format a value of a key for display, a float with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else shown(value)
