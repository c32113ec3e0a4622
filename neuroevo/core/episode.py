"""What an algorithm asks for and gets back: episodes and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuroevo.core.errors import SimulationError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer, summed


@dataclass(frozen=True)
class Episode:
    """One episode to play.

    genome: whose network plays.
    seed: everything random in the episode follows from it, in [0, 2**63).
    max_steps: cut-off in decisions of the network; 0 means the environment's own limit.
    normalizer: what the network sees observations through; None: as they are.
    """

    genome: Genome
    seed: int
    max_steps: int = 0
    normalizer: Normalizer | None = None


@dataclass(frozen=True)
class Outcomes:
    """Results of N episodes, in the order they were asked for: returns float64 [N], steps int64 [N] (decisions).

    failures: why an episode was broken off, by its index, where its simulation failed; its return is what it had so
    far. moments: float64 [1 + 2n] of the episodes with a normalizer together: how many observations of n numbers they
    saw, their sums and their sums of squares, before they were normalized, added up in the order of the episodes;
    None if none had one. Those that failed are left out, as the numbers of a simulation that fails may be anything;
    likewise those whose sums are not finite.
    behaviors: [N, B] in the environment's own dtype, of a trajectory one sample after another; anything where an
    episode failed; None if they are not recorded.
    """

    returns: np.ndarray
    steps: np.ndarray
    failures: Mapping[int, str] = field(default_factory=dict)
    moments: np.ndarray | None = None
    behaviors: np.ndarray | None = None

    @property
    def counted(self) -> np.ndarray:
        """What the returns count as, float64 [N]: an episode that failed counts as the worst of those that did not.

        Otherwise failing would pay where rewards are negative. SimulationError: all of them failed.
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
    """Why the first episode that failed did; "" if none failed."""
    return failures[min(failures)] if failures else ""


class Batch:
    """Episodes that an evaluator has taken, and what is known of them so far.

    returns: float64 [N]. steps: int64 [N], decisions. Both are 0 where an episode is not over; over: how many are.
    failures: as Outcomes has them, of the episodes that are over at least. moments: as Outcomes has them, of the
    episodes before the first that is not over; those of later ones are kept until it is their turn. behaviors: [N, B]
    as Outcomes has them, 0 where an episode is not over; None until one is known.
    """

    def __init__(self, episodes: int):
        self.returns, self.steps = np.zeros(episodes), np.zeros(episodes, np.int64)
        self.failures: dict[int, str] = {}
        self.moments: np.ndarray | None = None
        self.behaviors: np.ndarray | None = None
        self.over = 0
        self._is_over = np.zeros(episodes, bool)
        self._added = 0  # the first episode whose moments are not in the sum
        self._waiting: dict[int, np.ndarray] = {}  # moments of episodes after that, by their index

    def book(self, index: np.ndarray, returns: np.ndarray, steps: np.ndarray) -> None:
        """Notes that the episodes of these indices are over, with these outcomes; after their book_end(), if any."""
        self.returns[index], self.steps[index] = returns, steps
        self.over += len(index)
        self._is_over[index] = True
        while self._added < len(self.steps) and self._is_over[self._added]:
            if self._added in self._waiting:
                self.moments = summed(self.moments, self._waiting.pop(self._added))
            self._added += 1

    def book_end(self, index: int, failure: str, moments: np.ndarray, behavior: np.ndarray | None = None) -> None:
        """Notes how an episode ended: why it failed, or ""; its moments, float64 [1 + 2n], or [0]; and its behavior,
        [B], or None or [0].
        """
        if failure:
            self.failures[index] = failure
        if len(moments):
            self._waiting[index] = np.zeros_like(moments) if failure else moments.copy()  # it may be a row of many
        if behavior is not None and len(behavior):
            if self.behaviors is None:
                self.behaviors = np.zeros((len(self.steps), len(behavior)), behavior.dtype)
            self.behaviors[index] = behavior

    @property
    def left(self) -> int:
        """How many episodes are not over."""
        return len(self.steps) - self.over

    @property
    def outcomes(self) -> Outcomes:
        """The results, once all episodes are over."""
        return Outcomes(self.returns, self.steps, self.failures, self.moments, self.behaviors)
