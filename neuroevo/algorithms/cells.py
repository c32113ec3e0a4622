"""The settings of algorithms that divide the space of behaviors into the cells of a grid."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Self

from pydantic import BeforeValidator

from neuroevo.algorithms.base import Algorithm
from neuroevo.core.archive import Archive, Grid
from neuroevo.core.behavior import Behavior, Measure
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.settings import Count, listed, settings

_Numbers = Annotated[tuple[float, ...], BeforeValidator(listed)]
_Counts = Annotated[
    tuple[Count, ...], BeforeValidator(lambda value: listed([value] if isinstance(value, int) else value))
]


@settings
class CellSettings(Algorithm, ABC):
    """Base class of algorithms with a grid over the behavior at the end of an episode."""

    cells: _Counts = (20,)
    """Number of cells along each axis; a single number applies to every axis."""
    low: _Numbers = ()
    """Lower bound of each axis; by default the environment's. Behaviors out of bounds belong to the nearest cell."""
    high: _Numbers = ()
    """Upper bound of each axis; by default the environment's."""

    @property
    def behavior(self) -> Behavior:
        """The behavior of an episode, sampled once at its end."""
        return Behavior()

    @property
    def grid(self) -> Grid:
        """The grid; valid after on_measures() has set its bounds."""
        shape = self.cells * len(self.low) if len(self.cells) == 1 else self.cells
        return Grid(self.low, self.high, shape)

    def cell_metrics(self, cells: Archive) -> dict[str, float]:
        """Return the share of filled cells and the sum of their fitness."""
        total = 0.0 if cells.fitness is None else float(cells.fitness.sum())
        return {"coverage": len(cells) / math.prod(self.grid.shape), "qd_score": total}

    def on_measures(self, measures: Sequence[Measure]) -> Self:
        """Return the algorithm for behaviors of these numbers, using their bounds where the settings leave bounds out.

        Raises:
            ConfigError: The settings do not fit these numbers, or bounds are missing; the error lists all problems.
        """
        names = ", ".join(measure.name for measure in measures[:8]) + ("..." if len(measures) > 8 else "")
        low = self.low or tuple(measure.low for measure in measures)
        high = self.high or tuple(measure.high for measure in measures)
        each = f"expected {len(measures)} numbers, one for each of {names}"
        given: dict[str, tuple[float, ...]] = {"low": low, "high": high}
        if len(self.cells) != 1:
            given["cells"] = self.cells
        refuse(Problem(key, each, list(axes)) for key, axes in given.items() if len(axes) != len(measures))
        problems = []
        for key, bounds in (("low", low), ("high", high)):
            endless = [
                measure.name for measure, bound in zip(measures, bounds, strict=True) if not math.isfinite(bound)
            ]
            if endless:
                problems.append(Problem(key, f"missing, as {endless[0]} has no bound: {each}"))
        refuse(problems)
        for measure, least, most in zip(measures, low, high, strict=True):
            if not least < most:
                problems.append(
                    Problem("high", f"expected more than {least:g} for {measure.name}, the lower bound", most)
                )
        refuse(problems)
        return replace(self, low=low, high=high)
