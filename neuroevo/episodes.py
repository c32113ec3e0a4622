"""What an algorithm asks for and gets back: episodes, their outcomes, and the protocol of whoever runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from neuroevo.genome import Genome


@dataclass(frozen=True)
class Episode:
    """One episode to play.

    genome: whose network plays.
    seed: everything random in the episode follows from it, in [0, 2**63).
    max_steps: cut-off in decisions of the network; 0 means the environment's own limit.
    """

    genome: Genome
    seed: int
    max_steps: int = 0


@dataclass(frozen=True)
class Outcomes:
    """Results of N episodes, in the order they were asked for: returns float64 [N], steps int64 [N] (decisions)."""

    returns: np.ndarray
    steps: np.ndarray


class Batch:
    """Episodes that an evaluator has taken, and what is known of them so far.

    returns: float64 [N]. steps: int64 [N], decisions. Both are 0 where an episode is not over; over: how many are.
    """

    def __init__(self, episodes: int):
        self.returns, self.steps = np.zeros(episodes), np.zeros(episodes, np.int64)
        self.over = 0

    def book(self, index: np.ndarray, returns: np.ndarray, steps: np.ndarray) -> None:
        """Notes that the episodes of these indices are over, with these outcomes."""
        self.returns[index], self.steps[index] = returns, steps
        self.over += len(index)

    @property
    def left(self) -> int:
        """How many episodes are not over."""
        return len(self.steps) - self.over

    @property
    def outcomes(self) -> Outcomes:
        """The results, once all episodes are over."""
        return Outcomes(self.returns, self.steps)


@dataclass(frozen=True)
class Work:
    """What an evaluator has done since it was made.

    steps: of all episodes, unfinished ones included. busy_seconds: of its `threads` worker threads together.
    """

    steps: int
    busy_seconds: float
    threads: int


Progress = Callable[[int, int], None]  # (episodes finished, steps taken by them), called a few times a second


class Evaluator(Protocol):
    """Plays episodes. The outcome of an episode depends on nothing but the episode."""

    frame_skip: int  # emulator frames per step
    device: str  # where networks are evaluated: "cpu" or "gpu"

    def submit(self, episodes: Sequence[Episode], priority: int = 0) -> Batch:
        """Takes the episodes and returns at once. Those of a lower priority number are played first.

        What has a high number fills the slots that would be idle while the last episodes of something urgent go on.
        """

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = inf) -> Outcomes:
        """The outcomes of a batch, in order of its episodes: when all are over, or what there is after `seconds`."""

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """submit() and wait()."""

    def work(self) -> Work:
        """What has been done so far."""

    def close(self) -> None:
        """Stops the workers and frees the memory."""
