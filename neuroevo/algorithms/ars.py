"""ARS, augmented random search (Mania, Guy and Recht 2018, https://arxiv.org/abs/1803.07055).

The population consists of antithetic pairs around one center. The pairs with the highest maximum of both returns move
the center, weighted by the difference of their returns divided by the standard deviation of all returns used. V1 and V2
of the paper differ in network.normalize_observations, which V2 enables; V1-t and V2-t discard pairs, as top_directions
does. The paper's policies are linear and start at zero, as the network `linear`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import CenterSearch, CenterState, antithetic_pairs, noise_seeds
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.selection import finite, ranking
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive32, settings


@dataclass(frozen=True, eq=False)
class ARSState(CenterState):
    """The state before a generation.

    Attributes:
        deviation: Standard deviation of the returns used for the previous step.
    """

    deviation: float = 0.0


@settings
class ARS(CenterSearch):
    """Augmented random search."""

    population: Annotated[Count, Field(multiple_of=2)] = 64
    """Genomes per generation, an even number: two for each of the paper's N directions."""
    top_directions: Count | None = None
    """Number of pairs with the best returns that move the center (b); by default all pairs."""
    sigma: Positive32 = 0.03
    """Standard deviation of the noise, the paper's nu."""
    learning_rate: Positive32 = 0.02
    """Size of a step, the paper's alpha."""

    state_type = ARSState

    def __post_init__(self) -> None:
        if self.top_directions is not None and self.top_directions > self.population // 2:
            pairs = self.population // 2
            raise ValueError(f"top_directions is {self.top_directions}, expected at most the {pairs} pairs")

    def ask(self, state: ARSState, weights: Weights) -> list[Genome]:
        """Return the center's antithetic pairs, plus before minus."""
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.center, seeds, self.sigma, self.mutation_kind)

    def tell(self, state: ARSState, population: EvaluatedPopulation, weights: Weights) -> ARSState:
        """Move the center along the best pairs, unless all their returns are equal.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        plus, minus = finite(population.fitness, len(population.genomes)).reshape(-1, 2).T
        top = ranking(np.maximum(plus, minus))[: self.top_directions]
        plus, minus = plus[top], minus[top]
        deviation = float(np.std(np.concatenate([plus, minus])))
        theta = weights.theta(state.center)
        if deviation:
            seeds = noise_seeds([population.genomes[2 * pair] for pair in top])
            factors = (plus - minus) * (self.learning_rate / (len(top) * deviation))
            theta = theta + weights.noise_sum(seeds, factors, state.center.network)
        return state.moved(theta, population, deviation=deviation)

    def metrics(self, before: ARSState, after: ARSState) -> dict[str, float]:
        """Return sigma and the standard deviation of the returns used for the step."""
        return {"sigma": self.sigma, "return_deviation": after.deviation}
