"""An evaluator without TensorFlow, environments or native code: fitness is a noisy distance, theta is NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from neuroevo.episodes import Episode, Outcomes
from neuroevo.genome import Genome

TARGET = np.linspace(-2.0, 2.0, 8)  # float64 [8]: where the best theta is


@cache
def noise(seed: int) -> np.ndarray:
    """float64 [8], standard normal."""
    return np.random.default_rng(seed).standard_normal(TARGET.size)


def theta(genome: Genome) -> np.ndarray:
    """float64 [8], as genome.py defines it, with 0.1 * noise as initial weights."""
    return 0.1 * noise(genome.base) + sum(scale * noise(seed) for seed, scale in genome.chain)


class ToyEvaluator:
    """Return: minus the distance from theta to TARGET, plus a little noise of the episode's seed, which also says how
    many steps in [10, 30) it would take without the cut-off."""

    frame_skip = 4
    dimension = TARGET.size
    num_actions = 3

    def __init__(self, interrupt_at: int | None = None, nan_at: int | None = None):
        self.calls: list[list[Episode]] = []
        self.closed = False
        self._interrupt_at, self._nan_at = interrupt_at, nan_at

    def evaluate(self, episodes: Sequence[Episode], on_progress: Callable[[int, int], None] | None = None) -> Outcomes:
        if len(self.calls) == self._interrupt_at:
            raise KeyboardInterrupt
        returns = np.array([self.play(episode) for episode in episodes])
        if len(self.calls) == self._nan_at:
            returns[2] = np.nan
        steps = np.array([min(10 + e.seed % 20, e.max_steps or 100) for e in episodes])
        self.calls.append(list(episodes))
        if on_progress is not None:
            on_progress(len(episodes), int(steps.sum()))
        return Outcomes(returns, steps)

    def play(self, episode: Episode) -> float:
        distance = float(np.linalg.norm(theta(episode.genome) - TARGET))
        return -distance + 0.01 * float(np.random.default_rng(episode.seed).standard_normal())

    def close(self) -> None:
        self.closed = True
