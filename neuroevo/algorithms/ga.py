"""The genetic algorithm of Such et al. 2017 (https://arxiv.org/abs/1712.06567, algorithm 1).

Truncation selection, mutation by additive Gaussian noise, no crossover, and an elite chosen by validation episodes.
What does not depend on how parents are selected is in TruncationGA, which GA-NS (ga_ns.py) shares. Beyond that paper,
parents may play again beside their offspring, be selected by tournaments, and pass on a mutation power of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import Algorithm, Played, State
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import finite, known_elite, pick_candidates, pick_elite, ranking
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds, draw_uniforms
from neuroevo.core.settings import Count, CountOrZero, settings


@dataclass(frozen=True, eq=False)
class TruncationState(State):
    """State of algorithms with truncation selection, before a generation.

    Attributes:
        parents: Genomes that may have offspring; empty in generation 0 unless the run starts from given genomes.
        elite: The winner of the last validation; None in generation 0 unless the run starts from given genomes.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    parents: tuple[Genome, ...] = ()
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check ranges. ValueError: a count is below 0, or there are no parents or no elite after a generation."""
        super().check_state()
        if self.generation and not (self.parents and self.elite):
            raise ValueError(f"there are no parents or no elite after {self.generation} generations")


@dataclass(frozen=True)
class GAState(TruncationState):
    """The state of the genetic algorithm before a generation; states with equal values are equal."""


@settings
class TruncationGA(Algorithm):
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

    state_type: ClassVar[type[TruncationState]]

    def __post_init__(self) -> None:
        if self.parents > self.population:
            refuse([Problem("parents", f"expected at most the population, {self.population}", self.parents)])

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Make the state before generation 0; the first of the genomes becomes the elite, the first T the parents."""
        return self.state_type(seed, parents=tuple(genomes[: self.parents]), elite=next(iter(genomes), None))

    def ask(self, state: TruncationState, weights: Weights | None = None) -> list[Genome]:
        """Return mutations of the parents or, without parents (generation 0), fresh genomes."""
        if not state.parents:
            bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
            return [Genome(base) for base in bases]
        parents = draw_indices(self.population, len(state.parents), state.seed, state.generation, Purpose.PARENTS)
        noise = draw_seeds(self.population, state.seed, state.generation, Purpose.MUTATIONS)
        sigma = scale_at(self.sigma, state)
        return [state.parents[parent].child(seed, sigma) for parent, seed in zip(parents, noise, strict=True)]

    def candidates(self, state: TruncationState) -> list[Genome]:
        """Return the previous elite and the best of the population."""
        return list(state.candidates)

    def elite(self, state: TruncationState) -> Genome:
        """Return the winner of the last validation. ValueError: the first generation is not finished."""
        return known_elite(state.elite)

    def best(self, state: TruncationState) -> list[Genome]:
        """Return the elite, then the other parents."""
        return list(dict.fromkeys([self.elite(state), *state.parents]))


@settings
class GA(TruncationGA):
    """Genetic algorithm with truncation selection."""

    elites: CountOrZero = 0
    """How many of the parents, the best ones, are in the next population, too: unchanged, and they play again, so that
    one that was only lucky does not stay a parent."""
    tournament: Count = 1
    """How many parents are drawn for each offspring, of which the best becomes its parent; 1: any. With parents =
    population, more than 1 is tournament selection in place of truncation."""
    sigma_factor: Annotated[float, Field(ge=1, le=10)] = 1.0
    """Above 1, sigma adapts itself: an offspring's sigma is that of its parent times a number between 1 / sigma_factor
    and sigma_factor, whose logarithm is uniform; the setting sigma is that of the first offspring."""

    state_type = GAState

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.elites > min(self.parents, self.population - 1):
            most = min(self.parents, self.population - 1)
            expected = f"expected at most {most}, as there are {self.parents} parents and {self.population} genomes"
            refuse([Problem("elites", expected, self.elites)])

    def ask(self, state: TruncationState, weights: Weights | None = None) -> list[Genome]:
        """Return the elites and mutations of the parents or, without parents (generation 0), fresh genomes."""
        if not state.parents:
            return super().ask(state, weights)
        elites, of = state.parents[: self.elites], self.tournament
        count = self.population - len(elites)
        drawn = draw_indices(count * of, len(state.parents), state.seed, state.generation, Purpose.PARENTS)
        parents = [state.parents[min(drawn[of * i : of * (i + 1)])] for i in range(count)]  # the best come first
        noise = draw_seeds(count, state.seed, state.generation, Purpose.MUTATIONS)
        sigmas = [scale_at(self.sigma, state)] * count
        if self.sigma_factor > 1:
            powers = 2 * draw_uniforms(count, state.seed, state.generation, Purpose.SIGMAS) - 1
            inherited = [_sigma(parent, sigma) for parent, sigma in zip(parents, sigmas, strict=True)]
            sigmas = [
                float(np.float32(sigma * self.sigma_factor**x)) for sigma, x in zip(inherited, powers, strict=True)
            ]
        of_offspring = zip(parents, noise, sigmas, strict=True)
        return [*elites, *(parent.child(seed, sigma) for parent, seed, sigma in of_offspring)]

    def tell(self, state: GAState, population: Played, weights: Weights | None = None) -> GAState:
        """Select the fittest as parents and as candidates; the previous elite is the first candidate."""
        genomes, fitness = population.genomes, population.fitness
        return replace(
            state,
            steps=state.steps + population.steps,
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
            parents=tuple(genomes[i] for i in ranking(finite(fitness, len(genomes)))[: self.parents]),
        )

    def tell_validation(self, state: GAState, validation: Played) -> GAState:
        """Select the candidate with the best validation as the elite, which is always a parent."""
        elite, parents = pick_elite(validation.genomes, validation.fitness), state.parents
        if elite not in parents:
            parents = (elite, *parents[: self.parents - 1])
        steps = state.steps + validation.steps
        return GAState(state.seed, parents, elite, generation=state.generation + 1, steps=steps)

    def metrics(self, before: GAState, after: GAState) -> dict[str, float]:
        """Return the sigma of the generation's offspring or, where it adapts itself, the mean of the new parents'."""
        sigma = scale_at(self.sigma, before)
        if self.sigma_factor > 1:
            sigma = float(np.mean([_sigma(parent, sigma) for parent in after.parents]))
        return {"sigma": shortest(sigma)}


def _sigma(genome: Genome, first: float) -> float:
    """Return the sigma of a genome's last mutation, or `first` if it has none."""
    return first if genome.mutation is None else abs(genome.mutation.scale)
