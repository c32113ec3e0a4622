"""Random search, the baseline of Such et al. 2017 (https://arxiv.org/abs/1712.06567, section 4): a GA without parents.

The genomes of every generation are fresh; only the elite is kept, chosen by validation as in the GA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from neuroevo.algorithms.base import Algorithm, Played, State
from neuroevo.algorithms.selection import known_elite, pick_candidates, pick_elite
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True)
class RandomSearchState(State):
    """The state before a generation.

    Attributes:
        elite: The winner of the last validation; None in generation 0 unless the run starts from a given genome.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check ranges. ValueError: a count is below 0, or there is no elite after a generation."""
        super().check_state()
        if self.generation and self.elite is None:
            raise ValueError(f"there is no elite after {self.generation} generations")


@settings
class RandomSearch(Algorithm):
    """Random search: every genome has fresh weights."""

    population: Count = 1000
    """Genomes per generation."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """How many of the best genomes play validation episodes; the previous elite replaces the last of them."""

    state_type = RandomSearchState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RandomSearchState:
        """Make the state before generation 0; the first of the genomes becomes the elite."""
        return RandomSearchState(seed, elite=next(iter(genomes), None))

    def ask(self, state: RandomSearchState, weights: Weights | None = None) -> list[Genome]:
        """Return fresh genomes."""
        bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
        return [Genome(base) for base in bases]

    def tell(self, state: RandomSearchState, population: Played, weights: Weights | None = None) -> RandomSearchState:
        """Select the previous elite and the fittest as candidates."""
        best = pick_candidates(population.genomes, population.fitness, self.validation_candidates, state.elite)
        return replace(state, steps=state.steps + population.steps, candidates=tuple(best))

    def candidates(self, state: RandomSearchState) -> list[Genome]:
        """Return the previous elite and the best of the population."""
        return list(state.candidates)

    def tell_validation(self, state: RandomSearchState, validation: Played) -> RandomSearchState:
        """Select the candidate with the best validation as the elite."""
        elite, steps = pick_elite(validation.genomes, validation.fitness), state.steps + validation.steps
        return RandomSearchState(state.seed, elite, generation=state.generation + 1, steps=steps)

    def elite(self, state: RandomSearchState) -> Genome:
        """Return the winner of the last validation. ValueError: the first generation is not finished."""
        return known_elite(state.elite)
