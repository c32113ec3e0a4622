"""A standard deviation of noise for each weight, which algorithms with a search distribution adapt."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroevo.core.arrays import check_array
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome


def spread_of(state: Any, sigma: float, weights: Weights) -> np.ndarray:
    """Return a state's standard deviations.

    Args:
        state: Its `spread` is None before the first generation.
        sigma: The standard deviation at the start.
        weights: The networks.

    Returns:
        float32 [D].
    """
    if state.spread is not None:
        spread: np.ndarray = state.spread
        return spread
    return np.full(weights.dimensions[state.center.network], sigma, np.float32)


def mean_spread(spread: np.ndarray | None, sigma: float) -> float:
    """Return the mean standard deviation, for metrics.

    Args:
        spread: Those of a state; None before the first generation.
        sigma: The standard deviation at the start.
    """
    return sigma if spread is None else float(np.mean(spread, dtype=np.float64))


def check_spread(spread: np.ndarray | None, center: Genome) -> None:
    """Check a state's standard deviations.

    Args:
        spread: They, or None.
        center: The genome that they belong to.

    Raises:
        ValueError: They are not positive float32 [D] of the center's D.
    """
    if spread is None:
        return
    known = isinstance(center.root, Center) and center.root.has_weights and not center.depth
    check_array("the spread", spread, center.root.vector.shape if known else [None], np.float32)  # type: ignore
    if (spread <= 0).any():
        raise ValueError("the spread has numbers that are not above 0")
