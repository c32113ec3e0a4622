"""Heat maps of behaviors: the best fitness that any member of a run had in each cell of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.algorithms.map_elites import MAPElites
from neuroevo.core.archive import Grid
from neuroevo.core.errors import UserError
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 50  # along an axis, where the algorithm has no grid


@dataclass(frozen=True, eq=False)
class BehaviorMap:
    """The best members of a run by what two numbers of their behavior are.

    Attributes:
        names: Of the two numbers.
        grid: Its cells.
        fitness: The highest fitness of each cell, float64 of the grid's shape; NaN where no member has been.
    """

    names: tuple[str, str]
    grid: Grid
    fitness: np.ndarray

    @property
    def coverage(self) -> float:
        """The share of cells in which a member has been."""
        return float(np.mean(~np.isnan(self.fitness)))


def behavior_map(run: RunReader, axes: tuple[int, int] = (0, 1)) -> BehaviorMap:
    """Compute where the members of a run have been.

    The grid is that of MAP-Elites, or else one of 50 x 50 cells between the environment's bounds or, where it has none,
    the least and the greatest number of any member.

    Args:
        run: A run whose behaviors are kept, of any algorithm.
        axes: Which two of the environment's measures.

    Raises:
        UserError: No behaviors are kept, or there are no two measures.
    """
    measures = run.config.environment.measures
    if len(measures) < 2:
        raise UserError(f"{run.config.env.name} has {len(measures)} measures, expected two for a map")
    ends = [axis - len(measures) for axis in axes]  # of a trajectory, its last sample
    generations = [each for each in MembersReader(run.path).each() if each is not None]
    found = [(each.behaviors[:, ends], each.fitness) for each in generations if each.behaviors is not None]
    if not found:
        raise UserError(f"the run in {run.path} has no behaviors of its members (logging.members_megabytes)")
    behaviors = np.concatenate([behavior for behavior, _ in found]).astype(np.float64)
    fitness = np.concatenate([fitness for _, fitness in found])
    known = np.isfinite(behaviors).all(axis=1)
    behaviors, fitness = behaviors[known], fitness[known]
    algorithm = run.config.algorithm
    if isinstance(algorithm, MAPElites):
        grid = algorithm.grid
        low, high = ([bounds[axis] for axis in axes] for bounds in (grid.low, grid.high))
        shape = [grid.shape[axis] for axis in axes]
    else:
        chosen = [measures[axis] for axis in axes]
        low = _bounds([each.low for each in chosen], behaviors.min(axis=0))
        high = _bounds([each.high for each in chosen], np.nextafter(behaviors.max(axis=0), np.inf))
        shape = [_CELLS, _CELLS]
    grid = Grid(tuple(low), tuple(high), tuple(shape))
    best = np.full(grid.shape, -np.inf)
    np.maximum.at(best, tuple(grid.cells(behaviors).T), fitness)
    names = measures[axes[0]].name, measures[axes[1]].name
    return BehaviorMap(names, grid, np.where(np.isinf(best), np.nan, best))


def _bounds(known: Sequence[float], seen: np.ndarray) -> list[float]:
    return [bound if math.isfinite(bound) else float(own) for bound, own in zip(known, seen, strict=True)]


def plot_maps(runs: Sequence[RunReader], axes: tuple[int, int] = (0, 1)) -> Figure:
    """Draw the maps of runs beside each other, with one scale of colors.

    Args:
        runs: At least one.
        axes: Which two of the environment's measures.

    Raises:
        UserError: As behavior_map().
    """
    from matplotlib.figure import Figure

    maps = [behavior_map(run, axes) for run in runs]
    figure = Figure(figsize=(4.4 * len(maps) + 0.8, 4.2), layout="constrained")
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    lowest = min(float(np.nanmin(each.fitness)) for each in maps)
    highest = max(float(np.nanmax(each.fitness)) for each in maps)
    image: Any = None
    for panel, run, each in zip(panels, runs, maps, strict=True):
        x, y = (
            np.linspace(low, high, count + 1)
            for low, high, count in zip(each.grid.low, each.grid.high, each.grid.shape, strict=True)
        )
        image = panel.pcolormesh(x, y, each.fitness.T, cmap="viridis", vmin=lowest, vmax=highest, rasterized=True)
        panel.set(xlabel=each.names[0], ylabel=each.names[1])
        title = f"{run.config.algorithm_name}, seed {run.config.training.seed}"
        panel.set_title(f"{title}: {each.coverage:.1%} of {each.fitness.size:,} cells", fontsize="medium")
    figure.colorbar(image, ax=list(panels), label="highest fitness in the cell")
    return figure
