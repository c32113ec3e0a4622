"""The genetic algorithm of Such et al. 2017 (https://arxiv.org/abs/1712.06567, algorithm 1).

Truncation selection, mutation by additive Gaussian noise, no crossover, and an elite chosen by validation episodes.
TruncationGA is the base class of GA and of GA-NS (ga_ns.py), which ranks genomes by novelty. Extensions of the paper:
elitism with re-evaluation, tournament selection, self-adaptive mutation powers, and safe mutations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.safe_mutations import rescaled
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import (
    ValidatedSearch,
    ValidatedState,
    finite,
    fresh_genomes,
    mutated,
    noise_of,
    pick_candidates,
    pick_parents,
    ranking,
)
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Purpose, draw_uniforms
from neuroevo.core.settings import Count, CountOrZero, settings


@dataclass(frozen=True, eq=False)
class TruncationState(ValidatedState):
    """The state of an algorithm with truncation selection before a generation.

    Attributes:
        parents: Genomes that may have offspring; empty in generation 0 unless the run starts from given genomes.
    """

    parents: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check ranges. ValueError: an inherited check fails, or there are no parents after a generation."""
        super().check_state()
        if self.generation and not self.parents:
            raise ValueError(f"there are no parents after {self.generation} generations")


@dataclass(frozen=True)
class GAState(TruncationState):
    """The state of the genetic algorithm before a generation; states with equal values are equal."""


@settings
class TruncationGA(ValidatedSearch):
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
    """Number of genomes that play validation episodes: the previous elite and the best others."""

    state_type: ClassVar[type[TruncationState]]

    def __post_init__(self) -> None:
        if self.parents > self.population:
            refuse([Problem("parents", f"expected at most the population, {self.population}", self.parents)])

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Make the state before generation 0; the first genome becomes the elite, the first T become parents."""
        return self.state_type(seed, parents=tuple(genomes[: self.parents]), elite=next(iter(genomes), None))

    def ask(self, state: TruncationState, weights: Weights | None = None) -> list[Genome]:
        """Return mutations of the parents or, without parents (generation 0), fresh genomes."""
        if not state.parents:
            return fresh_genomes(self.population, state)
        parents = pick_parents(state.parents, self.population, state)
        return mutated(parents, [scale_at(self.sigma, state)] * self.population, state)

    def best(self, state: TruncationState) -> list[Genome]:
        """Return the elite, then the other parents."""
        return list(dict.fromkeys([self.elite(state), *state.parents]))


@settings
class GA(TruncationGA):
    """Genetic algorithm with truncation selection."""

    elites: CountOrZero = 0
    """Number of best parents copied unchanged into the next population. They are evaluated again, so that a parent
    that was only lucky loses its place."""
    tournament: Count = 1
    """Tournament size: the best of this many randomly drawn parents becomes the parent of an offspring; 1: uniform
    selection. With parents = population, a larger value is tournament selection instead of truncation."""
    sigma_factor: Annotated[float, Field(ge=1, le=10)] = 1.0
    """Above 1, sigma is self-adaptive: an offspring's sigma is its parent's sigma times a log-uniform factor in
    [1 / sigma_factor, sigma_factor]; the setting sigma is the initial value."""
    output_change: Annotated[float, Field(ge=0)] = 0.0
    """Above 0, mutations are safe (SM-R): the noise of each offspring is scaled so that the mean squared difference
    between its outputs and its parent's, on observations of random play, is this value. The search for the scale starts
    at the parent's, initially sigma."""

    state_type = GAState

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_change and self.sigma_factor > 1:
            refuse([Problem("output_change", "expected 0 where sigma_factor is above 1", self.output_change)])
        if self.elites > min(self.parents, self.population - 1):
            most = min(self.parents, self.population - 1)
            expected = f"expected at most {most}, as there are {self.parents} parents and {self.population} genomes"
            refuse([Problem("elites", expected, self.elites)])

    @property
    def needs_reference(self) -> bool:
        """Return whether safe mutations are enabled."""
        return self.output_change > 0

    def ask(self, state: TruncationState, weights: Weights | None = None) -> list[Genome]:
        """Return the elites and mutations of the parents or, without parents (generation 0), fresh genomes."""
        if not state.parents:
            return super().ask(state, weights)
        elites, sigma = state.parents[: self.elites], scale_at(self.sigma, state)
        parents = pick_parents(state.parents, self.population - len(elites), state, self.tournament)
        sigmas = [sigma] * len(parents)
        if self.sigma_factor > 1:
            powers = 2 * draw_uniforms(len(parents), state.seed, state.generation, Purpose.SIGMAS) - 1
            inherited = (
                _sigma(parent, sigma) * self.sigma_factor**x for parent, x in zip(parents, powers, strict=True)
            )
            sigmas = [float(np.float32(each)) for each in inherited]
        if self.output_change:
            assert weights is not None
            first = [_sigma(parent, sigma) for parent in parents]  # the scale found for the parent's own mutation
            sigmas = rescaled(parents, noise_of(parents, state), first, self.output_change, weights)
        return [*elites, *mutated(parents, sigmas, state)]

    def tell(self, state: GAState, population: EvaluatedPopulation, weights: Weights | None = None) -> GAState:
        """Select the fittest as parents and as candidates; the previous elite is the first candidate."""
        genomes, fitness = population.genomes, population.fitness
        return replace(
            state,
            steps=state.steps + population.steps,
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
            parents=tuple(genomes[i] for i in ranking(finite(fitness, len(genomes)))[: self.parents]),
        )

    def tell_validation(self, state: GAState, validation: EvaluatedPopulation) -> GAState:
        """Select the candidate with the best validation as the elite, which is always a parent."""
        told: GAState = super().tell_validation(state, validation)
        if told.elite is None or told.elite in told.parents:
            return told
        return replace(told, parents=(told.elite, *told.parents[: self.parents - 1]))

    def metrics(self, before: GAState, after: GAState) -> dict[str, float]:
        """Return the sigma of the generation's offspring or, where it differs between them, the new parents' mean."""
        sigma = scale_at(self.sigma, before)
        if self.sigma_factor > 1 or self.output_change:
            sigma = float(np.mean([_sigma(parent, sigma) for parent in after.parents]))
        return {"sigma": shortest(sigma)}


def _sigma(genome: Genome, first: float) -> float:
    """Return the sigma of a genome's last mutation, or `first` for a root."""
    return first if genome.mutation is None else abs(genome.mutation.scale)
