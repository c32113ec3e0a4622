"""Episodes to play, and their outcomes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import DTypeLike

from neuroevo.core.errors import SimulationError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer, summed

DIGEST_BYTES = 16  # length of an episode's digest


@dataclass(frozen=True)
class Episode:
    """One episode to play.

    Attributes:
        genome: The genome whose network plays.
        seed: Seed in [0, 2**63), which determines all random numbers of the episode.
        max_steps: Number of the network's decisions after which the episode ends; 0 for the environment's limit.
        normalizer: Normalizer of the observations; None to leave them unchanged.
    """

    genome: Genome
    seed: int
    max_steps: int = 0
    normalizer: Normalizer | None = None

    @property
    def digest(self) -> bytes:
        """Hash of all attributes except the normalizer's number, 16 bytes."""
        made = hashlib.blake2b(self.genome.digest, digest_size=DIGEST_BYTES)
        made.update(struct.pack("<qq", self.seed, self.max_steps))
        if self.normalizer is not None:
            made.update(self.normalizer.mean.tobytes() + self.normalizer.std.tobytes())
        return made.digest()


@dataclass(frozen=True)
class Outcomes:
    """Results of N episodes, in the order in which they were requested.

    Attributes:
        returns: float64 [N].
        steps: Number of decisions of each episode, int64 [N].
        failures: Reasons of failed simulations by episode index. A failed episode is aborted and keeps its return so
            far.
        observation_sums: Count, sums and sums of squares of the n-dimensional observations of all episodes with a
            normalizer, before normalization, added in the order of the episodes, float64 [1 + 2n]; None without such
            episodes. Failed episodes, whose observations are arbitrary, and episodes with non-finite sums are excluded.
        behaviors: Behaviors, [N, B] in the environment's dtype, the samples of a trajectory one after another;
            arbitrary for failed episodes; None if behaviors are not recorded.
        retries: Total number of retries after sporadic failures of the simulator; None if episodes are not retried.
    """

    returns: np.ndarray
    steps: np.ndarray
    failures: Mapping[int, str] = field(default_factory=dict)
    observation_sums: np.ndarray | None = None
    behaviors: np.ndarray | None = None
    retries: int | None = None

    @property
    def counted(self) -> np.ndarray:
        """Effective returns, float64 [N]: a failed episode counts as the worst of the other episodes.

        Otherwise failures would be rewarded in environments with negative rewards.

        Raises:
            SimulationError: All episodes failed.
        """
        returns = np.array(self.returns, np.float64)
        if self.failures:
            failed = np.zeros(len(returns), bool)
            failed[list(self.failures)] = True
            if failed.all():
                raise SimulationError(f"all {len(returns):,} episodes failed, the first: {first_of(self.failures)}")
            returns[failed] = returns[~failed].min()
        return returns


def first_of(failures: Mapping[int, str]) -> str:
    """Return the reason of the first failure; "" without failures."""
    return failures[min(failures)] if failures else ""


@dataclass(frozen=True, eq=False)
class EpisodeResults:
    """Results of E finished episodes, in any order: the native core's EpisodeResult, as arrays.

    Attributes:
        ids: int64 [E].
        returns: float64 [E].
        steps: Number of decisions of each episode, int64 [E].
        failures: Reason of each failed simulation, [E]; "" for episodes that did not fail.
        observation_sums: Count, sums and sums of squares of each episode's n-dimensional observations, before
            normalization, float64 [E, 1 + 2n]; 0 for episodes without a normalizer, [E, 0] if no episode has one.
        behaviors: Behaviors, [E, B] in the environment's dtype; arbitrary for failed episodes; [E, 0] if they are not
            recorded.
        retries: Number of retries of each episode after sporadic failures of the simulator, int64 [E]; None if
            episodes are not retried.
    """

    ids: np.ndarray
    returns: np.ndarray
    steps: np.ndarray
    failures: Sequence[str]
    observation_sums: np.ndarray
    behaviors: np.ndarray
    retries: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of results, E."""
        return len(self.ids)

    def of(self, first: int, count: int) -> EpisodeResults:
        """Select the results of consecutive ids, renumbered from 0.

        Args:
            first: The first id.
            count: Number of ids.
        """
        own = self.at(np.flatnonzero((self.ids >= first) & (self.ids < first + count)))
        return replace(own, ids=own.ids - first)

    def at(self, places: np.ndarray) -> EpisodeResults:
        """Select results by index.

        Args:
            places: Indices, int64 [K].
        """
        return EpisodeResults(
            self.ids[places],
            self.returns[places],
            self.steps[places],
            [self.failures[place] for place in places],
            self.observation_sums[places],
            self.behaviors[places],
            None if self.retries is None else self.retries[places],
        )


OnResults = Callable[[EpisodeResults], None]  # ids are indices of the submitted episodes


class Batch:
    """Submitted episodes and their results so far.

    Attributes:
        returns: Returns, float64 [N]; 0 for unfinished episodes.
        steps: Numbers of decisions, int64 [N]; 0 for unfinished episodes.
        over: Number of finished episodes.
        is_over: Whether each episode is finished, bool [N].
        failures: As in Outcomes, for the finished episodes.
        observation_sums: As in Outcomes, for the episodes before the first unfinished episode. The sums of later
            episodes are kept separately until they can be added in order.
        behaviors: [N, B] as in Outcomes, 0 for unfinished episodes; None if they are not recorded.
        retries: As in Outcomes, for the finished episodes.
    """

    def __init__(
        self,
        episodes: int,
        behavior_size: int = 0,
        behavior_dtype: DTypeLike = np.float64,
        on_results: OnResults | None = None,
    ):
        """Create a batch of unfinished episodes.

        Args:
            episodes: Number of episodes, N.
            behavior_size: Length of a behavior, B; 0 if behaviors are not recorded.
            behavior_dtype: Dtype of the behaviors.
            on_results: Called with the results that book() has recorded.
        """
        self.returns, self.steps = np.zeros(episodes), np.zeros(episodes, np.int64)
        self.failures: dict[int, str] = {}
        self.observation_sums: np.ndarray | None = None
        self.behaviors = np.zeros((episodes, behavior_size), behavior_dtype) if behavior_size else None
        self.retries: int | None = None
        self.over = 0
        self.is_over = np.zeros(episodes, bool)
        self._added = 0  # index of the first episode whose sums are not in observation_sums yet
        self._waiting: dict[int, np.ndarray] = {}  # sums of later episodes by index
        self._on_results = on_results

    def book(self, results: EpisodeResults) -> None:
        """Record the results of finished episodes.

        Args:
            results: The results; ids are indices in the batch, all different.
        """
        if not len(results):
            return
        self.returns[results.ids], self.steps[results.ids] = results.returns, results.steps
        self.over += len(results)
        self.is_over[results.ids] = True
        for index, failure in zip(results.ids.tolist(), results.failures, strict=True):
            if failure:
                self.failures[index] = failure
        if results.retries is not None:
            self.retries = (self.retries or 0) + int(results.retries.sum())
        if results.observation_sums.shape[1]:
            for place in np.flatnonzero(results.observation_sums[:, 0]).tolist():
                sums = results.observation_sums[place]
                # Copy the row, since a view would keep the whole array alive.
                self._waiting[int(results.ids[place])] = np.zeros_like(sums) if results.failures[place] else sums.copy()
        if self.behaviors is None and results.behaviors.shape[1]:
            self.behaviors = np.zeros((len(self.steps), results.behaviors.shape[1]), results.behaviors.dtype)
        if self.behaviors is not None:
            self.behaviors[results.ids] = results.behaviors
        while self._added < len(self.steps) and self.is_over[self._added]:
            if self._added in self._waiting:
                self.observation_sums = summed(self.observation_sums, self._waiting.pop(self._added))
            self._added += 1
        if self._on_results is not None:
            self._on_results(results)

    @property
    def left(self) -> int:
        """Number of unfinished episodes."""
        return len(self.steps) - self.over

    @property
    def outcomes(self) -> Outcomes:
        """The outcomes of all episodes; final once all episodes are finished."""
        return Outcomes(self.returns, self.steps, self.failures, self.observation_sums, self.behaviors, self.retries)
