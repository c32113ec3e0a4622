"""Random search, the baseline of Such et al. 2017 (https://arxiv.org/abs/1712.06567, section 4): a GA without parents.

Every generation is fresh; what lasts is the elite, kept by the GA's validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.selection import finite, pick_candidates, pick_elite
from neuroevo.genome import Genome
from neuroevo.randomness import Purpose, draw_seeds
from neuroevo.settings import Count, settings


@dataclass(frozen=True)
class RandomSearchState:
    """Before a generation: its number and the elite (none in generation 0)."""

    seed: int
    generation: int = 0
    elite: Genome | None = None


@settings
class RandomSearch:
    """Random search."""

    population: Count = 1000
    """Genomes per generation."""
    validated: Annotated[Count, Field(ge=2)] = 10
    """The best that play validation episodes; the last of them gives way to the previous elite."""

    state_type: ClassVar[type] = RandomSearchState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RandomSearchState:
        """The state before generation 0; the first of `genomes` becomes the elite."""
        return RandomSearchState(seed, elite=next(iter(genomes), None))

    def ask(self, state: RandomSearchState) -> list[Genome]:
        """Fresh genomes."""
        bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
        return [Genome(base) for base in bases]

    def candidates(self, state: RandomSearchState, genomes: Sequence[Genome], fitness: np.ndarray) -> list[Genome]:
        """The best of the population, fitness float64 [N], with the previous elite first."""
        return pick_candidates(genomes, fitness, self.validated, state.elite)

    def tell(
        self,
        state: RandomSearchState,
        genomes: Sequence[Genome],
        fitness: np.ndarray,
        candidates: Sequence[Genome],
        validation: np.ndarray,
        steps: int,
    ) -> RandomSearchState:
        """Keeps the candidate with the best validation, float64 [C]."""
        finite(fitness, len(genomes))
        return RandomSearchState(state.seed, state.generation + 1, pick_elite(candidates, validation))

    def elite(self, state: RandomSearchState) -> Genome:
        """The winner of the last validation."""
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: RandomSearchState) -> list[Genome]:
        """The elite."""
        return [self.elite(state)]

    def metrics(self, state: RandomSearchState) -> dict[str, float]:
        """Nothing: random search has no changing number."""
        return {}
