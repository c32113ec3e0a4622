"""Ranking and validation, shared by the GA and random search.

The last of the best is replaced by the previous elite, and who has the best mean over the validation episodes is the
new elite (Such et al. 2017, section 3; https://arxiv.org/abs/1712.06567).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.genome import Genome


def finite(fitness: np.ndarray, count: int, what: str = "genome") -> np.ndarray:
    """`fitness` as float64 [count]. ValueError names the index and value of the first one that is not finite."""
    fitness = np.asarray(fitness, np.float64)
    if fitness.shape != (count,):
        raise ValueError(f"fitness has shape {fitness.shape}, expected ({count},)")
    wrong = np.flatnonzero(~np.isfinite(fitness))
    if wrong.size:
        raise ValueError(f"fitness of {what} {wrong[0]} is {fitness[wrong[0]]}, expected a finite number")
    return fitness


def ranking(fitness: np.ndarray) -> list[int]:
    """Indices from the highest fitness to the lowest; equal ones by index."""
    return np.argsort(-np.asarray(fitness, np.float64), kind="stable").tolist()


def pick_candidates(genomes: Sequence[Genome], fitness: np.ndarray, count: int, elite: Genome | None) -> list[Genome]:
    """The `count` best, the last replaced by the previous elite; that one comes first, so that it wins ties."""
    best = [genomes[i] for i in ranking(finite(fitness, len(genomes)))]
    return best[:count] if elite is None else [elite, *best[: count - 1]]


def pick_elite(candidates: Sequence[Genome], validation: np.ndarray) -> Genome:
    """The candidate with the best mean validation fitness, float64 [C]; the first one of equals."""
    return candidates[ranking(finite(validation, len(candidates), "candidate"))[0]]
