"""GA-NS, novelty search with the GA: the most novel genomes become parents instead of the fittest.

Such et al. 2017 (https://arxiv.org/abs/1712.06567), after Lehman and Stanley 2011
(https://doi.org/10.1162/EVCO_a_00025).

The novelty of a genome is the mean distance of its behavior to the k nearest in the population and in an archive. Each
behavior enters the archive with a small probability; in Lehman and Stanley 2011 it enters if its novelty is above a
threshold. The most novel genome of a generation also competes with the next generation, with its recorded behavior: it
is the 1 in the paper's population of 20,000 + 1. Fitness does not guide the search. It only determines the elite: as in
the GA, the candidate with the best validation, but the elite does not become a parent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.ga import TruncationGA, TruncationState
from neuroevo.algorithms.novelty import check_behaviors, mean_and_highest, novelty, validate_behaviors
from neuroevo.algorithms.schedules import scale_at, shortest
from neuroevo.algorithms.selection import pick_candidates, ranking
from neuroevo.core.archive import Archive
from neuroevo.core.behavior import Behavior, trajectory
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_uniforms
from neuroevo.core.settings import Count, CountOrZero, settings


@dataclass(frozen=True, eq=False)
class GANSState(TruncationState):
    """The state of GA-NS before a generation; its parents are selected by novelty.

    Attributes:
        leader: Behavior of the first parent, the most novel genome of its generation, [B]; None if it is unknown.
        archive: Behaviors that novelty is measured against.
        mean_novelty: Mean novelty of the previous generation.
        max_novelty: Highest novelty of the previous generation.
    """

    leader: np.ndarray | None = None
    archive: Archive = Archive()
    mean_novelty: float = 0.0
    max_novelty: float = 0.0

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: an inherited check fails, or behaviors do not fit the archive."""
        super().check_state()
        check_behaviors(self.archive, self.leader)
        if self.leader is not None and not self.parents:
            raise ValueError("the state has a leader's behavior but no parents")


@settings
class GANS(TruncationGA):
    """Genetic algorithm with truncation selection by novelty."""

    parents: Count = 20
    """Truncation size T: the T most novel genomes may have offspring. The parent of each offspring is picked uniformly
    from them."""
    k: Count = 25
    """Number of nearest neighbors: novelty is the mean distance to them, in the population and the archive."""
    archive_probability: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Probability that a genome's behavior enters the archive."""
    archive_limit: CountOrZero = 0
    """Capacity of the archive, which keeps the newest behaviors; 0: no limit."""
    trajectory_every: CountOrZero = 0
    """Steps between the samples of an episode that make up its behavior; 0: one sample at the end of the episode."""
    trajectory_samples: Count = 1
    """Samples per episode; in shorter episodes the last sample is repeated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        trajectory(self.trajectory_every, self.trajectory_samples)

    state_type = GANSState

    @property
    def behavior(self) -> Behavior:
        """The behavior to record in each episode: its end, or a trajectory."""
        return trajectory(self.trajectory_every, self.trajectory_samples)

    def tell(self, state: GANSState, population: EvaluatedPopulation, weights: Weights | None = None) -> GANSState:
        """Select the most novel genomes as parents; the previous elite and the fittest genomes become candidates.

        Novelty is measured against the archive before this generation's behaviors are added.
        """
        count = len(population.genomes)
        candidates = pick_candidates(population.genomes, population.fitness, self.validation_candidates, state.elite)
        drawn = draw_uniforms(count, state.seed, state.generation, Purpose.ARCHIVE) < self.archive_probability
        genomes, behaviors, score = self._scored(state, population)
        archive = state.archive.append(behaviors[-count:][drawn & ~np.isnan(score[-count:])], self.archive_limit)
        best = ranking(score)[: self.parents]
        mean, highest = mean_and_highest(score[-count:])
        return replace(
            state,
            steps=state.steps + population.steps,
            parents=tuple(genomes[i] for i in best),
            candidates=tuple(candidates),
            leader=None if np.isnan(score[best[0]]) else behaviors[best[0]].copy(),
            archive=archive,
            mean_novelty=mean,
            max_novelty=highest,
        )

    def novelties(self, state: GANSState, population: EvaluatedPopulation) -> np.ndarray:
        """Return the novelty of each member, float64 [N]; NaN where its behavior is unknown."""
        return self._scored(state, population)[2][-len(population.genomes) :]

    def _scored(self, state: GANSState, population: EvaluatedPopulation) -> tuple[list[Genome], np.ndarray, np.ndarray]:
        """Return genomes, behaviors and novelties of the members, preceded by the leader if it is known."""
        genomes = list(population.genomes)
        behaviors = validate_behaviors(population.behaviors, len(genomes), state.archive)
        if state.leader is not None:
            genomes, behaviors = [state.parents[0], *genomes], np.vstack([state.leader, behaviors])
        return genomes, behaviors, novelty(behaviors, state.archive, self.k, peers=True)

    def archive(self, state: GANSState) -> Archive:
        """Return the archive that novelty is measured against."""
        return state.archive

    def metrics(self, before: GANSState, after: GANSState) -> dict[str, float]:
        """Return sigma and the mean and highest novelty of the generation."""
        sigma = shortest(scale_at(self.sigma, before))
        return {"sigma": sigma, "novelty_mean": after.mean_novelty, "novelty_max": after.max_novelty}
