"""SNES, separable natural evolution strategies.

Schaul, Glasmachers and Schmidhuber 2011, "High dimensions and heavy tails" (https://doi.org/10.1145/2001576.2001692).

The search distribution is normal, with a mean and a standard deviation for each weight; both follow the natural
gradient of the expected utility, which depends only on ranks. The default learning rates are those of the paper; its
population size, 4 + 3 ln D, is too small for games and robots with random initial states. Noise is antithetic, as in
the other strategies here; the paper samples it independently.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import CenterSearch, noise_seeds
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.selection import finite
from neuroevo.algorithms.spread import SpreadState
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.settings import Count, Positive, Positive32, settings

_LARGEST = 1.0  # largest change of the logarithm of a standard deviation per generation


@settings
class SNES(CenterSearch):
    """Separable natural evolution strategies."""

    population: Annotated[Count, Field(multiple_of=2)] = 200
    """Genomes per generation, an even number: half are the center plus noise, half the center minus the same noise."""
    sigma: Positive32 = 0.05
    """Initial standard deviation of the noise, the same for every weight."""
    learning_rate: Positive32 = 1.0
    """Learning rate of the center."""
    sigma_learning_rate: Positive | None = None
    """Learning rate of the standard deviations' logarithms; by default (3 + ln D) / (5 sqrt(D))."""

    state_type = SpreadState

    def ask(self, state: SpreadState, weights: Weights) -> list[Genome]:
        """Return the center's antithetic pairs, plus before minus."""
        return state.pairs(self.population // 2, self.sigma, weights)

    def tell(self, state: SpreadState, population: EvaluatedPopulation, weights: Weights) -> SpreadState:
        """Move the center and the standard deviations along the natural gradient.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        count = len(population.genomes)
        fitness = finite(population.fitness, count)
        utilities = rank_weights(fitness, np.log(count / 2 + 1) - np.log(np.arange(1, count + 1))) - 1 / count
        plus, minus = utilities[::2], utilities[1::2]
        seeds, network = noise_seeds(population.genomes[::2]), state.center.network
        spread = state.deviations(self.sigma, weights)
        step, change = weights.noise_sums(seeds, plus - minus, plus + minus, network)
        dimension = len(spread)
        rate = self.sigma_learning_rate or (3 + math.log(dimension)) / (5 * math.sqrt(dimension))
        theta = weights.theta(state.center) + spread * (np.float32(self.learning_rate) * step)
        return state.moved(theta, population, spread=spread * _exp(np.float32(rate / 2) * change))

    def metrics(self, before: SpreadState, after: SpreadState) -> dict[str, float]:
        """Return the mean standard deviation of the noise."""
        return {"sigma": before.mean_deviation(self.sigma)}


def _exp(x: np.ndarray) -> np.ndarray:
    """Return e**x for float32 x clipped to [-1, 1]; unlike NumPy's, it is bit-identical on every processor."""
    part = np.clip(x, -_LARGEST, _LARGEST) * np.float32(0.125)
    power = np.ones_like(part)
    for factor in (5, 4, 3, 2, 1):  # Horner's form of the Taylor polynomial
        power = np.float32(1) + part * power * np.float32(1 / factor)
    for _ in range(3):
        power = power * power
    return power
