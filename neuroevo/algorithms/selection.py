"""Ranking, mutation and selection of the elite, shared by genetic algorithms, MAP-Elites and random search.

The candidates for the elite are the best genomes of a generation; the previous elite replaces the last of them. The
candidate with the best mean return over its validation episodes becomes the new elite (Such et al. 2017, section 3;
https://arxiv.org/abs/1712.06567).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds


@dataclass(frozen=True, eq=False)
class ValidatedState(State):
    """The state of an algorithm whose elite is chosen by validation episodes.

    Attributes:
        elite: The winner of the last validation; None in generation 0 unless the run starts from given genomes.
        candidates: Genomes that play validation episodes; empty except between tell() and tell_validation().
    """

    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()

    def check_state(self) -> None:
        """Check ranges. ValueError: a count is below 0, or the elite is missing after a generation."""
        super().check_state()
        if self.generation and self.elite is None:
            raise ValueError(f"there is no elite after {self.generation} generations")


class ValidatedSearch(Algorithm, ABC):
    """Base class of algorithms that select the elite from the candidates of their state by validation episodes."""

    def candidates(self, state: Any) -> list[Genome]:
        """Return the candidates that tell() has chosen."""
        return list(state.candidates)

    def tell_validation(self, state: Any, validation: EvaluatedPopulation) -> Any:
        """Select the candidate with the best validation as the elite."""
        return replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + validation.steps,
            elite=pick_elite(validation.genomes, validation.fitness),
            candidates=(),
        )

    def elite(self, state: Any) -> Genome:
        """Return the winner of the last validation. ValueError: the first generation is not finished."""
        return known_elite(state.elite)


def fresh_genomes(count: int, state: State) -> list[Genome]:
    """Return genomes with fresh weights, which depend only on the state's seed and generation."""
    return [Genome(base) for base in draw_seeds(count, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)]


def pick_parents(parents: Sequence[Genome], count: int, state: State, tournament: int = 1) -> list[Genome]:
    """Pick the parents of `count` offspring.

    Args:
        parents: Possible parents, the best first.
        count: Number of offspring.
        state: The state before the generation.
        tournament: Number of parents drawn for each offspring; the best of them is picked.

    Returns:
        A parent for each offspring.
    """
    drawn = draw_indices(count * tournament, len(parents), state.seed, state.generation, Purpose.PARENTS)
    return [parents[min(drawn[at : at + tournament])] for at in range(0, count * tournament, tournament)]


def noise_of(parents: Sequence[Genome], state: State) -> list[int]:
    """Return a noise seed for one offspring of each parent."""
    return draw_seeds(len(parents), state.seed, state.generation, Purpose.MUTATIONS)


def mutated(parents: Sequence[Genome], sigmas: Sequence[float], state: State) -> list[Genome]:
    """Return a mutation of each parent, with independent noise of the given standard deviations."""
    noise = noise_of(parents, state)
    return [parent.child(seed, sigma) for parent, seed, sigma in zip(parents, noise, sigmas, strict=True)]


def finite(fitness: np.ndarray, count: int, what: str = "genome") -> np.ndarray:
    """Return the fitness as float64 if all of it is finite.

    Args:
        fitness: Numbers, [count].
        count: The expected length.
        what: Owner of the numbers in the message: "genome" or "candidate".

    Returns:
        float64 [count].

    Raises:
        ValueError: The shape is wrong, or a number is not finite; the message contains the index and value of the
            first such number.
    """
    fitness = np.asarray(fitness, np.float64)
    if fitness.shape != (count,):
        raise ValueError(f"fitness has shape {fitness.shape}, expected ({count},)")
    wrong = np.flatnonzero(~np.isfinite(fitness))
    if wrong.size:
        raise ValueError(f"fitness of {what} {wrong[0]} is {fitness[wrong[0]]}, expected a finite number")
    return fitness


def ranking(fitness: np.ndarray) -> list[int]:
    """Return the indices sorted by descending fitness; ties are sorted by ascending index.

    Args:
        fitness: Numbers, [N].

    Returns:
        The N indices.
    """
    return np.argsort(-np.asarray(fitness, np.float64), kind="stable").tolist()


def pick_candidates(genomes: Sequence[Genome], fitness: np.ndarray, count: int, elite: Genome | None) -> list[Genome]:
    """Return the best genomes, with the previous elite in place of the last of them.

    The previous elite comes first, so that it wins ties in validation.

    Args:
        genomes: The population, N genomes.
        fitness: Fitness of each genome, [N].
        count: Number of candidates, the previous elite included.
        elite: The previous elite; None before the first validation.

    Returns:
        At most `count` genomes, from the best to the worst after the elite.

    Raises:
        ValueError: A fitness is not finite.
    """
    best = [genomes[i] for i in ranking(finite(fitness, len(genomes))) if genomes[i] != elite]
    return best[:count] if elite is None else [elite, *best[: count - 1]]


def pick_elite(candidates: Sequence[Genome], validation: np.ndarray) -> Genome:
    """Return the candidate with the highest validation fitness; the first candidate wins ties.

    Args:
        candidates: C genomes.
        validation: Mean return of each candidate's validation episodes, [C].

    Returns:
        The new elite.

    Raises:
        ValueError: A fitness is not finite.
    """
    return candidates[ranking(finite(validation, len(candidates), "candidate"))[0]]


def known_elite(elite: Genome | None) -> Genome:
    """Return a state's elite. ValueError: the first generation is not finished."""
    if elite is None:
        raise ValueError("there is no elite before the first generation is finished")
    return elite
