"""The genetic algorithm of Such et al. 2017 (https://arxiv.org/abs/1712.06567, algorithm 1).

Truncation selection, mutation by additive Gaussian noise, no crossover, and an elite chosen by validation episodes.
What does not depend on how parents are selected is in TruncationGA, which GA-NS (ga_ns.py) shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import Played
from neuroevo.algorithms.schedules import Schedule, shortest, value_at
from neuroevo.algorithms.selection import finite, pick_candidates, pick_elite, ranking
from neuroevo.core.arrays import check_counts
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True, eq=False)
class TruncationState:
    """What the states of algorithms with truncation selection have in common, before a generation.

    Attributes:
        seed: The run's seed.
        generation: Number of the generation, from 0.
        steps: Training steps so far.
        parents: Genomes that may have offspring; empty in generation 0 unless the run starts from given genomes.
        elite: The winner of the last validation; None in generation 0 unless the run starts from given genomes.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    seed: int
    generation: int = 0
    steps: int = 0
    parents: tuple[Genome, ...] = ()
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Refuses what no generation leaves. ValueError: a count is below 0, or a generation has no elite."""
        check_counts(seed=self.seed, generation=self.generation, steps=self.steps)
        if self.generation and not (self.parents and self.elite):
            raise ValueError(f"there are no parents or no elite after {self.generation} generations")


@dataclass(frozen=True)
class GAState(TruncationState):
    """The state of the genetic algorithm before a generation; states with equal values are equal."""


@settings
class TruncationGA:
    """Base class of algorithms whose offspring are mutations of T parents picked uniformly."""

    population: Count = 1000
    """Genomes per generation."""
    parents: Count = 20
    """Truncation size T: the T best genomes may have offspring. The parent of each offspring is picked uniformly from
    them."""
    sigma: Schedule = 0.002
    """Mutation power: standard deviation of the noise added to every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.005, final_p = 0.001, schedule = 500, field = "iteration"}."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """How many of the best genomes play validation episodes; the previous elite replaces the last of them."""

    def __post_init__(self) -> None:
        if self.parents > self.population:
            refuse([Problem("parents", f"expected at most the population, {self.population}", self.parents)])

    def ask(self, state: TruncationState, weights: Weights | None = None) -> list[Genome]:
        """Returns mutations of the parents or, without parents (generation 0), fresh genomes."""
        if not state.parents:
            bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
            return [Genome(base) for base in bases]
        parents = draw_indices(self.population, len(state.parents), state.seed, state.generation, Purpose.PARENTS)
        noise = draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS)
        sigma = self._sigma(state)
        return [state.parents[parent].child(seed, sigma) for parent, seed in zip(parents, noise, strict=True)]

    def candidates(self, state: TruncationState) -> list[Genome]:
        """Returns the previous elite and the best of the population."""
        return list(state.candidates)

    def elite(self, state: TruncationState) -> Genome:
        """Returns the winner of the last validation.

        Raises:
            ValueError: The first generation is not finished.
        """
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: TruncationState) -> list[Genome]:
        """Returns the elite, then the other parents."""
        return list(dict.fromkeys([self.elite(state), *state.parents]))

    def _sigma(self, state: TruncationState) -> float:
        return float(np.float32(value_at(self.sigma, state.generation, state.steps)))


@settings
class GA(TruncationGA):
    """Genetic algorithm with truncation selection."""

    state_type: ClassVar[type] = GAState
    behavior: ClassVar[None] = None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> GAState:
        """Makes the state before generation 0.

        Args:
            seed: The run's seed, in [0, 2**63).
            genomes: The first one becomes the elite, the first T become the parents.

        Returns:
            The state.
        """
        return GAState(seed, parents=tuple(genomes[: self.parents]), elite=next(iter(genomes), None))

    def tell(self, state: GAState, population: Played, weights: Weights | None = None) -> GAState:
        """Selects the fittest as parents and as candidates; the previous elite is the first candidate.

        Raises:
            ValueError: A fitness is not finite.
        """
        genomes, fitness = population.genomes, population.fitness
        return replace(
            state,
            steps=state.steps + population.steps,
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
            parents=tuple(genomes[i] for i in ranking(finite(fitness, len(genomes)))[: self.parents]),
        )

    def tell_validation(self, state: GAState, validation: Played) -> GAState:
        """Selects the candidate with the best validation as the elite, which is always a parent.

        Raises:
            ValueError: A fitness is not finite.
        """
        elite, parents = pick_elite(validation.genomes, validation.fitness), state.parents
        if elite not in parents:
            parents = (elite, *parents[: self.parents - 1])
        return GAState(state.seed, state.generation + 1, state.steps + validation.steps, parents, elite)

    def metrics(self, before: GAState, after: GAState) -> dict[str, float]:
        """Returns the sigma of the generation's offspring."""
        return {"sigma": shortest(self._sigma(before))}
