"""MAP-Elites (Mouret and Clune 2015, https://arxiv.org/abs/1504.04909): the best genome of every kind of behavior.

The space of behaviors is a grid, and each of its cells keeps the fittest genome whose behavior is in it. Offspring are
mutations of the genomes of cells, each cell as likely. Genomes are seeds, as the GA's, so that an archive of thousands
of networks with millions of weights takes little memory. Variation along the line between two parents (iso+line) is not
among the mutations, since it would need the weights of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from neuroevo.algorithms.base import Algorithm, Played, State
from neuroevo.algorithms.novelty import check_behaviors, checked, known
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import finite, known_elite, pick_candidates, pick_elite
from neuroevo.core.archive import Archive, Grid
from neuroevo.core.behavior import Behavior, Measure
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds
from neuroevo.core.settings import Count, listed, settings

_Numbers = Annotated[tuple[float, ...], BeforeValidator(listed)]
_Counts = Annotated[
    tuple[Count, ...], BeforeValidator(lambda value: listed([value] if isinstance(value, int) else value))
]


@dataclass(frozen=True, eq=False)
class MAPElitesState(State):
    """The state before a generation.

    Attributes:
        cells: The archive: the fittest genome of each cell that has one.
        start: Genomes whose offspring come first; none for fresh genomes.
        elite: The winner of the last validation; None in generation 0.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    cells: Archive = Archive()
    start: tuple[Genome, ...] = ()
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: there is no elite after a generation, or behaviors do not fit."""
        super().check_state()
        check_behaviors(self.cells)
        if self.generation and self.elite is None:
            raise ValueError(f"there is no elite after {self.generation} generations")


@settings
class MAPElites(Algorithm):
    """MAP-Elites, which keeps the best genome of every cell of a grid of behaviors."""

    population: Count = 1000
    """Genomes per generation."""
    cells: _Counts = (20,)
    """Number of cells along each axis; one number is that of every axis."""
    low: _Numbers = ()
    """Lower bound of each axis; left out: the environment's. A behavior out of bounds is in the nearest cell."""
    high: _Numbers = ()
    """Upper bound of each axis; left out: the environment's."""
    sigma: Schedule = 0.02
    """Mutation power: standard deviation of the noise added to every weight. A number or a schedule, as the GA's."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """How many of the archive's fittest genomes play validation episodes; the previous elite replaces the last of them.
    """

    state_type = MAPElitesState

    @property
    def behavior(self) -> Behavior:
        """The behavior of an episode: the numbers at its end."""
        return Behavior()

    @property
    def grid(self) -> Grid:
        """The grid, once on_measures() has seen to its bounds."""
        shape = self.cells * len(self.low) if len(self.cells) == 1 else self.cells
        return Grid(self.low, self.high, shape)

    def on_measures(self, measures: Sequence[Measure]) -> MAPElites:
        """Return the algorithm for behaviors of these numbers, with their bounds where the settings have none.

        Raises:
            ConfigError: The settings are for other numbers, or there are no bounds; all problems.
        """
        problems, names = [], ", ".join(measure.name for measure in measures[:8]) + ("..." if len(measures) > 8 else "")
        bounds: dict[str, Any] = {}
        for key, axes in (("cells", self.cells), ("low", self.low), ("high", self.high)):
            if len(axes) not in {0, len(measures)} | ({1} if key == "cells" else set()):
                reason = f"expected {len(measures)} numbers, one for each of {names}"
                problems.append(Problem(key, reason, list(axes)))
        for key in ("low", "high"):
            bounds[key] = getattr(self, key) or tuple(getattr(measure, key) for measure in measures)
            for measure, bound in zip(measures, bounds[key], strict=False):
                if not math.isfinite(bound):
                    reason = f"missing, as {measure.name} has no bound: expected one number for each of {names}"
                    problems.append(Problem(key, reason))
                    break
        refuse(problems)
        found = replace(self, **bounds)
        for measure, low, high in zip(measures, found.low, found.high, strict=True):
            if not low < high:
                refuse([Problem("high", f"expected more than {low:g} for {measure.name}, the lower bound", high)])
        return found

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> MAPElitesState:
        """Make the state before generation 0, whose offspring are those of the genomes."""
        return MAPElitesState(seed, start=tuple(genomes), elite=next(iter(genomes), None))

    def ask(self, state: MAPElitesState, weights: Weights | None = None) -> list[Genome]:
        """Return mutations of the archive's genomes or, while it is empty, of the first ones or fresh genomes."""
        parents = state.cells.genomes or state.start
        if not parents:
            bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
            return [Genome(base) for base in bases]
        drawn = draw_indices(self.population, len(parents), state.seed, state.generation, Purpose.PARENTS)
        noise, sigma = (
            draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS),
            scale_at(self.sigma, state),
        )
        return [parents[parent].child(seed, sigma) for parent, seed in zip(drawn, noise, strict=True)]

    def tell(self, state: MAPElitesState, population: Played, weights: Weights | None = None) -> MAPElitesState:
        """Let every genome compete for the cell of its behavior.

        Raises:
            ValueError: A fitness is not finite, or there are no behaviors.
        """
        genomes, fitness = population.genomes, finite(population.fitness, len(population.genomes))
        behaviors = checked(population.behaviors, len(genomes), state.cells).astype(np.float64)
        behaviors[~known(behaviors)] = np.nan
        cells = state.cells.keep_best(self.grid, behaviors, genomes, fitness)
        best, scores = (genomes, fitness) if cells.fitness is None else (cells.genomes, cells.fitness)
        candidates = tuple(pick_candidates(best, scores, self.validation_candidates, state.elite))
        return replace(state, steps=state.steps + population.steps, cells=cells, candidates=candidates)

    def candidates(self, state: MAPElitesState) -> list[Genome]:
        """Return the previous elite and the archive's fittest genomes."""
        return list(state.candidates)

    def tell_validation(self, state: MAPElitesState, validation: Played) -> MAPElitesState:
        """Select the candidate with the best validation as the elite; the archive stays as it is."""
        return replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + validation.steps,
            elite=pick_elite(validation.genomes, validation.fitness),
            candidates=(),
        )

    def elite(self, state: MAPElitesState) -> Genome:
        """Return the winner of the last validation. ValueError: the first generation is not finished."""
        return known_elite(state.elite)

    def best(self, state: MAPElitesState) -> list[Genome]:
        """Return the elite, then the archive's genomes in the order of their cells."""
        return list(dict.fromkeys([self.elite(state), *state.cells.genomes]))

    def archive(self, state: MAPElitesState) -> Archive:
        """Return the archive."""
        return state.cells

    def metrics(self, before: MAPElitesState, after: MAPElitesState) -> dict[str, float]:
        """Return sigma, the share of cells with a genome, and the sum of their fitness."""
        total = 0.0 if after.cells.fitness is None else float(after.cells.fitness.sum())
        coverage = len(after.cells) / math.prod(self.grid.shape)
        return {"sigma": shortest(scale_at(self.sigma, before)), "coverage": coverage, "qd_score": total}
