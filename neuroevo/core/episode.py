"""Episodes, which an algorithm requests, and their outcomes."""

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

DIGEST_BYTES = 16  # of an episode


@dataclass(frozen=True)
class Episode:
    """One episode to play.

    Attributes:
        genome: The genome whose network plays.
        seed: In [0, 2**63); everything random in the episode follows from it.
        max_steps: Number of the network's decisions after which the episode ends; 0 means the environment's own limit.
        normalizer: Normalizer of the observations; None: they are not normalized.
    """

    genome: Genome
    seed: int
    max_steps: int = 0
    normalizer: Normalizer | None = None

    @property
    def digest(self) -> bytes:
        """Hash of all attributes, 16 bytes."""
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
        steps: int64 [N], decisions.
        failures: Why an episode was aborted, by its index, where its simulation failed; its return is the one until
            then.
        observation_sums: float64 [1 + 2n] of the episodes with a normalizer together: how many observations of n
            numbers they saw, their sums and their sums of squares, before they were normalized, added up in the order
            of the episodes; None if none had one. Those that failed are left out, as the numbers of a simulation that
            fails may be anything; likewise those whose sums are not finite.
        behaviors: [N, B] in the environment's own dtype, of a trajectory one sample after another; anything where an
            episode failed; None if they are not recorded.
        retries: How often episodes were played again in total, because their simulator had failed by chance; None where
            episodes are not played again.
    """

    returns: np.ndarray
    steps: np.ndarray
    failures: Mapping[int, str] = field(default_factory=dict)
    observation_sums: np.ndarray | None = None
    behaviors: np.ndarray | None = None
    retries: int | None = None

    @property
    def counted(self) -> np.ndarray:
        """Effective returns, float64 [N]: an episode that failed counts as the worst of those that did not.

        Otherwise failing would be rewarded where rewards are negative.

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
    """Return why the first of the failed episodes failed; "" if none failed."""
    return failures[min(failures)] if failures else ""


@dataclass(frozen=True, eq=False)
class EpisodeResults:
    """Results of E finished episodes, in any order: the native core's EpisodeResult, as arrays.

    Attributes:
        ids: int64 [E].
        returns: float64 [E].
        steps: int64 [E], decisions.
        failures: [E], why an episode was aborted; "" where it was not.
        observation_sums: float64 [E, 1 + 2n], how many observations of n numbers the network saw, their sums and their
            sums of squares, before they were normalized; 0 where an episode had no normalizer, [E, 0] if none had one.
        behaviors: [E, B] in the environment's own dtype; anything where an episode failed; [E, 0] if they are not
            recorded.
        retries: int64 [E], how often an episode was played again, because its simulator had failed by chance; None
            where episodes are not played again.
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


OnResults = Callable[[EpisodeResults], None]  # ids are indices in what was submitted


class Batch:
    """Episodes that an evaluator has accepted, and their results so far.

    Attributes:
        returns: float64 [N], 0 where an episode is not over.
        steps: int64 [N], decisions, likewise.
        over: Number of episodes that are over.
        is_over: bool [N], whether each episode is over.
        failures: As Outcomes has them, of the episodes that are over.
        observation_sums: As Outcomes has them, of the episodes before the first that is not over; those of later ones
            are kept until it is their turn.
        behaviors: [N, B] as Outcomes has them, 0 where an episode is not over; None if they are not recorded.
        retries: As Outcomes has them, of the episodes that are over.
    """

    def __init__(
        self,
        episodes: int,
        behavior_size: int = 0,
        behavior_dtype: DTypeLike = np.float64,
        on_results: OnResults | None = None,
    ):
        """Create a batch in which no episode is over.

        Args:
            episodes: N.
            behavior_size: B; 0: behaviors are not recorded.
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
        self._added = 0  # the first episode whose sums are not in observation_sums
        self._waiting: dict[int, np.ndarray] = {}  # sums of episodes after that, by their index
        self._on_results = on_results

    def book(self, results: EpisodeResults) -> None:
        """Record the results of episodes that are over.

        Args:
            results: The results; ids are indices in the batch, each once.
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
                # A copy: it is a row of many, which are not to live as long.
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
        """Number of episodes that are not over."""
        return len(self.steps) - self.over

    @property
    def outcomes(self) -> Outcomes:
        """The results, once all episodes are over."""
        return Outcomes(self.returns, self.steps, self.failures, self.observation_sums, self.behaviors, self.retries)
