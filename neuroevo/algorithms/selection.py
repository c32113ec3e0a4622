"""Ranking and the choice of the elite, which genetic algorithms and random search share.

The candidates for the elite are the best genomes of a generation, the last of them replaced by the previous elite. The
candidate with the best mean over its validation episodes becomes the new elite (Such et al. 2017, section 3;
https://arxiv.org/abs/1712.06567).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.genome import Genome


def finite(fitness: np.ndarray, count: int, what: str = "genome") -> np.ndarray:
    """Return the fitness as float64 if all of it is finite.

    Args:
        fitness: Numbers, [count].
        count: The expected length.
        what: What the numbers belong to, for the message: "genome" or "candidate".

    Returns:
        float64 [count].

    Raises:
        ValueError: The shape is another one, or a number is not finite; the message names the index and value of the
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
    """Return the indices from the highest fitness to the lowest, equal ones in ascending order of index.

    Args:
        fitness: Numbers, [N].

    Returns:
        The N indices.
    """
    return np.argsort(-np.asarray(fitness, np.float64), kind="stable").tolist()


def pick_candidates(genomes: Sequence[Genome], fitness: np.ndarray, count: int, elite: Genome | None) -> list[Genome]:
    """Return the best genomes, the last of them replaced by the previous elite.

    The previous elite comes first, so that it wins ties in validation.

    Args:
        genomes: The population, N genomes.
        fitness: Fitness of each genome, [N].
        count: Number of candidates, the previous elite included.
        elite: The previous elite; None if there is none.

    Returns:
        At most `count` genomes, from the best to the worst after the elite.

    Raises:
        ValueError: A fitness is not finite.
    """
    best = [genomes[i] for i in ranking(finite(fitness, len(genomes))) if genomes[i] != elite]
    return best[:count] if elite is None else [elite, *best[: count - 1]]


def pick_elite(candidates: Sequence[Genome], validation: np.ndarray) -> Genome:
    """Return the candidate with the highest validation fitness, the first one of equals.

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
