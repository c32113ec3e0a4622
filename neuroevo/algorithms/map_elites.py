"""MAP-Elites (Mouret and Clune 2015, https://arxiv.org/abs/1504.04909), which finds the best genome of each behavior.

A grid divides the behavior space into cells, and each cell keeps the fittest genome whose behavior falls into it.
Offspring are mutations of the genomes of uniformly chosen cells. Genomes are seeds, as in the GA, so that an archive of
thousands of networks with millions of weights takes little memory. Variation along the line between two parents
(iso+line) is not supported, since it requires the weights of both parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.cells import CellSettings
from neuroevo.algorithms.novelty import check_behaviors, known, novelty, validate_behaviors
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import (
    ValidatedSearch,
    ValidatedState,
    finite,
    fresh_genomes,
    mutated,
    pick_candidates,
    pick_parents,
    ranking,
)
from neuroevo.core.archive import Archive
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True, eq=False)
class MAPElitesState(ValidatedState):
    """The state before a generation.

    Attributes:
        cells: The archive: the fittest genome of each filled cell.
        start: Parents of generation 0; empty if generation 0 consists of fresh genomes.
    """

    cells: Archive = Archive()
    start: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: an inherited check fails, or behaviors do not fit the archive."""
        super().check_state()
        check_behaviors(self.cells)


@settings
class MAPElites(CellSettings, ValidatedSearch):
    """MAP-Elites, which keeps the best genome of every cell of a grid of behaviors."""

    population: Count = 1000
    """Genomes per generation."""
    sigma: Schedule = 0.02
    """Mutation power: standard deviation of the noise added to every weight. A number or a schedule, as in the GA."""
    tournament: Count = 1
    """Tournament size: of this many randomly drawn cells, the cell with the most novel behavior provides the parent of
    an offspring; 1: parents are picked uniformly."""
    k: Count = 10
    """Number of nearest neighbors in a tournament: novelty is the mean distance to them among the cells' genomes."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """Number of the archive's fittest genomes that play validation episodes; the previous elite replaces the last."""

    state_type = MAPElitesState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> MAPElitesState:
        """Make the state before generation 0, whose parents are the given genomes."""
        return MAPElitesState(seed, start=tuple(genomes), elite=next(iter(genomes), None))

    def ask(self, state: MAPElitesState, weights: Weights | None = None) -> list[Genome]:
        """Return mutations of the archive's genomes; with an empty archive, of the given genomes, or fresh genomes."""
        parents = state.cells.genomes or state.start
        if not parents:
            return fresh_genomes(self.population, state)
        if self.tournament > 1 and state.cells.behaviors is not None:
            # k + 1 neighbors, since a behavior's nearest neighbor is itself
            score = novelty(state.cells.behaviors, state.cells, self.k + 1, peers=False)
            parents = tuple(parents[i] for i in ranking(score))
        picked = pick_parents(parents, self.population, state, self.tournament)
        return mutated(picked, [scale_at(self.sigma, state)] * self.population, state)

    def tell(
        self, state: MAPElitesState, population: EvaluatedPopulation, weights: Weights | None = None
    ) -> MAPElitesState:
        """Add each genome to the cell of its behavior if the cell is empty or the genome is fitter.

        Raises:
            ValueError: A fitness is not finite, or there are no behaviors.
        """
        genomes, fitness = population.genomes, finite(population.fitness, len(population.genomes))
        behaviors = validate_behaviors(population.behaviors, len(genomes), state.cells).astype(np.float64)
        behaviors[~known(behaviors)] = np.nan
        cells = state.cells.keep_best(self.grid, behaviors, genomes, fitness)
        best, scores = (genomes, fitness) if cells.fitness is None else (cells.genomes, cells.fitness)
        candidates = tuple(pick_candidates(best, scores, self.validation_candidates, state.elite))
        return replace(state, steps=state.steps + population.steps, cells=cells, candidates=candidates)

    def best(self, state: MAPElitesState) -> list[Genome]:
        """Return the elite, then the archive's genomes, ordered by cell."""
        return list(dict.fromkeys([self.elite(state), *state.cells.genomes]))

    def archive(self, state: MAPElitesState) -> Archive:
        """Return the archive."""
        return state.cells

    def metrics(self, before: MAPElitesState, after: MAPElitesState) -> dict[str, float]:
        """Return sigma, the share of filled cells, and the sum of their fitness."""
        return {"sigma": shortest(scale_at(self.sigma, before)), **self.cell_metrics(after.cells)}
