"""sep-CMA-ES: CMA-ES with a diagonal covariance matrix (Ros and Hansen 2008, https://hal.science/inria-00287367).

It adapts a standard deviation for each weight and a global step size, and represents noise by seeds, so that it works
for networks of any size. The standard deviations follow the noise of the best half of a population, (D + 2) / 3 times
as fast as the covariances of CMA-ES.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neuroevo.algorithms.ascent import CenterSearch, noise_seeds
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.cumulation import Offspring, StepSize, StepSizeState, population_size
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.selection import finite
from neuroevo.algorithms.spread import SpreadState
from neuroevo.core.arrays import check_array
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Positive32, settings


@dataclass(frozen=True, eq=False)
class SepCMAESState(StepSizeState, SpreadState):
    """The state before a generation.

    Attributes:
        covariance_path: The evolution path of the standard deviations, float32 [D]; None in generation 0.
    """

    covariance_path: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: an inherited check fails, or the path is not float32 [D]."""
        super().check_state()
        if self.covariance_path is not None:
            dimension = None if self.spread is None else len(self.spread)
            check_array("the covariance path", self.covariance_path, [dimension], np.float32)


@settings
class SepCMAES(CenterSearch):
    """CMA-ES with a diagonal covariance matrix."""

    population: Offspring | None = None
    """Genomes per generation; by default 4 + 3 ln D, which is too small for very noisy returns."""
    sigma: Positive32 = 0.1
    """Initial step size: the standard deviation of every weight."""

    state_type = SepCMAESState

    def ask(self, state: SepCMAESState, weights: Weights) -> list[Genome]:
        """Return offspring of the center, each with its own noise seed."""
        spread = state.deviations(1.0, weights)
        count = population_size(self.population, len(spread))
        seeds = draw_seeds(count, state.seed, state.generation, Purpose.MUTATIONS)
        kind, sigma = Scaled(Center(spread)), state.step_size(self.sigma)
        return [state.center.child(seed, sigma, kind) for seed in seeds]

    def tell(self, state: SepCMAESState, population: EvaluatedPopulation, weights: Weights) -> SepCMAESState:
        """Move the center to the weighted mean of the best half; adapt standard deviations and step size.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        fitness = finite(population.fitness, len(population.genomes))
        parents = len(fitness) // 2
        logarithms = np.maximum(np.log(parents + 1) - np.log(np.arange(1, len(fitness) + 1)), 0.0)
        shares = rank_weights(fitness, logarithms)
        mean, squares = weights.noise_sums(noise_seeds(population.genomes), shares, shares, state.center.network)
        n, mass = len(mean), float(1 / np.sum(np.square(logarithms / logarithms.sum())))
        spread, sigma = state.deviations(1.0, weights), state.step_size(self.sigma)
        rule = StepSize(n, mass, (mass + 2) / (n + mass + 3))
        path, rate = rule.path(state.path, mean), 4 / (n + 4)
        missing = rate * (2 - rate) if rule.is_long(path, state.generation) else 0.0
        along = (
            np.zeros(n, np.float32) if state.covariance_path is None else np.float32(1 - rate) * state.covariance_path
        )
        if not missing:
            along = along + np.float32(math.sqrt(rate * (2 - rate) * mass)) * (spread * mean)
        of_path = 2 / ((n + 1.3) ** 2 + mass)
        of_best = 2 / mass / (n + math.sqrt(2)) ** 2 + (1 - 1 / mass) * min(1, (2 * mass - 1) / ((n + 2) ** 2 + mass))
        of_best = min((n + 2) / 3 * of_best, 1 - of_path)
        kept = np.float32(1 + of_path * missing - of_path) + np.float32(of_best) * squares
        variance = kept * np.square(spread) + np.float32(of_path) * np.square(along)
        theta = weights.theta(state.center) + np.float32(sigma) * (spread * mean)
        moved = {"spread": np.sqrt(variance), "path": path, "covariance_path": along}
        return state.moved(theta, population, sigma=float(np.float32(sigma * rule.factor(path))), **moved)

    def metrics(self, before: SepCMAESState, after: SepCMAESState) -> dict[str, float]:
        """Return the mean standard deviation of the noise."""
        return {"sigma": before.step_size(self.sigma) * before.mean_deviation(1.0)}
