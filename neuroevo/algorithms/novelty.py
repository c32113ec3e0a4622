"""Novelty of a behavior: the mean Euclidean distance to its k nearest neighbors.

Lehman and Stanley 2011, Abandoning Objectives: Evolution through the Search for Novelty Alone
(https://doi.org/10.1162/EVCO_a_00025). The neighbors come from an archive (neuroevo/core/archive.py) and, if behaviors
are compared with their peers, from the rest of the population.
"""

from __future__ import annotations

import numpy as np

from neuroevo.core.archive import BEHAVIOR_DTYPES, Archive, nearest
from neuroevo.core.arrays import check_array

_LIMIT = 1e30  # larger than any position in an environment, and small enough that squares stay finite


def known(behaviors: np.ndarray) -> np.ndarray:
    """Return which behaviors are known. A behavior is unknown if all episodes failed or a number is out of range.

    Args:
        behaviors: Floats or integers [N, B].

    Returns:
        bool [N].
    """
    return (np.abs(behaviors) < _LIMIT).all(axis=1)  # false for NaN


def validate_behaviors(behaviors: np.ndarray | None, count: int, archive: Archive | None = None) -> np.ndarray:
    """Return the behaviors if they have the expected shape.

    Args:
        behaviors: Recorded behaviors, expected shape [count, B].
        count: Number of genomes.
        archive: Archive that determines B; any B is accepted if it is empty or None.

    Returns:
        The behaviors, [count, B].

    Raises:
        ValueError: There are no behaviors, or they have another shape.
    """
    if behaviors is None:
        raise ValueError("there are no behaviors: the algorithm needs an environment and evaluator that record them")
    size = (archive and archive.dimension) or "B"
    if behaviors.ndim != 2 or len(behaviors) != count or size not in ("B", behaviors.shape[1]):
        raise ValueError(f"behaviors have shape {list(behaviors.shape)}, expected [{count}, {size}]")
    return behaviors


def check_behaviors(archive: Archive, *behaviors: np.ndarray | None) -> None:
    """Check behaviors of a state.

    Args:
        archive: Archive that determines B; any B is accepted if it is empty.
        behaviors: Behaviors, [B] each, or None.

    Raises:
        ValueError: The behaviors have different lengths or are not finite.
    """
    size = archive.dimension
    for each in behaviors:
        if each is not None:
            check_array("a behavior", each, [size], *BEHAVIOR_DTYPES)
            size = len(each)


def novelty(behaviors: np.ndarray, archive: Archive, k: int, *, peers: bool) -> np.ndarray:
    """Compute the novelty of each behavior: its mean distance to its k nearest neighbors.

    Args:
        behaviors: Behaviors, [N, B].
        archive: Archive of possible neighbors.
        k: Number of neighbors. With fewer neighbors, novelty is the mean distance to all of them; without any, 0.
        peers: Whether the other behaviors are possible neighbors, too. A behavior is not its own neighbor, but other
            behaviors equal to it are.

    Returns:
        Novelties, float64 [N]; NaN for unknown behaviors.
    """
    found = known(behaviors)
    points = behaviors[found]
    distances = archive.nearest(points, k)
    if peers:  # the first column is 0: a point's distance to itself, or to an equal one
        distances = np.hstack([distances, nearest(points, points, k + 1)[:, 1:]])
    distances = np.sort(distances, axis=1)[:, :k]
    out = np.full(len(behaviors), np.nan)
    out[found] = distances.mean(axis=1) if distances.shape[1] else 0.0
    return out


def mean_and_highest(novelties: np.ndarray) -> tuple[float, float]:
    """Return the mean and the maximum of novelties [N], ignoring NaN; both are 0 if all are NaN."""
    found = novelties[~np.isnan(novelties)]
    return (float(found.mean()), float(found.max())) if found.size else (0.0, 0.0)
