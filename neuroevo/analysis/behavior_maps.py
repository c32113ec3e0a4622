"""Heat maps of behaviors: the best fitness that any member of a run had in each cell of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.algorithms.cells import CellSettings
from neuroevo.core.archive import Grid
from neuroevo.core.errors import UserError
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 50  # along an axis, where the algorithm has no grid


@dataclass(frozen=True, eq=False)
class BehaviorMap:
    """Where the members of a run have been in two numbers of their behavior, and who was the fittest there.

    Attributes:
        names: Of the numbers.
        grid: Its cells.
        champions: The members that were the fittest of their cells up to their generation, by generation: that and
            their place in it, int64 [E, 2].
        cells: Theirs, int64 [E, 2].
        scores: Their fitness, float64 [E].
        novelty: Theirs, float64 [E], NaN where it is not known.
    """

    names: tuple[str, str]
    grid: Grid
    champions: np.ndarray
    cells: np.ndarray
    scores: np.ndarray
    novelty: np.ndarray

    @property
    def fitness(self) -> np.ndarray:
        """The highest fitness of each cell, float64 of the grid's shape; NaN where no member has been."""
        fitness = np.full(self.grid.shape, -np.inf)
        np.maximum.at(fitness, tuple(self.cells.T), self.scores)
        return np.where(np.isinf(fitness), np.nan, fitness)

    @property
    def coverage(self) -> float:
        """The share of cells in which a member has been."""
        return float(np.mean(~np.isnan(self.fitness)))


def behavior_map(run: RunReader, axes: tuple[int, int] = (0, 1)) -> BehaviorMap:
    """Compute where the members of a run have been.

    The grid is that of an algorithm with cells, or else one of 50 x 50 cells between the environment's bounds or, where
    it has none, the least and the greatest number of any member.

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
    found = [
        (each, each.behaviors[:, ends].astype(np.float64))
        for each in MembersReader(run.path).each()
        if each is not None and each.behaviors is not None
    ]
    if not found:
        raise UserError(f"the run in {run.path} has no behaviors of its members (logging.members_megabytes)")
    behaviors = np.concatenate([places for _, places in found])
    behaviors = behaviors[np.isfinite(behaviors).all(axis=1)]
    algorithm = run.config.algorithm
    if isinstance(algorithm, CellSettings):
        grid = algorithm.grid
        low, high = ([bounds[axis] for axis in axes] for bounds in (grid.low, grid.high))
        shape = [grid.shape[axis] for axis in axes]
    else:
        chosen = [measures[axis] for axis in axes]
        low = _bounds([each.low for each in chosen], behaviors.min(axis=0))
        high = _bounds([each.high for each in chosen], np.nextafter(behaviors.max(axis=0), np.inf))
        shape = [_CELLS, _CELLS]
    grid = Grid(tuple(low), tuple(high), tuple(shape))
    names = measures[axes[0]].name, measures[axes[1]].name
    best, won = np.full(grid.shape, -np.inf), []
    for members, places in found:
        cells = grid.cells(np.where(np.isfinite(places), places, np.nan))
        order = np.argsort(-members.fitness, kind="stable")
        _, first = np.unique(cells[order], axis=0, return_index=True)
        fittest = np.sort(order[first])
        fittest = fittest[cells[fittest, 0] >= 0]
        fittest = fittest[members.fitness[fittest] > best[tuple(cells[fittest].T)]]
        best[tuple(cells[fittest].T)] = members.fitness[fittest]
        champions = np.stack([np.full(len(fittest), members.generation), fittest], axis=1)
        novelty = np.full(len(members), np.nan) if members.novelty is None else members.novelty
        won.append((champions, cells[fittest], members.fitness[fittest], novelty[fittest]))
    return BehaviorMap(names, grid, *(np.concatenate(each) for each in zip(*won, strict=True)))


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
