"""Gradient ascent on a centre by what antithetic pairs around it are worth (Salimans et al. 2017, section 2.1;
https://arxiv.org/abs/1703.03864): the steps that evolution strategies and their novelty-seeking kin share.

The noise vectors are never there: pairs are seeds, and their sum is made from the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, Strict

from neuroevo.algorithms.optimizers import Optimiser, OptimiserState
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome

L2 = Annotated[float, Strict(), Field(ge=0, le=1e6)]  # of a setting: l2 * theta is subtracted from an estimate


def antithetic_pairs(centre: Genome, seeds: Sequence[int], sigma: float) -> list[Genome]:
    """The centre plus and minus sigma * noise of each of P seeds, [2P]: both of the first seed, both of the second, ...

    sigma: a float32 value.
    """
    return [centre.child(seed, scale) for seed in seeds for scale in (sigma, -sigma)]


def estimate(shaped: np.ndarray, genomes: Sequence[Genome], weights: Weights, dimension: int) -> np.ndarray:
    """The direction in which theta gets fitter, float32 [D]: the sum of (shaped+ - shaped-) * noise over pairs / 2P.

    shaped: what genomes are worth, float64 [2P], of `genomes` as antithetic_pairs() orders them. As in the 2018 code
    it is not divided by sigma.
    """
    seeds = [genome.chain[-1][0] for genome in genomes[::2]]
    return weights.noise_sum(seeds, (shaped[::2] - shaped[1::2]) / len(genomes), dimension)


def ascend(
    theta: np.ndarray, estimate: np.ndarray, optimiser: Optimiser, optimiser_state: OptimiserState | None, l2: float
) -> tuple[np.ndarray, OptimiserState]:
    """theta, float32 [D], after a step along the estimate less l2 * theta, and the optimiser's state after it.

    optimiser_state: None before the first step. ValueError: the step makes a weight infinite or NaN.
    """
    state = optimiser.init(len(theta)) if optimiser_state is None else optimiser_state
    with np.errstate(over="ignore", invalid="ignore"):  # said below, or by the optimiser
        change, state = optimiser.step(state, np.float32(l2) * theta - estimate)
        after = theta + change
    for i in np.flatnonzero(~np.isfinite(after))[:1]:
        raise ValueError(
            f"the {optimiser.type} step takes weight {i} from {theta[i]:g} to {after[i]:g}, expected a number that is "
            f"finite in 32 bits; its stepsize is {optimiser.stepsize}"
        )
    return after, state


def norm(vector: np.ndarray) -> float:
    """Euclidean norm, added up in float64 and, unlike BLAS does it, in the same order on any number of threads."""
    return float(np.sqrt(np.sum(np.square(vector, dtype=np.float64))))
