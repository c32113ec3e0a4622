"""Safe mutations by rescaling: SM-R of Lehman et al. 2018 (https://arxiv.org/abs/1712.06563).

In some directions a small step changes everything that a network does, in others a large one changes nothing. The noise
of each offspring therefore gets a scale of its own, found by a line search, with which the network's outputs for the
environment's reference batch differ from its parent's by a given amount.

The paper's other method, SM-G, divides the noise weight by weight by the outputs' sensitivity. It needs a vector of D
numbers for each parent, which a run would have to keep: 320 MB a generation for 20 parents of LargeModel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome

_TRIALS = 4  # of a scale, at most: each evaluates the network once
_TOLERANCE = 0.1  # relative, of the change of outputs
_RANGE = 100.0  # a scale is within this factor of the first


def rescaled(
    parents: Sequence[Genome], seeds: Sequence[int], first: Sequence[float], wanted: float, weights: Weights
) -> list[float]:
    """Find scales of mutations with which outputs change by the amount that is wanted.

    Args:
        parents: A parent for each offspring, [N].
        seeds: The seed of the noise of each, [N].
        first: The scale that is tried first for each.
        wanted: Mean squared change of an output.
        weights: The networks.

    Returns:
        N scales that float32 represents exactly, each within a factor of 100 of the one tried first.

    Raises:
        UserError: As Weights.output_change() does.
    """
    offspring: dict[Genome, list[int]] = {}
    for i, parent in enumerate(parents):
        offspring.setdefault(parent, []).append(i)
    scales = list(first)
    for parent, indices in offspring.items():
        change = weights.output_change(parent)
        for i in indices:
            scales[i] = _search(change, seeds[i], first[i], wanted)
    return scales


def _search(change: Callable[[int, float], float], seed: int, first: float, wanted: float) -> float:
    """Return the best scale tried by a secant search in logarithms, which begins as if the change were quadratic."""
    scale, slope = float(np.float32(first)), 2.0
    tried: list[tuple[float, float]] = []  # logarithms of the change, over what is wanted, and of the scale
    for _ in range(_TRIALS):
        ratio = change(seed, scale) / wanted
        excess = math.log(min(max(ratio, _RANGE**-2), _RANGE**2)) if math.isfinite(ratio) else math.log(_RANGE**2)
        tried.append((excess, math.log(scale)))
        if abs(ratio - 1) <= _TOLERANCE:
            break
        if len(tried) > 1 and tried[-1][1] != tried[-2][1]:
            slope = min(max((excess - tried[-2][0]) / (tried[-1][1] - tried[-2][1]), 0.5), 8.0)
        scale = float(np.float32(min(max(math.exp(tried[-1][1] - excess / slope), first / _RANGE), first * _RANGE)))
    return float(np.float32(math.exp(min(tried, key=lambda each: abs(each[0]))[1])))
