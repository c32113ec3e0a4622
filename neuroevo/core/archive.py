"""Archive of behaviors, for the distances of novelty search and the elites of quality diversity.

A behavior has few dimensions (a robot's final position) or many (the RAM of a game at many points in time). With few
dimensions, SciPy's k-d tree finds the neighbors; with many, a tree would visit every point, so all distances are
computed. The results depend neither on the number of threads nor on the size of the blocks: each distance is computed
separately, in a fixed order, or from integers, whose matrix product is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuroevo.core.arrays import Checked, check_array
from neuroevo.core.genome import Genome

BEHAVIOR_DTYPES = (np.float64, np.float32, np.uint8)  # floats for means of behaviors, bytes in an archive

_TREE = 16  # largest dimension for which a tree is faster
_BLOCK, _PAIRS = 1 << 23, 1 << 24  # maximum numbers of behavior elements and of distances in memory


@dataclass(frozen=True)
class Grid:
    """Regular grid over a space of behaviors with B dimensions.

    Attributes:
        low: Lower bound of each dimension, [B].
        high: Upper bound of each dimension, [B].
        shape: Number of cells along each dimension, [B].
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        bounds = zip(self.low, self.high, self.shape, strict=True)
        for axis, (low, high, count) in enumerate(bounds):
            if not (low < high and count > 0):
                raise ValueError(f"axis {axis} of a grid has {count} cells from {low} to {high}, expected low < high")

    def cells(self, behaviors: np.ndarray) -> np.ndarray:
        """Return the indices of each behavior's cell along the dimensions.

        Args:
            behaviors: Numbers, [N, B]. Behaviors out of bounds belong to the nearest cell.

        Returns:
            int64 [N, B], each in [0, shape); -1 where a behavior has a NaN.
        """
        low, high, shape = (np.array(each) for each in (self.low, self.high, self.shape))
        unknown = np.isnan(behaviors).any(axis=1, keepdims=True)
        places = np.clip(np.floor((behaviors - low) / (high - low) * shape), 0, shape - 1)
        return np.where(unknown, -1, np.nan_to_num(places).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Archive(Checked):
    """Immutable archive of behaviors and, in quality diversity, of the genomes that show them.

    Attributes:
        behaviors: Behaviors, [A, B]; None while the archive is empty.
        genomes: The A genomes; empty if only behaviors are kept, as in novelty search.
        fitness: Fitness of the genomes, float64 [A]; None if only behaviors are kept.
    """

    behaviors: np.ndarray | None = None
    genomes: tuple[Genome, ...] = ()
    fitness: np.ndarray | None = None

    def __len__(self) -> int:
        return 0 if self.behaviors is None else len(self.behaviors)

    @property
    def dimension(self) -> int | None:
        """Return the length of a behavior, B; None while the archive is empty."""
        return None if self.behaviors is None else self.behaviors.shape[1]

    def append(self, behaviors: np.ndarray, limit: int = 0) -> Archive:
        """Append behaviors.

        The archive's dtype is uint8 as long as all its numbers are integers in [0, 255], and otherwise that of the
        behaviors.

        Args:
            behaviors: Behaviors to append, [n, B].
            limit: Capacity of the archive, which keeps the newest behaviors; 0: no limit.

        Returns:
            The extended archive.
        """
        if len(behaviors) == 0:
            return self
        if ((behaviors >= 0) & (behaviors <= 255) & (behaviors == np.rint(behaviors))).all():
            behaviors = behaviors.astype(np.uint8)
        together = behaviors if self.behaviors is None else np.concatenate([self.behaviors, behaviors])
        return Archive(together[-limit:])  # [-0:] is the whole archive

    def nearest(self, points: np.ndarray, count: int) -> np.ndarray:
        """Compute the distances of points [N, B] to their nearest neighbors in the archive, float64 [N, count or A]."""
        return np.zeros((len(points), 0)) if self.behaviors is None else nearest(points, self.behaviors, count)

    def keep_best(self, grid: Grid, behaviors: np.ndarray, genomes: Sequence[Genome], fitness: np.ndarray) -> Archive:
        """Add genomes and keep the fittest genome of each cell of a grid; the oldest genome wins ties.

        Args:
            grid: The grid.
            behaviors: Behavior of each genome, floats [n, B]; genomes with a NaN are discarded.
            genomes: The n genomes.
            fitness: Fitness of the genomes, float64 [n].

        Returns:
            The new archive, ordered by cell.
        """
        if self.behaviors is not None and self.fitness is not None:
            behaviors = np.concatenate([self.behaviors, behaviors])
            genomes, fitness = (*self.genomes, *genomes), np.concatenate([self.fitness, fitness])
        cells = grid.cells(behaviors)
        order = np.argsort(-fitness, kind="stable")
        found, first = np.unique(cells[order], axis=0, return_index=True)
        kept = order[first[found[:, 0] >= 0]]
        return Archive(behaviors[kept], tuple(genomes[i] for i in kept), fitness[kept]) if len(kept) else self

    def check_state(self) -> None:
        """Check shapes and dtypes.

        Raises:
            ValueError: A shape or dtype is not valid for an archive.
        """
        if self.behaviors is not None:
            check_array("the archive", self.behaviors, [None, None], *BEHAVIOR_DTYPES)
        if self.fitness is not None:
            check_array("the archive's fitness", self.fitness, [len(self)], np.float64)
        if len(self.genomes) != (0 if self.fitness is None else len(self.fitness)):
            raise ValueError(f"the archive has {len(self.genomes)} genomes, expected as many as fitness values")


def nearest(points: np.ndarray, others: np.ndarray, count: int) -> np.ndarray:
    """Compute the distances of each point to its nearest neighbors among the others.

    In many dimensions, integers such as bytes of RAM are several times faster than other numbers.

    Args:
        points: Known behaviors, [N, B].
        others: Possible neighbors, known behaviors, [M, B].
        count: Number of neighbors.

    Returns:
        Distances in ascending order, float64 [N, min(count, M)].
    """
    from scipy.spatial import cKDTree  # imported here, as it would take a third of every command's startup time
    from scipy.spatial.distance import cdist

    count = min(count, len(others))
    if count == 0 or len(points) == 0:
        return np.zeros((len(points), count))
    if points.shape[1] <= _TREE:
        return cKDTree(others).query(points, k=np.arange(1, count + 1))[0]
    exact = _magnitude(points) + _magnitude(others) < 2**26.5 / np.sqrt(points.shape[1])
    squared = np.empty((len(points), count))
    for rows in _blocks(len(points), min(_BLOCK // points.shape[1], _PAIRS // len(others))):
        block = points[rows].astype(np.float64)
        all_squared = np.empty((len(block), len(others)))
        for columns in _blocks(len(others), _BLOCK // points.shape[1]):
            other = others[columns].astype(np.float64)
            all_squared[:, columns] = _products(block, other) if exact else cdist(block, other, "sqeuclidean")
        squared[rows] = np.sort(np.partition(all_squared, count - 1, axis=1)[:, :count], axis=1)
    return np.sqrt(squared)


def _products(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Compute squared distances, float64 [N, M], of integers small enough that every intermediate sum is exact."""
    squares = [np.einsum("ij,ij->i", values, values) for values in (points, others)]
    return squares[0][:, None] + squares[1] - 2.0 * (points @ others.T)


def _magnitude(values: np.ndarray) -> float:
    """Return the largest absolute value, or infinity if a value is not an integer."""
    if values.dtype == np.uint8:
        return 255.0
    return max((float(np.abs(row).max()) if (row == np.rint(row)).all() else np.inf) for row in values)


def _blocks(count: int, size: int) -> Iterator[slice]:
    size = max(size, 1)
    return (slice(begin, begin + size) for begin in range(0, count, size))
