"""PGPE, policy gradients with parameter-based exploration, with ClipUp.

Sehnke et al. 2010 (https://doi.org/10.1016/j.neunet.2009.12.004), in the form of Toklu et al. 2020
(https://arxiv.org/abs/2008.02387): antithetic pairs around one center with a standard deviation of noise for each
weight, centered ranks, and an optimizer that normalizes gradients. The center and the standard deviations are the mean
and the scale of a search distribution, which both follow the gradient of the expected rank.

The paper's code adds genomes to a generation until it has reached a number of steps. Here, the size of a population
follows from the steps of the previous population, so that the whole population is known before its episodes start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import CenterSearch, ascend, noise_seeds
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.fitness_shaping import centered_ranks
from neuroevo.algorithms.optimizers import ClipUp, Optimizer, OptimizerState
from neuroevo.algorithms.selection import finite
from neuroevo.algorithms.spread import SpreadState
from neuroevo.core.arrays import norm
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.settings import Count, CountOrZero, Positive32, settings

Change = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, eq=False)
class PGPEState(SpreadState):
    """The state before a generation.

    Attributes:
        optimizer: The optimizer's state; None before the first step.
        members: Size of the population; 0 in generation 0, which uses the setting population.
        gradient_norm: Euclidean norm of the previous generation's estimate.
    """

    optimizer: OptimizerState | None = None
    members: int = 0
    gradient_norm: float = 0.0

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the spread is invalid, or the size of the population is odd."""
        super().check_state()
        if self.members < 0 or self.members % 2:
            raise ValueError(f"members is {self.members}, expected an even number")


@settings
class PGPE(CenterSearch):
    """Policy gradients with parameter-based exploration."""

    population: Annotated[Count, Field(multiple_of=2)] = 200
    """Genomes per generation, an even number: half are the center plus noise, half the center minus the same noise."""
    steps_per_generation: CountOrZero = 0
    """Target number of steps per generation: if episodes are short, the population exceeds `population`; 0: never."""
    max_population: Annotated[Count, Field(multiple_of=2)] = 3200
    """Maximum size of the population with steps_per_generation."""
    sigma: Positive32 = 0.04
    """Initial standard deviation of the noise, the same for every weight. The paper's "radius" is sigma * sqrt(D)."""
    sigma_learning_rate: Annotated[float, Field(ge=0)] = 0.1
    """Learning rate of the standard deviations; 0 keeps them constant."""
    max_change: Change = 0.2
    """Maximum relative change of a standard deviation per generation."""
    optimizer: Optimizer = ClipUp()
    """The optimizer of the center: {type = "clipup", learning_rate = 0.15}, optionally with momentum and max_speed, or
    "adam" or "sgd"."""

    state_type = PGPEState

    @property
    def state_layout(self) -> type:
        """The optimizer's class, which determines how many moments there are."""
        return type(self.optimizer)

    def ask(self, state: PGPEState, weights: Weights) -> list[Genome]:
        """Return the center's antithetic pairs, plus before minus."""
        return state.pairs((state.members or self.population) // 2, self.sigma, weights)

    def tell(self, state: PGPEState, population: EvaluatedPopulation, weights: Weights) -> PGPEState:
        """Move the center by one optimizer step, and change each standard deviation by at most a share of its value.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        genomes = population.genomes
        shaped = centered_ranks(finite(population.fitness, len(genomes)))  # their mean, the paper's baseline, is 0
        seeds, spread, network = noise_seeds(genomes[::2]), state.deviations(self.sigma, weights), state.center.network
        differences, means = (shaped[::2] - shaped[1::2]) / len(genomes), (shaped[::2] + shaped[1::2]) / len(genomes)
        estimate, of_spread = weights.noise_sums(seeds, differences, means, network)
        gradient, limit = spread * estimate, np.float32(self.max_change)
        theta, optimizer = ascend(weights.theta(state.center), gradient, self.optimizer, state.optimizer, 0.0)
        spread = spread + spread * np.clip(np.float32(self.sigma_learning_rate) * of_spread, -limit, limit)
        moved = {"spread": spread, "optimizer": optimizer, "members": self._members(population)}
        return state.moved(theta, population, **moved, gradient_norm=norm(gradient))

    def check_state(self, state: PGPEState) -> None:
        """Check the optimizer's state. ValueError: it does not fit these settings or this center."""
        if state.optimizer is not None:
            self.optimizer.check_state(state.optimizer, state.center)

    def metrics(self, before: PGPEState, after: PGPEState) -> dict[str, float]:
        """Return the mean standard deviation of the noise, the norm of the estimate, and the population size."""
        return {
            "sigma": before.mean_deviation(self.sigma),
            "gradient_norm": after.gradient_norm,
            "members": before.members or self.population,
        }

    def _members(self, population: EvaluatedPopulation) -> int:
        """Return the size with which the current population would have taken steps_per_generation steps."""
        if not self.steps_per_generation:
            return self.population
        wanted = self.steps_per_generation * len(population.genomes) / max(population.steps, 1)
        return min(max(2 * round(wanted / 2), self.population), max(self.max_population, self.population))
