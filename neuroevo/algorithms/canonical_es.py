"""Canonical evolution strategies (Chrabaszcz, Loshchilov and Hutter 2018, https://arxiv.org/abs/1802.08842).

A (mu, lambda) strategy: the center moves by the weighted mean of the noise of the mu best of lambda offspring, without
an optimizer. Cumulative step-size adaptation (cumulation.py) changes the standard deviation of the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neuroevo.algorithms.ascent import CenterSearch, CenterState, noise_seeds
from neuroevo.algorithms.base import Played
from neuroevo.algorithms.cumulation import StepSize
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.selection import finite
from neuroevo.core.arrays import check_array
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive32, settings


@dataclass(frozen=True, eq=False)
class CanonicalESState(CenterState):
    """The state before a generation.

    Attributes:
        sigma: Standard deviation of the noise; None in generation 0.
        path: The evolution path of the step size, float32 [D]; None before the first step, and without adaptation.
    """

    sigma: float | None = None
    path: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: sigma is not positive, or the path is not float32 [D]."""
        super().check_state()
        if self.sigma is not None and not 0 < self.sigma < math.inf:
            raise ValueError(f"sigma is {self.sigma}, expected a positive number")
        if self.path is not None:
            check_array("the path", self.path, [None], np.float32)


@settings
class CanonicalES(CenterSearch):
    """Canonical evolution strategies, (mu, lambda)."""

    population: Count = 800
    """Genomes per generation (lambda), each the center plus noise of its own."""
    parents: Count = 50
    """Number of genomes that move the center (mu), the best ones."""
    sigma: Positive32 = 0.05
    """Standard deviation of the noise, the same for every weight; at the start, where it is adapted."""
    adapt_sigma: bool = True
    """Whether cumulative step-size adaptation changes sigma."""

    state_type = CanonicalESState

    def __post_init__(self) -> None:
        if self.parents > self.population:
            raise ValueError(f"parents is {self.parents}, expected at most the population, {self.population}")

    def ask(self, state: CanonicalESState, weights: Weights) -> list[Genome]:
        """Return the center with noise, once for each offspring."""
        seeds = draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS)
        sigma = self._sigma(state)
        return [state.center.child(seed, sigma, self.mutation_kind) for seed in seeds]

    def tell(self, state: CanonicalESState, population: Played, weights: Weights) -> CanonicalESState:
        """Move the center by the weighted mean of the best ones' noise, and adapt sigma.

        Raises:
            ValueError: A fitness is not finite, or a weight would not be after the step.
        """
        fitness = finite(population.fitness, len(population.genomes))
        logarithms = np.zeros(len(fitness))
        logarithms[: self.parents] = np.log(self.parents + 0.5) - np.log(np.arange(1, self.parents + 1))
        shares = rank_weights(fitness, logarithms)
        mean = weights.noise_sum(noise_seeds(population.genomes), shares, state.center.network)
        theta = weights.theta(state.center) + np.float32(self._sigma(state)) * mean
        sigma, path = self._adapted(state, mean, 1 / float(np.sum(np.square(logarithms / logarithms.sum()))))
        return state.moved(theta, population, sigma=sigma, path=path)

    def metrics(self, before: CanonicalESState, after: CanonicalESState) -> dict[str, float]:
        """Return sigma."""
        return {"sigma": self._sigma(before)}

    def _sigma(self, state: CanonicalESState) -> float:
        """Return a state's standard deviation, as float32 represents it."""
        return float(np.float32(self.sigma if state.sigma is None else state.sigma))

    def _adapted(self, state: CanonicalESState, mean: np.ndarray, mass: float) -> tuple[float, np.ndarray | None]:
        """Return the next sigma and path.

        Args:
            state: The state before the generation.
            mean: Weighted mean of the best ones' noise, float32 [D].
            mass: Variance-effective number of parents, mu_eff.
        """
        if not self.adapt_sigma:
            return self._sigma(state), None
        rule = StepSize(len(mean), mass, (mass + 2) / (len(mean) + mass + 5))
        path = rule.path(state.path, mean)
        return float(np.float32(self._sigma(state) * rule.factor(path))), path
