"""Search by one center that moves, and gradient ascent with a gradient estimated from antithetic pairs around it.

Salimans et al. 2017, section 2.1 (https://arxiv.org/abs/1703.03864). Evolution strategies and their variants share
these steps. No noise vector is ever stored: a pair is a seed, and the weighted sum of all noise vectors
is computed from the seeds.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, Strict

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.optimizers import Optimizer, OptimizerState
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Kind
from neuroevo.core.randomness import Purpose, draw_seeds

# The type of the setting weight_decay: weight_decay * theta is subtracted from the estimate.
WeightDecay = Annotated[float, Strict(), Field(ge=0, le=1e6)]


@dataclass(frozen=True, eq=False)
class CenterState(State):
    """The state of an algorithm that moves one center.

    Attributes:
        center: The genome around which the population is sampled.
    """

    center: Genome

    def moved(self, theta: np.ndarray, population: EvaluatedPopulation, **changes: Any) -> Any:
        """Return the state before the next generation.

        Args:
            theta: Weights of the new center, [D].
            population: The generation's population.
            changes: New values of other fields.

        Raises:
            ValueError: A weight is not finite in 32 bits.
        """
        center = Genome(Center(theta), network=self.center.network)
        steps = self.steps + population.steps
        return replace(self, center=center, generation=self.generation + 1, steps=steps, **changes)


class CenterSearch(Algorithm, ABC):
    """Base class of algorithms that move one center. The center is also the elite."""

    state_type: ClassVar[type[CenterState]] = CenterState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Make the state before generation 0; the center is the first given genome or, without genomes, a fresh one."""
        fresh = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)
        return self.state_type(seed, genomes[0] if genomes else Genome(fresh[0]))

    def elite(self, state: Any) -> Genome:
        """Return the center."""
        center: Genome = state.center
        return center


def antithetic_pairs(center: Genome, seeds: Sequence[int], sigma: float, kind: Kind = GAUSSIAN) -> list[Genome]:
    """Add sigma * noise to the center and subtract it, for each of P seeds.

    Args:
        center: The genome in the middle of every pair.
        seeds: The noise seeds of the P pairs.
        sigma: Standard deviation of the noise, a value that float32 represents exactly.
        kind: Kind of the noise.

    Returns:
        2P genomes: plus and minus of the first seed, plus and minus of the second, and so on.
    """
    return [center.child(seed, scale, kind) for seed in seeds for scale in (sigma, -sigma)]


def noise_seeds(genomes: Sequence[Genome]) -> list[int]:
    """Return the seed of the last mutation of each genome."""
    return [genome.mutation.seed for genome in genomes if genome.mutation is not None]


def estimate(shaped: np.ndarray, genomes: Sequence[Genome], weights: Weights) -> np.ndarray:
    """Estimate the gradient of fitness: the sum over pairs of (shaped+ - shaped-) * noise, divided by 2P.

    As in Uber's 2018 code, the sum is not divided by sigma.

    Args:
        shaped: Shaped fitness of each genome, float64 [2P].
        genomes: The 2P genomes in the order of antithetic_pairs().
        weights: The networks, which sum the noise.

    Returns:
        The direction in which fitness increases, float32 [D].
    """
    factors = (shaped[::2] - shaped[1::2]) / len(genomes)
    mutation = genomes[0].mutation
    return weights.noise_sum(
        noise_seeds(genomes[::2]), factors, genomes[0].network, GAUSSIAN if mutation is None else mutation.kind
    )


def ascend(
    theta: np.ndarray,
    estimate: np.ndarray,
    optimizer: Optimizer,
    optimizer_state: OptimizerState | None,
    weight_decay: float,
) -> tuple[np.ndarray, OptimizerState]:
    """Take one optimizer step along the estimate minus weight_decay * theta.

    Args:
        theta: Weights of the center, float32 [D].
        estimate: Estimated gradient of fitness, float32 [D].
        optimizer: The optimizer that computes the step.
        optimizer_state: State of the optimizer; None before the first step.
        weight_decay: Coefficient of the L2 penalty.

    Returns:
        The new theta, float32 [D], and the optimizer's state after the step.

    Raises:
        ValueError: The gradient is not finite, or the step would make a weight infinite or NaN.
    """
    state = optimizer.init(len(theta)) if optimizer_state is None else optimizer_state
    with np.errstate(over="ignore", invalid="ignore"):  # reported below, or by the optimizer
        change, state = optimizer.step(state, np.float32(weight_decay) * theta - estimate)
        after = theta + change
    for i in np.flatnonzero(~np.isfinite(after))[:1]:
        raise ValueError(
            f"the {optimizer.type} step takes weight {i} from {theta[i]:g} to {after[i]:g}, expected a number that is "
            f"finite in 32 bits; its learning_rate is {optimizer.learning_rate}"
        )
    return after, state
