"""Heat maps of behaviors: current and former champions (fittest members) of each cell of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.algorithms.cells import CellSettings
from neuroevo.config.schema import Config
from neuroevo.core.archive import Grid
from neuroevo.core.errors import UserError
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CELLS = 50  # per axis if the algorithm has no grid


@dataclass(frozen=True, eq=False)
class BehaviorMap:
    """Members of a run that were the fittest of their cell when they were played, in the order of play.

    The last member of a cell is its champion.

    Attributes:
        names: Names of the two measures.
        grid: The cells.
        members: Generation and index of each of the I members, int64 [I, 2].
        cells: Cell of each member along the two axes, int64 [I, 2].
        scores: Fitness of each member, float64 [I].
        novelty: Novelty of each member, float64 [I]; NaN if unknown.
    """

    names: tuple[str, str]
    grid: Grid
    members: np.ndarray
    cells: np.ndarray
    scores: np.ndarray
    novelty: np.ndarray

    @property
    def fitness(self) -> np.ndarray:
        """The highest fitness of each cell, float64 of the grid's shape; NaN for empty cells."""
        best = np.full(self.grid.shape, -np.inf)
        np.maximum.at(best, tuple(self.cells.T), self.scores)
        return np.where(np.isinf(best), np.nan, best)

    @property
    def coverage(self) -> float:
        """The fraction of cells that a member has reached."""
        return float(np.mean(~np.isnan(self.fitness)))


def improvements(cells: np.ndarray, fitness: np.ndarray) -> np.ndarray:
    """Select the members that were fitter than all earlier members of their cell.

    Args:
        cells: Flat index of each member's cell, int64 [N], at least 0.
        fitness: Fitness of the members, float64 [N], in the order in which they were played.

    Returns:
        Indices of the selected members, int64 [I], ascending.
    """
    if not len(fitness):
        return np.zeros(0, np.int64)
    order = np.argsort(cells, kind="stable")
    # Ranks offset by cell make a single running maximum restart in each cell.
    ranks = np.unique(fitness, return_inverse=True)[1].reshape(-1)
    keys = (cells * len(fitness) + ranks)[order]
    before = np.concatenate([[-1], np.maximum.accumulate(keys)[:-1]])
    return np.sort(order[keys > before])


def algorithm_grid(config: Config) -> Grid | None:
    """Return the grid of a run's algorithm, or None if the algorithm has no grid."""
    return config.algorithm.grid if isinstance(config.algorithm, CellSettings) else None


def behavior_map(run: RunReader, axes: tuple[int, int] = (0, 1)) -> BehaviorMap:
    """Compute the map of a run's members by behavior.

    The grid is the algorithm's. For algorithms without a grid it has 50 x 50 cells between the environment's bounds, or
    between the lowest and highest value of any member where a bound is infinite.

    Args:
        run: A run of any algorithm whose behaviors are stored.
        axes: Indices of two of the environment's measures.

    Raises:
        UserError: No behaviors are stored, or the environment has fewer than two measures.
    """
    measures = run.config.environment.measures
    if len(measures) < 2:
        raise UserError(f"{run.config.env.name} has {len(measures)} measures, expected two for a map")
    ends = [axis - len(measures) for axis in axes]  # the last sample of a trajectory
    generations = [each for each in MembersReader(run.path).each() if each is not None and each.behaviors is not None]
    found = [each.behaviors[:, ends] for each in generations if each.behaviors is not None]
    behaviors = np.concatenate([np.zeros((0, 2)), *found])
    known = np.isfinite(behaviors).all(axis=1)
    if not known.any():
        raise UserError(f"the run in {run.path} has no behaviors of its members, see logging.members_megabytes")
    counts = [len(each) for each in generations]
    numbers = np.repeat([each.generation for each in generations], counts)
    members = np.stack([numbers, np.concatenate([np.arange(count) for count in counts])], axis=1)[known]
    fitness = np.concatenate([each.fitness for each in generations])[known]
    unknown = [np.full(count, np.nan) for count in counts]
    novelties = zip(generations, unknown, strict=True)
    novelty = np.concatenate([other if each.novelty is None else each.novelty for each, other in novelties])[known]
    behaviors = behaviors[known]
    grid = algorithm_grid(run.config)
    if grid is not None:
        low, high = ([bounds[axis] for axis in axes] for bounds in (grid.low, grid.high))
        shape = [grid.shape[axis] for axis in axes]
    else:
        chosen = [measures[axis] for axis in axes]
        low = _bounds([each.low for each in chosen], behaviors.min(axis=0))
        high = _bounds([each.high for each in chosen], np.nextafter(behaviors.max(axis=0), np.inf))
        shape = [_CELLS, _CELLS]
    grid = Grid(tuple(low), tuple(high), tuple(shape))
    cells = grid.cells(behaviors)
    better = improvements(np.ravel_multi_index((cells[:, 0], cells[:, 1]), grid.shape), fitness)
    names = measures[axes[0]].name, measures[axes[1]].name
    return BehaviorMap(names, grid, members[better], cells[better], fitness[better], novelty[better])


def _bounds(known: Sequence[float], seen: np.ndarray) -> list[float]:
    return [bound if math.isfinite(bound) else float(own) for bound, own in zip(known, seen, strict=True)]


def plot_maps(runs: Sequence[RunReader], axes: tuple[int, int] = (0, 1)) -> Figure:
    """Draw the maps of runs side by side with a common color scale.

    Args:
        runs: The runs, at least one.
        axes: Indices of two of the environment's measures.

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
