"""How new a behavior is: the mean Euclidean distance to its k nearest neighbors (Lehman and Stanley 2011, Abandoning
Objectives: Evolution through the Search for Novelty Alone, https://doi.org/10.1162/EVCO_a_00025), and the archive.

Behaviors have few numbers (where a robot ended) or many (the RAM of a game at many moments). Few go through SciPy's
k-d tree; in many dimensions a tree has to look at everybody, so there all distances are computed. The numbers depend on
neither threads nor the size of blocks: each distance is computed by itself, in a fixed order, or from whole numbers,
whose matrix product is exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

FAILED = -1.0  # the novelty of a behavior that is not known: less than any distance

_TREE = 16  # numbers of a behavior up to which a tree is faster
_BLOCK, _PAIRS = 1 << 23, 1 << 24  # numbers of behaviors, and distances, that are in memory at a time
_LIMIT = 1e30  # no environment is that wide; squares stay finite


def known(behaviors: np.ndarray) -> np.ndarray:
    """Which of the behaviors [N, B] are known, bool [N]: of the others all episodes failed, or they are nonsense."""
    return (np.abs(behaviors) < _LIMIT).all(axis=1)  # false for NaN


def checked(behaviors: np.ndarray | None, count: int, archive: np.ndarray | None) -> np.ndarray:
    """The behaviors, [count, B]. ValueError: there are none, or their shape is not this, with the archive's B."""
    if behaviors is None:
        raise ValueError("there are no behaviors, which novelty search needs: the environment or evaluator has none")
    size = "B" if archive is None else archive.shape[1]
    if behaviors.ndim != 2 or len(behaviors) != count or size not in ("B", behaviors.shape[1]):
        raise ValueError(f"behaviors have shape {list(behaviors.shape)}, expected [{count}, {size}]")
    return behaviors


def novelty(behaviors: np.ndarray, archive: np.ndarray | None, k: int, *, peers: bool) -> np.ndarray:
    """The mean distance of each behavior [N, B] to the k nearest in the archive [A, B] or None, float64 [N].

    peers: also to the other behaviors; not to itself, but to others that are equal to it. With fewer than k neighbors
    it is the mean of those there are; with none it is 0. FAILED for behaviors that are not known.
    """
    found = known(behaviors)
    points = behaviors[found]
    distances = np.zeros((len(points), 0))
    if archive is not None:
        distances = nearest(points, archive, k)
    if peers:  # its own distance is 0, the least there is, wherever equal ones are
        distances = np.hstack([distances, nearest(points, points, k + 1)[:, 1:]])
    distances = np.sort(distances, axis=1)[:, :k]
    out = np.full(len(behaviors), FAILED)
    out[found] = distances.mean(axis=1) if distances.shape[1] else 0.0
    return out


def mean_and_highest(novelties: np.ndarray) -> tuple[float, float]:
    """Of those that are known, of novelties [N]; 0 where none is."""
    found = novelties[novelties != FAILED]
    return (float(found.mean()), float(found.max())) if found.size else (0.0, 0.0)


def nearest(points: np.ndarray, others: np.ndarray, count: int) -> np.ndarray:
    """Distances of the points [N, B] to the `count` nearest of the others [M, B], ascending.

    float64 [N, min(count, M)]. All have to be known. In many dimensions, whole numbers such as bytes of RAM take a
    fraction of others' time.
    """
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


def grown(archive: np.ndarray | None, behaviors: np.ndarray, limit: int = 0) -> np.ndarray | None:
    """The archive [A, B] with the behaviors [n, B] after it, of which the newest `limit` stay; 0: all do.

    It holds bytes as long as all numbers in it are such, and otherwise what it is given. None: it is still empty.
    """
    if len(behaviors) == 0:
        return archive
    if ((behaviors >= 0) & (behaviors <= 255) & (behaviors == np.rint(behaviors))).all():
        behaviors = behaviors.astype(np.uint8)
    together = behaviors if archive is None else np.concatenate([archive, behaviors])
    return together[-limit:]  # of 0: everything


def _products(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances, float64 [N, M], of whole numbers so small that every sum on the way is exact."""
    squares = [np.einsum("ij,ij->i", values, values) for values in (points, others)]
    return squares[0][:, None] + squares[1] - 2.0 * (points @ others.T)


def _magnitude(values: np.ndarray) -> float:
    """The largest absolute value; infinite if there is one that is not whole."""
    if values.dtype == np.uint8:
        return 255.0
    return max((float(np.abs(row).max()) if (row == np.rint(row)).all() else np.inf) for row in values)


def _blocks(count: int, size: int) -> Iterator[slice]:
    size = max(size, 1)
    return (slice(begin, begin + size) for begin in range(0, count, size))
