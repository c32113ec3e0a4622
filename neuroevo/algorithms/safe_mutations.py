"""Safe mutations by rescaling: SM-R of Lehman et al. 2018 (https://arxiv.org/abs/1712.06563).

In some directions a small step changes a network's outputs completely, in other directions a large step has no effect.
A line search therefore scales the noise of each offspring so that the network's outputs for the environment's reference
batch differ from its parent's outputs by a given amount.

The paper's other method, SM-G, divides the noise of each weight by the sensitivity of the outputs. A run would have to
store a vector of D numbers for each parent: 320 MB per generation for 20 parents of LargeModel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome

_TRIALS = 4  # maximum number of scales to try; each trial evaluates the network once
_TOLERANCE = 0.1  # relative tolerance of the change of outputs
_RANGE = 100.0  # largest ratio of a scale to the initial scale, and vice versa


def rescaled(
    parents: Sequence[Genome], seeds: Sequence[int], first: Sequence[float], wanted: float, weights: Weights
) -> list[float]:
    """Find scales of mutations with which outputs change by a given amount.

    Args:
        parents: Parent of each offspring, [N].
        seeds: Noise seed of each offspring, [N].
        first: Initial scale of the search for each offspring, [N].
        wanted: Target mean squared change of an output.
        weights: The networks.

    Returns:
        N scales that float32 represents exactly, each within a factor of 100 of its initial scale.

    Raises:
        UserError: There is no reference batch.
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
    """Return the best scale tried by a secant search on logarithms, which initially assumes a quadratic change."""
    scale, slope = float(np.float32(first)), 2.0
    tried: list[tuple[float, float]] = []  # logarithms of change / wanted and of the scale
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
