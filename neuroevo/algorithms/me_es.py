"""ME-ES, MAP-Elites by evolution strategies (Colas et al. 2020, https://arxiv.org/abs/2003.01825).

A grid over the behavior space keeps the fittest center of each cell. The center of a selected cell takes several steps
of evolution strategies that increase fitness (exploitation) or novelty (exploration); after each step the center
competes for the cell of its behavior. Novelty is the mean distance to the nearest behaviors of all previous centers. As
in the paper,

- exploration starts from one of the five most novel cells, with a probability proportional to its novelty;
- exploitation starts, with probability 0.5 each, from one of the two fittest cells or from one of the two fittest among
  the five most recently updated cells.

The paper's code (https://github.com/uber-research/Map-Elites-Evolutionary) differs: with probability 0.1 it explores
from any cell, and it ranks cells for exploitation by the best offspring of their centers. Here, the initial center
takes one fitness step before a cell is selected, and validation episodes determine a center's fitness and behavior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.cells import CellSettings
from neuroevo.algorithms.es import ES, ESState
from neuroevo.algorithms.novelty import check_behaviors, known, novelty, validate_behaviors
from neuroevo.algorithms.schedules import scale_at, shortest
from neuroevo.algorithms.selection import finite, ranking
from neuroevo.core.archive import Archive
from neuroevo.core.arrays import check_counts
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_uniforms
from neuroevo.core.settings import Count, settings

_MOST_NOVEL, _RECENT, _FITTEST = 5, 5, 2  # cells from which one is selected


@dataclass(frozen=True, eq=False)
class MEESState(ESState):
    """The state before a generation.

    Attributes:
        cells: The fittest center of each filled cell.
        recent: Centers of the most recently updated cells, oldest first.
        behaviors: Behaviors of all centers, against which novelty is measured.
        explores: Whether the center's steps increase novelty rather than fitness.
        remaining: Steps of the center until another cell is selected.
    """

    cells: Archive = Archive()
    recent: tuple[Genome, ...] = ()
    behaviors: Archive = Archive()
    explores: bool = False
    remaining: int = 1

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: a count is below 0, or a behavior is invalid."""
        super().check_state()
        check_counts(remaining=self.remaining)
        check_behaviors(self.behaviors)


@settings
class MEES(CellSettings, ES):
    """MAP-Elites by evolution strategies, which keeps the best center of every cell of a grid of behaviors."""

    mode: Literal["alternate", "explore", "exploit"] = "alternate"
    """Objective of the steps from a selected cell: "explore" for novelty, "exploit" for fitness, or "alternate" to
    alternate between the two from cell to cell, starting with novelty."""
    moves: Count = 10
    """Steps of a center before another cell is selected."""
    k: Count = 10
    """Number of nearest neighbors: novelty is the mean distance to them among the behaviors of all centers."""

    state_type = MEESState

    def tell(self, state: MEESState, population: EvaluatedPopulation, weights: Weights) -> MEESState:  # type: ignore[override]
        """Move the center by one optimizer step towards novelty or fitness.

        Raises:
            ValueError: A fitness is not finite, the new center is not finite, or there are no behaviors.
        """
        count = len(population.genomes)
        fitness = finite(population.fitness, count)
        behaviors = validate_behaviors(population.behaviors, count, state.behaviors)
        if state.explores:
            score = novelty(behaviors, state.behaviors, self.k, peers=False)
            fitness = np.nan_to_num(score, nan=-1.0)  # unknown behaviors are the least novel
        after = super().tell(state, replace(population, fitness=fitness), weights)
        assert isinstance(after, MEESState)  # for mypy
        return replace(after, generation=state.generation)  # tell_validation() increments it

    def candidates(self, state: MEESState) -> list[Genome]:
        """Return the moved center."""
        return [state.center]

    def tell_validation(self, state: MEESState, validation: EvaluatedPopulation) -> MEESState:
        """Add the center to the cell of its behavior if it is fitter; after `moves` steps, select another cell.

        Raises:
            ValueError: A fitness is not finite, or there are no behaviors.
        """
        fitness = finite(validation.fitness, 1, "candidate")
        behaviors = validate_behaviors(validation.behaviors, 1, state.behaviors).astype(np.float64)
        behaviors[~known(behaviors)] = np.nan
        cells = state.cells.keep_best(self.grid, behaviors, validation.genomes, fitness)
        came = tuple(genome for genome in validation.genomes if genome in cells.genomes)
        state = replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + validation.steps,
            cells=cells,
            recent=tuple(each for each in (*state.recent, *came) if each in cells.genomes)[-_RECENT:],
            behaviors=state.behaviors.append(behaviors[known(behaviors)]),
            remaining=max(state.remaining - 1, 0),
        )
        if state.remaining or not cells:
            return state
        explores = self.mode == "explore" or (self.mode == "alternate" and not state.explores)
        center = self._most_novel(state) if explores else self._fittest(state)
        return replace(state, center=center, optimizer=None, explores=explores, remaining=self.moves)

    def elite(self, state: MEESState) -> Genome:
        """Return the fittest center of all cells, or the current center while all cells are empty."""
        return next(iter(self.best(state)), state.center)

    def best(self, state: MEESState) -> list[Genome]:
        """Return the centers of all cells, fittest first."""
        return _by_fitness(state.cells)

    def archive(self, state: MEESState) -> Archive:
        """Return the archive of centers."""
        return state.cells

    def novelties(self, state: MEESState, population: EvaluatedPopulation) -> np.ndarray | None:
        """Return each member's novelty, float64 [N], NaN where unknown; None before the first behavior of a center."""
        if not state.behaviors:
            return None
        behaviors = validate_behaviors(population.behaviors, len(population.genomes), state.behaviors)
        return novelty(behaviors, state.behaviors, self.k, peers=False)

    def metrics(self, before: MEESState, after: MEESState) -> dict[str, float]:  # type: ignore[override]
        """Return sigma, whether the center explored, and the coverage and QD score of the cells."""
        sigma = shortest(scale_at(self.sigma, before))
        return {"sigma": sigma, "explores": float(before.explores), **self.cell_metrics(after.cells)}

    def _most_novel(self, state: MEESState) -> Genome:
        """Select the center of one of the most novel cells, with a probability proportional to its novelty."""
        assert state.cells.behaviors is not None
        # k + 1, since state.behaviors contains each center's own behavior, at distance 0; proportions do not change.
        score = novelty(state.cells.behaviors, state.behaviors, self.k + 1, peers=False)
        best = ranking(score)[:_MOST_NOVEL]
        edges = np.cumsum(score[best]) if score[best].any() else np.arange(1.0, len(best) + 1)
        (drawn,) = draw_uniforms(1, state.seed, state.generation, Purpose.CENTERS)
        return state.cells.genomes[best[int(np.searchsorted(edges / edges[-1], drawn, side="right"))]]

    def _fittest(self, state: MEESState) -> Genome:
        """Select the center of one of the fittest cells, with probability 0.5 only among the most recent cells."""
        latest, drawn = draw_uniforms(2, state.seed, state.generation, Purpose.CENTERS)
        best = _by_fitness(state.cells)
        if latest < 0.5:
            best = [each for each in best if each in state.recent]
        best = best[:_FITTEST]
        return best[int(drawn * len(best))]


def _by_fitness(cells: Archive) -> list[Genome]:
    return [] if cells.fitness is None else [cells.genomes[i] for i in ranking(cells.fitness)]
