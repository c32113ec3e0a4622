"""Canonical evolution strategies (Chrabaszcz, Loshchilov and Hutter 2018, https://arxiv.org/abs/1802.08842).

A (mu, lambda) strategy: the center moves by the weighted mean of the noise of the mu best of lambda offspring, without
an optimizer. Cumulative step-size adaptation (cumulation.py) changes the standard deviation of the noise.
"""

from __future__ import annotations

import numpy as np

from neuroevo.algorithms.ascent import CenterSearch, noise_seeds
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.cumulation import StepSize, StepSizeState
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.selection import finite
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive32, settings


@settings
class CanonicalES(CenterSearch):
    """Canonical evolution strategies, (mu, lambda)."""

    population: Count = 800
    """Genomes per generation (lambda), each the center plus independent noise."""
    parents: Count = 50
    """Number of genomes that move the center (mu), the best ones."""
    sigma: Positive32 = 0.05
    """Standard deviation of the noise, the same for every weight; only the initial value if adapt_sigma is true."""
    adapt_sigma: bool = True
    """Whether cumulative step-size adaptation changes sigma."""

    state_type = StepSizeState

    def __post_init__(self) -> None:
        if self.parents > self.population:
            raise ValueError(f"parents is {self.parents}, expected at most the population, {self.population}")

    def ask(self, state: StepSizeState, weights: Weights) -> list[Genome]:
        """Return offspring of the center, each with its own noise seed."""
        seeds = draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS)
        sigma = state.step_size(self.sigma)
        return [state.center.child(seed, sigma, self.mutation_kind) for seed in seeds]

    def tell(self, state: StepSizeState, population: EvaluatedPopulation, weights: Weights) -> StepSizeState:
        """Move the center by the weighted mean of the best offspring's noise, and adapt sigma.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        fitness = finite(population.fitness, len(population.genomes))
        logarithms = np.zeros(len(fitness))
        logarithms[: self.parents] = np.log(self.parents + 0.5) - np.log(np.arange(1, self.parents + 1))
        shares = rank_weights(fitness, logarithms)
        mean = weights.noise_sum(noise_seeds(population.genomes), shares, state.center.network)
        theta = weights.theta(state.center) + np.float32(state.step_size(self.sigma)) * mean
        sigma, path = self._adapted(state, mean, 1 / float(np.sum(np.square(logarithms / logarithms.sum()))))
        return state.moved(theta, population, sigma=sigma, path=path)

    def metrics(self, before: StepSizeState, after: StepSizeState) -> dict[str, float]:
        """Return sigma."""
        return {"sigma": before.step_size(self.sigma)}

    def _adapted(self, state: StepSizeState, mean: np.ndarray, mass: float) -> tuple[float, np.ndarray | None]:
        """Return the next sigma and path.

        Args:
            state: The state before the generation.
            mean: Weighted mean of the best offspring's noise, float32 [D].
            mass: Variance-effective number of parents, mu_eff.
        """
        if not self.adapt_sigma:
            return state.step_size(self.sigma), None
        rule = StepSize(len(mean), mass, (mass + 2) / (len(mean) + mass + 5))
        path = rule.path(state.path, mean)
        return float(np.float32(state.step_size(self.sigma) * rule.factor(path))), path
