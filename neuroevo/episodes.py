"""What an algorithm asks for and gets back: episodes, their outcomes, and the protocol of whoever runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


class Evaluator(Protocol):
    """Plays episodes. The outcome of an episode depends on nothing but the episode."""

    frame_skip: int  # emulator frames per step

    def evaluate(self, episodes: Sequence[Episode], on_progress: Callable[[int, int], None] | None = None) -> Outcomes:
        """Plays all episodes; calls on_progress(episodes finished, steps taken by them) a few times a second."""

    def close(self) -> None:
        """Stops the workers and frees the memory."""
