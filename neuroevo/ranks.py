"""Centered ranks, the fitness shaping of Salimans et al. 2017 (https://arxiv.org/abs/1703.03864)."""

from __future__ import annotations

import numpy as np


def centered_ranks(returns: np.ndarray) -> np.ndarray:
    """Ranks of all returns among each other, spread evenly over [-0.5, 0.5]; returns: of any shape, the ranks' too.

    Equal returns share the mean of their ranks, so that equal returns are worth the same: with all returns equal, or
    one return, every rank is exactly 0. The 2018 code let its sort decide: of n equal returns one got -0.5, another
    0.5 and the rest what lies between, and theta took a step that no reward was behind; Atari scores are often equal.
    Without ties the ranks are its own, in float64. The ranks of -returns are exactly minus those of returns.

    ValueError: a return is not finite; it names the index and the value.
    """
    returns = np.asarray(returns, np.float64)
    flat = returns.ravel()
    for i in np.flatnonzero(~np.isfinite(flat))[:1]:
        index = ", ".join(str(part) for part in np.unravel_index(i, returns.shape))
        raise ValueError(f"return [{index}] is {flat[i]}, expected a finite number")
    if flat.size < 2:
        return np.zeros(returns.shape)
    _, group, count = np.unique(flat, return_inverse=True, return_counts=True)
    # A group of equal returns has ranks before ... before + count - 1; twice their mean is an integer.
    before = np.cumsum(count) - count
    doubled = (2 * before + count - 1)[group]
    last = flat.size - 1
    return ((doubled - last) / (2 * last)).reshape(returns.shape)
