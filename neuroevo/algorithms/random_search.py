"""Random search, the baseline of Such et al. 2017 (https://arxiv.org/abs/1712.06567, section 4): a GA without parents.

The genomes of every generation are fresh; only the elite is kept, chosen by validation as in the GA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import Field

from neuroevo.algorithms.base import Played
from neuroevo.algorithms.selection import pick_candidates, pick_elite
from neuroevo.core.arrays import check_counts
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True)
class RandomSearchState:
    """The state before a generation.

    Attributes:
        seed: The run's seed.
        generation: Number of the generation, from 0.
        elite: The winner of the last validation; None in generation 0 unless the run starts from a given genome.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    seed: int
    generation: int = 0
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Refuses what no generation leaves. ValueError: a count is below 0, or a generation has no elite."""
        check_counts(seed=self.seed, generation=self.generation)
        if self.generation and self.elite is None:
            raise ValueError(f"there is no elite after {self.generation} generations")


@settings
class RandomSearch:
    """Random search: every genome has fresh weights."""

    population: Count = 1000
    """Genomes per generation."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """How many of the best genomes play validation episodes; the previous elite replaces the last of them."""

    state_type: ClassVar[type] = RandomSearchState
    behavior: ClassVar[None] = None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RandomSearchState:
        """Makes the state before generation 0.

        Args:
            seed: The run's seed, in [0, 2**63).
            genomes: The first one becomes the elite.

        Returns:
            The state.
        """
        return RandomSearchState(seed, elite=next(iter(genomes), None))

    def ask(self, state: RandomSearchState, weights: Weights | None = None) -> list[Genome]:
        """Returns fresh genomes."""
        bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
        return [Genome(base) for base in bases]

    def tell(self, state: RandomSearchState, population: Played, weights: Weights | None = None) -> RandomSearchState:
        """Selects the previous elite and the fittest as candidates.

        Raises:
            ValueError: A fitness is not finite.
        """
        best = pick_candidates(population.genomes, population.fitness, self.validation_candidates, state.elite)
        return replace(state, candidates=tuple(best))

    def candidates(self, state: RandomSearchState) -> list[Genome]:
        """Returns the previous elite and the best of the population."""
        return list(state.candidates)

    def tell_validation(self, state: RandomSearchState, validation: Played) -> RandomSearchState:
        """Selects the candidate with the best validation as the elite.

        Raises:
            ValueError: A fitness is not finite.
        """
        elite = pick_elite(validation.genomes, validation.fitness)
        return RandomSearchState(state.seed, state.generation + 1, elite)

    def elite(self, state: RandomSearchState) -> Genome:
        """Returns the winner of the last validation.

        Raises:
            ValueError: The first generation is not finished.
        """
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: RandomSearchState) -> list[Genome]:
        """Returns the elite alone."""
        return [self.elite(state)]

    def metrics(self, before: RandomSearchState, after: RandomSearchState) -> dict[str, float]:
        """Returns nothing: random search has no number that changes."""
        return {}
