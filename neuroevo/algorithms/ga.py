"""The genetic algorithm of Such et al. 2017 (https://arxiv.org/abs/1712.06567, algorithm 1).

Truncation selection, mutation by additive Gaussian noise, no crossover, and an elite chosen by validation episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import Played
from neuroevo.algorithms.schedules import Schedule, value_at
from neuroevo.algorithms.selection import finite, pick_candidates, pick_elite, ranking
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True)
class GAState:
    """Before a generation: its number, the training steps so far, its parents and the elite (none in the first one).

    candidates: none, unless the generation waits for its validation.
    """

    seed: int
    generation: int = 0
    steps: int = 0
    parents: tuple[Genome, ...] = ()
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()


@settings
class GA:
    """Genetic algorithm with truncation selection."""

    population: Count = 1000
    """Genomes per generation."""
    parents: Count = 20
    """The best that may have offspring (T); each offspring's parent is one of them, picked uniformly."""
    sigma: Schedule = 0.002
    """Mutation power: standard deviation of the noise added to every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.005, final_p = 0.001, schedule = 500, field = "iteration"}."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """The best that play validation episodes; the last of them gives way to the previous elite."""

    def __post_init__(self) -> None:
        if self.parents > self.population:
            refuse([Problem("parents", f"expected at most the population, {self.population}", self.parents)])

    state_type: ClassVar[type] = GAState
    behavior: ClassVar[None] = None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> GAState:
        """The state before generation 0; of `genomes` the first becomes the elite and the first T the parents."""
        return GAState(seed, parents=tuple(genomes[: self.parents]), elite=next(iter(genomes), None))

    def ask(self, state: GAState, weights: Weights | None = None) -> list[Genome]:
        """Without parents (generation 0): fresh genomes. With parents: a mutation of one of them each."""
        if not state.parents:
            bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
            return [Genome(base) for base in bases]
        parents = draw_indices(self.population, len(state.parents), state.seed, state.generation, Purpose.PARENTS)
        noise = draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS)
        sigma = self._sigma(state)
        return [state.parents[parent].child(seed, sigma) for parent, seed in zip(parents, noise, strict=True)]

    def tell(self, state: GAState, population: Played, weights: Weights | None = None) -> GAState:
        """Selects parents by fitness; the candidates are the best too, with the previous elite first."""
        genomes, fitness = population.genomes, population.fitness
        return replace(
            state,
            steps=state.steps + population.steps,
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
            parents=tuple(genomes[i] for i in ranking(finite(fitness, len(genomes)))[: self.parents]),
        )

    def candidates(self, state: GAState) -> list[Genome]:
        """The best of the population and the previous elite."""
        return list(state.candidates)

    def tell_validation(self, state: GAState, validation: Played) -> GAState:
        """Selects the elite by validation; it is always a parent."""
        elite, parents = pick_elite(validation.genomes, validation.fitness), state.parents
        if elite not in parents:
            parents = (elite, *parents[: self.parents - 1])
        return GAState(state.seed, state.generation + 1, state.steps + validation.steps, parents, elite)

    def elite(self, state: GAState) -> Genome:
        """The winner of the last validation."""
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: GAState) -> list[Genome]:
        """The elite, then the other parents."""
        return list(dict.fromkeys([self.elite(state), *state.parents]))

    def metrics(self, before: GAState, after: GAState) -> dict[str, float]:
        """sigma of the generation's offspring."""
        return {"sigma": self._sigma(before)}

    def _sigma(self, state: GAState) -> float:
        return float(np.float32(value_at(self.sigma, state.generation, state.steps)))
