"""Random search, the baseline of Such et al. 2017 (https://arxiv.org/abs/1712.06567, section 4): a GA without parents.

Every generation is fresh; what lasts is the elite, kept by the GA's validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from neuroevo.algorithms.algorithm import Played, Weights
from neuroevo.algorithms.selection import pick_candidates, pick_elite
from neuroevo.genome import Genome
from neuroevo.randomness import Purpose, draw_seeds
from neuroevo.settings import Count, settings


@dataclass(frozen=True)
class RandomSearchState:
    """Before a generation: its number and the elite (none in generation 0).

    candidates: none, unless the generation waits for its validation.
    """

    seed: int
    generation: int = 0
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()


@settings
class RandomSearch:
    """Random search."""

    population: Count = 1000
    """Genomes per generation."""
    validated: Annotated[Count, Field(ge=2)] = 10
    """The best that play validation episodes; the last of them gives way to the previous elite."""

    state_type: ClassVar[type] = RandomSearchState
    behavior: ClassVar[None] = None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RandomSearchState:
        """The state before generation 0; the first of `genomes` becomes the elite."""
        return RandomSearchState(seed, elite=next(iter(genomes), None))

    def ask(self, state: RandomSearchState, weights: Weights | None = None) -> list[Genome]:
        """Fresh genomes."""
        bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
        return [Genome(base) for base in bases]

    def tell(self, state: RandomSearchState, population: Played, weights: Weights | None = None) -> RandomSearchState:
        """The candidates are the best, with the previous elite first."""
        best = pick_candidates(population.genomes, population.fitness, self.validated, state.elite)
        return replace(state, candidates=tuple(best))

    def candidates(self, state: RandomSearchState) -> list[Genome]:
        """The best of the population and the previous elite."""
        return list(state.candidates)

    def tell_validation(self, state: RandomSearchState, validation: Played) -> RandomSearchState:
        """Keeps the candidate with the best validation."""
        elite = pick_elite(validation.genomes, validation.fitness)
        return RandomSearchState(state.seed, state.generation + 1, elite)

    def elite(self, state: RandomSearchState) -> Genome:
        """The winner of the last validation."""
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: RandomSearchState) -> list[Genome]:
        """The elite."""
        return [self.elite(state)]

    def metrics(self, before: RandomSearchState, after: RandomSearchState) -> dict[str, float]:
        """Nothing: random search has no changing number."""
        return {}
