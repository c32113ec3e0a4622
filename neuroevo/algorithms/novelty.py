"""Novelty of a behavior, the mean Euclidean distance to its k nearest neighbors, and the archive of behaviors.

Lehman and Stanley 2011, Abandoning Objectives: Evolution through the Search for Novelty Alone
(https://doi.org/10.1162/EVCO_a_00025).

A behavior has few dimensions (the position where a robot ended) or many (the RAM of a game at many moments). With few,
SciPy's k-d tree finds the neighbors; with many, a tree would visit every point, so all distances are computed. The
results depend on neither the number of threads nor the size of the blocks: each distance is computed separately, in a
fixed order, or from integers, whose matrix product is exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuroevo.core.arrays import check_array

FAILED = -1.0  # the novelty of an unknown behavior: less than any distance

_DTYPES = (np.float64, np.float32, np.uint8)  # means of behaviors, and bytes in an archive

_TREE = 16  # dimensions up to which a tree is faster
_BLOCK, _PAIRS = 1 << 23, 1 << 24  # elements of behaviors, and distances, that are in memory at a time
_LIMIT = 1e30  # larger than any position in an environment, and small enough that squares stay finite


def known(behaviors: np.ndarray) -> np.ndarray:
    """Tells which behaviors are known; the others are from genomes whose episodes all failed, or out of any range.

    Args:
        behaviors: Floats or integers [N, B].

    Returns:
        bool [N].
    """
    return (np.abs(behaviors) < _LIMIT).all(axis=1)  # false for NaN


def checked(behaviors: np.ndarray | None, count: int, archive: np.ndarray | None) -> np.ndarray:
    """Returns the behaviors if their shape is as expected.

    Args:
        behaviors: What the episodes recorded, expected to be [count, B].
        count: Number of genomes.
        archive: [A, B], which determines B; None while it is empty.

    Returns:
        The behaviors, [count, B].

    Raises:
        ValueError: There are no behaviors, or they have another shape.
    """
    if behaviors is None:
        raise ValueError("there are no behaviors, which novelty search needs: the environment or evaluator has none")
    size = "B" if archive is None else archive.shape[1]
    if behaviors.ndim != 2 or len(behaviors) != count or size not in ("B", behaviors.shape[1]):
        raise ValueError(f"behaviors have shape {list(behaviors.shape)}, expected [{count}, {size}]")
    return behaviors


def check_behaviors(archive: np.ndarray | None, *behaviors: np.ndarray | None) -> None:
    """Checks the behaviors of a state.

    Args:
        archive: [A, B], or None.
        behaviors: [B] each, or None.

    Raises:
        ValueError: They are not of one B, or not finite.
    """
    size: int | None = None
    if archive is not None:
        check_array("the archive", archive, [None, None], *_DTYPES)
        size = archive.shape[1]
    for each in behaviors:
        if each is not None:
            check_array("a behavior", each, [size], *_DTYPES)
            size = len(each)


def novelty(behaviors: np.ndarray, archive: np.ndarray | None, k: int, *, peers: bool) -> np.ndarray:
    """Computes the novelty of each behavior: its mean distance to its k nearest neighbors.

    Args:
        behaviors: [N, B].
        archive: Neighbors, [A, B], or None.
        k: Number of neighbors. If there are fewer, novelty is the mean distance to all of them; 0 if there are none.
        peers: Whether the other behaviors are neighbors too. A behavior is not its own neighbor, but other behaviors
            that are equal to it are.

    Returns:
        Novelties, float64 [N]; FAILED for unknown behaviors.
    """
    found = known(behaviors)
    points = behaviors[found]
    distances: np.ndarray = np.zeros((len(points), 0))
    if archive is not None:
        distances = nearest(points, archive, k)
    if peers:  # the first column is 0: a point's distance to itself, or to an equal one
        distances = np.hstack([distances, nearest(points, points, k + 1)[:, 1:]])
    distances = np.sort(distances, axis=1)[:, :k]
    out = np.full(len(behaviors), FAILED)
    out[found] = distances.mean(axis=1) if distances.shape[1] else 0.0
    return out


def unknown_as_nan(novelties: np.ndarray) -> np.ndarray:
    """Novelties for whoever looks at them.

    Args:
        novelties: float64 [N], FAILED where unknown.

    Returns:
        float64 [N], NaN where unknown.
    """
    return np.where(novelties == FAILED, np.nan, novelties)


def mean_and_highest(novelties: np.ndarray) -> tuple[float, float]:
    """Returns the mean and the highest of the known novelties, both 0 if none is known.

    Args:
        novelties: float64 [N], FAILED where unknown.

    Returns:
        The mean and the highest.
    """
    found = novelties[novelties != FAILED]
    return (float(found.mean()), float(found.max())) if found.size else (0.0, 0.0)


def nearest(points: np.ndarray, others: np.ndarray, count: int) -> np.ndarray:
    """Computes the distances of each point to its nearest neighbors among the others.

    In many dimensions, integers such as bytes of RAM take a fraction of the time that other numbers take.

    Args:
        points: Known behaviors, [N, B].
        others: Known behaviors, [M, B].
        count: Number of neighbors.

    Returns:
        Distances in ascending order, float64 [N, min(count, M)].
    """
    from scipy.spatial import cKDTree  # here: it would be a third of what every command takes to start
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


def grown(archive: np.ndarray | None, behaviors: np.ndarray, limit: int = 0) -> np.ndarray | None:
    """Appends behaviors to the archive.

    The archive holds bytes (uint8) as long as every number in it is an integer in [0, 255], and otherwise the dtype
    that it is given.

    Args:
        archive: [A, B], or None if it is empty.
        behaviors: [n, B].
        limit: Capacity of the archive, which keeps the newest behaviors; 0: no limit.

    Returns:
        The new archive, or None if it is still empty.
    """
    if len(behaviors) == 0:
        return archive
    if ((behaviors >= 0) & (behaviors <= 255) & (behaviors == np.rint(behaviors))).all():
        behaviors = behaviors.astype(np.uint8)
    together = behaviors if archive is None else np.concatenate([archive, behaviors])
    return together[-limit:]  # [-0:] is the whole archive


def _products(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Computes squared distances, float64 [N, M], of integers so small that every intermediate sum is exact."""
    squares = [np.einsum("ij,ij->i", values, values) for values in (points, others)]
    return squares[0][:, None] + squares[1] - 2.0 * (points @ others.T)


def _magnitude(values: np.ndarray) -> float:
    """Returns the largest absolute value, or infinity if a value is not an integer."""
    if values.dtype == np.uint8:
        return 255.0
    return max((float(np.abs(row).max()) if (row == np.rint(row)).all() else np.inf) for row in values)


def _blocks(count: int, size: int) -> Iterator[slice]:
    size = max(size, 1)
    return (slice(begin, begin + size) for begin in range(0, count, size))
