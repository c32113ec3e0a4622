"""GA-NS, novelty search by the GA: parents are the most novel instead of the fittest (Such et al. 2017,
https://arxiv.org/abs/1712.06567; after Lehman and Stanley 2011, https://doi.org/10.1162/EVCO_a_00025).

Novelty is the mean distance to the k nearest in the population and an archive, which each genome enters with a small
probability; in Lehman and Stanley it takes those above a threshold of novelty. The most novel of a generation competes
with the next one too, with the behavior that it had: it is the 1 in the paper's population of 20,000 + 1. Fitness has
no part in the search. It only says who is the elite, what the search has found: as in the GA that is the best by
validation, but here it is kept apart from the parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.algorithm import Played, Weights
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.selection import pick_candidates, pick_elite, ranking
from neuroevo.behavior import Behavior, trajectory
from neuroevo.genome import Genome
from neuroevo.novelty import FAILED, checked, grown, known, mean_and_highest, novelty
from neuroevo.randomness import Purpose, draw_uniforms
from neuroevo.settings import Count, CountOrZero, settings


@dataclass(frozen=True, eq=False)
class GANSState:
    """What a GA's state has, with parents by novelty, and

    leader: behavior of the first parent, the most novel of its generation, [B], None if it is not known. archive:
    [A, B], None while it is empty. mean_novelty, max_novelty: of the generation before.
    """

    seed: int
    generation: int = 0
    steps: int = 0
    parents: tuple[Genome, ...] = ()
    elite: Genome | None = None
    candidates: tuple[Genome, ...] = ()
    leader: np.ndarray | None = None
    archive: np.ndarray | None = None
    mean_novelty: float = 0.0
    max_novelty: float = 0.0


@settings
class GANS(GA):
    """Genetic algorithm with truncation selection by novelty."""

    parents: Count = 20
    """The most novel that may have offspring (T); each offspring's parent is one of them, picked uniformly."""
    k: Count = 25
    """Novelty is the mean distance to so many nearest neighbors, in the population and the archive."""
    archive_probability: Annotated[float, Field(ge=0, le=1)] = 0.01
    """How likely each genome's behavior is to enter the archive."""
    archive_limit: CountOrZero = 0
    """The newest behaviors that stay in the archive; 0: all of them."""
    trajectory_every: CountOrZero = 0
    """Steps between the samples of an episode that are its behavior together; 0: only how it ended."""
    trajectory_samples: Count = 1
    """Samples of each episode; those after its end are the last one again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        trajectory(self.trajectory_every, self.trajectory_samples)

    state_type: ClassVar[type] = GANSState

    @property
    def behavior(self) -> Behavior:
        """What of an episode is recorded."""
        return trajectory(self.trajectory_every, self.trajectory_samples)

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> GANSState:
        """The state before generation 0; of `genomes` the first becomes the elite and the first T the parents."""
        return GANSState(seed, parents=tuple(genomes[: self.parents]), elite=next(iter(genomes), None))

    def tell(self, state: GANSState, population: Played, weights: Weights | None = None) -> GANSState:
        """Selects parents by novelty, against the archive of before; the candidates are the fittest and the elite.

        ValueError: a fitness is not finite, or there are no behaviors.
        """
        genomes, count = list(population.genomes), len(population.genomes)
        candidates = pick_candidates(genomes, population.fitness, self.validated, state.elite)
        behaviors = checked(population.behaviors, count, state.archive)
        drawn = draw_uniforms(count, state.seed, state.generation, Purpose.ARCHIVE) < self.archive_probability
        archive = grown(state.archive, behaviors[drawn & known(behaviors)], self.archive_limit)
        if state.leader is not None:
            genomes, behaviors = [state.parents[0], *genomes], np.vstack([state.leader, behaviors])
        score = novelty(behaviors, state.archive, self.k, peers=True)
        best = ranking(score)[: self.parents]
        mean, highest = mean_and_highest(score[-count:])
        return replace(
            state,
            steps=state.steps + population.steps,
            parents=tuple(genomes[i] for i in best),
            candidates=tuple(candidates),
            leader=behaviors[best[0]].copy() if score[best[0]] != FAILED else None,
            archive=archive,
            mean_novelty=mean,
            max_novelty=highest,
        )

    def tell_validation(self, state: GANSState, validation: Played) -> GANSState:
        """Selects the elite by validation; it is a parent only where it is novel."""
        return replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + validation.steps,
            elite=pick_elite(validation.genomes, validation.fitness),
            candidates=(),
        )

    def metrics(self, before: GANSState, after: GANSState) -> dict[str, float]:
        """sigma, the novelty of the generation's genomes, and how many behaviors are in the archive after it."""
        return {
            **super().metrics(before, after),
            "novelty_mean": after.mean_novelty,
            "novelty_max": after.max_novelty,
            "archive": 0 if after.archive is None else len(after.archive),
        }
