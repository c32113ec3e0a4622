"""SNES, separable natural evolution strategies.

Schaul, Glasmachers and Schmidhuber 2011, "High dimensions and heavy tails" (https://doi.org/10.1145/2001576.2001692).

The search distribution is a normal one with a mean and a standard deviation for each weight; both follow the natural
gradient of the expected utility, which depends on ranks alone. Step sizes are the paper's by default; its population,
4 + 3 ln D, is small beside what games and robots with random starts need. Noise is added and subtracted, as in the
other strategies here; the paper draws it independently.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import CenterSearch, CenterState, antithetic_pairs
from neuroevo.algorithms.base import Played
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.selection import finite
from neuroevo.algorithms.spread import check_spread, mean_spread, spread_of
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive, Positive32, settings

_LARGEST = 1.0  # of the logarithm of a standard deviation's change in a generation


@dataclass(frozen=True, eq=False)
class SNESState(CenterState):
    """The state before a generation.

    Attributes:
        spread: Standard deviation of the noise of each weight, float32 [D]; None in generation 0.
    """

    spread: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the spread is not positive or of another D than the center."""
        super().check_state()
        check_spread(self.spread, self.center)


@settings
class SNES(CenterSearch):
    """Separable natural evolution strategies."""

    population: Annotated[Count, Field(multiple_of=2)] = 200
    """Genomes per generation, an even number: half are the center plus noise, half the center minus the same noise."""
    sigma: Positive32 = 0.05
    """Standard deviation of the noise at the start, the same for every weight."""
    learning_rate: Positive32 = 1.0
    """Size of the steps of the center."""
    sigma_learning_rate: Positive | None = None
    """Size of the steps of the standard deviations' logarithms; left out: (3 + ln D) / (5 sqrt(D))."""

    state_type = SNESState

    def ask(self, state: SNESState, weights: Weights) -> list[Genome]:
        """Return the center's antithetic pairs, plus before minus."""
        kind = Scaled(Center(spread_of(state, self.sigma, weights)))
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.center, seeds, 1.0, kind)

    def tell(self, state: SNESState, population: Played, weights: Weights) -> SNESState:
        """Move the center and the standard deviations along the natural gradient.

        Raises:
            ValueError: A fitness is not finite, or a weight would not be after the step.
        """
        count = len(population.genomes)
        fitness = finite(population.fitness, count)
        utilities = rank_weights(fitness, np.log(count / 2 + 1) - np.log(np.arange(1, count + 1))) - 1 / count
        plus, minus = utilities[::2], utilities[1::2]
        seeds = [genome.mutation.seed for genome in population.genomes[::2] if genome.mutation is not None]
        spread, network = spread_of(state, self.sigma, weights), state.center.network
        step = np.float32(self.learning_rate) * weights.noise_sum(seeds, plus - minus, network)
        dimension = len(spread)
        rate = self.sigma_learning_rate or (3 + math.log(dimension)) / (5 * math.sqrt(dimension))
        change = np.float32(rate / 2) * weights.noise_sum(seeds, plus + minus, network, squared=True)
        theta = weights.theta(state.center) + spread * step
        return state.moved(theta, population, spread=spread * _exp(change))

    def metrics(self, before: SNESState, after: SNESState) -> dict[str, float]:
        """Return the mean standard deviation of the noise."""
        return {"sigma": mean_spread(before.spread, self.sigma)}


def _exp(x: np.ndarray) -> np.ndarray:
    """Return e**x of float32 numbers, clipped to [-1, 1], with the same bits on every processor, unlike NumPy's."""
    part = np.clip(x, -_LARGEST, _LARGEST) * np.float32(0.125)
    power = np.ones_like(part)
    for factor in (5, 4, 3, 2, 1):  # Horner's form of the Taylor polynomial
        power = np.float32(1) + part * power * np.float32(1 / factor)
    for _ in range(3):
        power = power * power
    return power
