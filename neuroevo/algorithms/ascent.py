"""Gradient ascent on a center by what antithetic pairs around it are worth (Salimans et al. 2017, section 2.1;
https://arxiv.org/abs/1703.03864): the steps that evolution strategies and their novelty-seeking kin share.

The noise vectors are never there: pairs are seeds, and their sum is made from the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, Strict

from neuroevo.algorithms.algorithm import Weights
from neuroevo.genome import Genome
from neuroevo.optimizers import Optimizer, OptimizerState

L2 = Annotated[float, Strict(), Field(ge=0, le=1e6)]  # of a setting: l2 * theta is subtracted from an estimate


def antithetic_pairs(center: Genome, seeds: Sequence[int], sigma: float) -> list[Genome]:
    """The center plus and minus sigma * noise of each of P seeds, [2P]: both of the first seed, both of the second, ...

    sigma: a float32 value.
    """
    return [center.child(seed, scale) for seed in seeds for scale in (sigma, -sigma)]


def estimate(shaped: np.ndarray, genomes: Sequence[Genome], weights: Weights, dimension: int) -> np.ndarray:
    """The direction in which theta gets fitter, float32 [D]: the sum of (shaped+ - shaped-) * noise over pairs / 2P.

    shaped: what genomes are worth, float64 [2P], of `genomes` as antithetic_pairs() orders them. As in the 2018 code
    it is not divided by sigma.
    """
    seeds = [genome.chain[-1][0] for genome in genomes[::2]]
    return weights.noise_sum(seeds, (shaped[::2] - shaped[1::2]) / len(genomes), dimension)


def ascend(
    theta: np.ndarray, estimate: np.ndarray, optimizer: Optimizer, optimizer_state: OptimizerState | None, l2: float
) -> tuple[np.ndarray, OptimizerState]:
    """theta, float32 [D], after a step along the estimate less l2 * theta, and the optimizer's state after it.

    optimizer_state: None before the first step. ValueError: the step makes a weight infinite or NaN.
    """
    state = optimizer.init(len(theta)) if optimizer_state is None else optimizer_state
    with np.errstate(over="ignore", invalid="ignore"):  # said below, or by the optimizer
        change, state = optimizer.step(state, np.float32(l2) * theta - estimate)
        after = theta + change
    for i in np.flatnonzero(~np.isfinite(after))[:1]:
        raise ValueError(
            f"the {optimizer.type} step takes weight {i} from {theta[i]:g} to {after[i]:g}, expected a number that is "
            f"finite in 32 bits; its stepsize is {optimizer.stepsize}"
        )
    return after, state


def norm(vector: np.ndarray) -> float:
    """Euclidean norm, added up in float64 and, unlike BLAS does it, in the same order on any number of threads."""
    return float(np.sqrt(np.sum(np.square(vector, dtype=np.float64))))
