"""Who plays episodes: the protocol that training knows an evaluator by, and what algorithms need of its networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from neuroevo.core.episode import Batch, Episode, Outcomes
from neuroevo.core.genome import Genome


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
    observation_size: int  # numbers of an observation
    device: str  # where networks are evaluated: "cpu" or "gpu"
    weights: Weights  # of its networks

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


class Weights(Protocol):
    """What algorithms that move vectors need of the networks. dimensions: D of each network."""

    dimensions: Sequence[int]

    def theta(self, genome: Genome) -> np.ndarray:
        """The genome's weights, float32 [D]."""

    def noise_sum(self, seeds: Sequence[int], weights: Sequence[float], dimension: int) -> np.ndarray:
        """The sum of weights[i] * noise(seeds[i]), float32 [dimension]; the noise that mutations of these seeds add."""
