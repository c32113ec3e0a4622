"""Random search, the baseline of Such et al. 2017 (https://arxiv.org/abs/1712.06567, section 4): a GA without parents.

Every generation consists of fresh genomes; only the elite is kept, chosen by validation as in the GA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.selection import (
    ValidatedSearch,
    ValidatedState,
    fresh_genomes,
    pick_candidates,
)
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True)
class RandomSearchState(ValidatedState):
    """The state before a generation; states with equal values are equal."""


@settings
class RandomSearch(ValidatedSearch):
    """Random search: every genome has fresh weights."""

    population: Count = 1000
    """Genomes per generation."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """Number of best genomes that play validation episodes; the previous elite replaces the last of them."""

    state_type = RandomSearchState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RandomSearchState:
        """Make the state before generation 0; the first given genome becomes the elite."""
        return RandomSearchState(seed, elite=next(iter(genomes), None))

    def ask(self, state: RandomSearchState, weights: Weights | None = None) -> list[Genome]:
        """Return fresh genomes."""
        return fresh_genomes(self.population, state)

    def tell(
        self, state: RandomSearchState, population: EvaluatedPopulation, weights: Weights | None = None
    ) -> RandomSearchState:
        """Select the previous elite and the fittest genomes as candidates."""
        best = pick_candidates(population.genomes, population.fitness, self.validation_candidates, state.elite)
        return replace(state, steps=state.steps + population.steps, candidates=tuple(best))
