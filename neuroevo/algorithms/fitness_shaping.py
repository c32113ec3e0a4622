"""Rank-based fitness shaping: centered ranks (Salimans et al. 2017, https://arxiv.org/abs/1703.03864) and weights."""

from __future__ import annotations

import numpy as np


def centered_ranks(returns: np.ndarray) -> np.ndarray:
    """Rank all returns and space the ranks evenly over [-0.5, 0.5].

    Equal returns share the mean of their ranks, so that they have the same weight: if all returns are equal, or there
    is only one return, every rank is exactly 0. Uber's 2018 code breaks ties by the order of its sort: n equal returns
    get ranks from -0.5 to 0.5, so that theta takes a step that no difference in reward justifies. Equal scores are
    frequent in Atari games. Without ties the ranks equal those of that code, in float64. The ranks of -returns are
    exactly the negated ranks of returns.

    Args:
        returns: Numbers of any shape.

    Returns:
        Ranks, float64, in the shape of `returns`.

    Raises:
        ValueError: A return is not finite; the message names its index and value.
    """
    returns = np.asarray(returns, np.float64)
    flat = returns.ravel()
    for i in np.flatnonzero(~np.isfinite(flat))[:1]:
        index = ", ".join(str(part) for part in np.unravel_index(i, returns.shape))
        raise ValueError(f"return [{index}] is {flat[i]}, expected a finite number")
    if flat.size < 2:
        return np.zeros(returns.shape)
    _, group, count = np.unique(flat, return_inverse=True, return_counts=True)
    # A group of equal returns has the ranks before ... before + count - 1; twice their mean is an integer.
    before = np.cumsum(count) - count
    doubled = (2 * before + count - 1)[group]
    last = flat.size - 1
    return ((doubled - last) / (2 * last)).reshape(returns.shape)


def rank_weights(fitness: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Assign weights by rank, as by_rank(), after setting negative weights to 0 and normalizing their sum to 1."""
    weights = np.maximum(weights, 0.0)
    return by_rank(fitness, weights / weights.sum())


def by_rank(fitness: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Assign to each genome the value of its rank; genomes with equal fitness share the mean value of their ranks.

    Args:
        fitness: Finite numbers, [N].
        values: Values from the best rank to the worst, [N].

    Returns:
        The value of each genome, float64 [N].
    """
    order = np.argsort(-fitness, kind="stable")
    _, group = np.unique(-fitness[order], return_inverse=True)
    shared = np.bincount(group, values) / np.bincount(group)
    found = np.empty(len(fitness))
    found[order] = shared[group]
    return found
