"""A genome replayed over many episodes, and what its returns come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.episodes import Episode, Evaluator, Outcomes, first_of
from neuroevo.metrics_files import Elite
from neuroevo.randomness import Purpose, draw_seeds, held_out_seeds
from neuroevo.statistics import Summary, summarize


@dataclass(frozen=True)
class Evaluation:
    """N episodes of one genome, one for each of the seeds; cutoff in steps, 0 for none; seconds of wall time.

    Episodes that failed count as the worst of the others.
    """

    seeds: Sequence[int]
    outcomes: Outcomes
    cutoff: int
    frame_skip: int
    seconds: float

    @property
    def summary(self) -> Summary:
        """Mean, standard error and 95% confidence interval of the returns."""
        return summarize(self.outcomes.counted)

    @property
    def steps(self) -> int:
        """Of all episodes."""
        return int(self.outcomes.steps.sum())

    @property
    def different(self) -> int:
        """How many episodes differ in return or steps: fewer than N where a game has few different starts."""
        return len(set(zip(self.outcomes.returns.tolist(), self.outcomes.steps.tolist(), strict=True)))

    def row(self) -> dict[str, Any]:
        """Everything as plain values, the returns, steps and seeds of every episode included."""
        summary, returns = self.summary, self.outcomes.counted
        frames = self.steps * self.frame_skip
        return {
            "episodes": summary.n,
            "different_outcomes": self.different,
            "cutoff": self.cutoff,
            "mean": summary.mean,
            "standard_error": summary.standard_error,
            "confidence": 0.95,
            "confidence_low": summary.low,
            "confidence_high": summary.high,
            "min": float(np.min(returns)),
            "median": float(np.median(returns)),
            "max": float(np.max(returns)),
            "failures": {str(index): failure for index, failure in sorted(self.outcomes.failures.items())},
            "steps_total": self.steps,
            "frames_total": frames,
            "seconds": round(self.seconds, 3),
            "frames_per_s": round(frames / max(self.seconds, 1e-9), 1),
            "returns": returns.tolist(),
            "steps": self.outcomes.steps.tolist(),
            "seeds": list(self.seeds),
        }

    def lines(self) -> list[str]:
        """The same for people, without the single episodes."""
        row = self.row()
        mean = f"mean: {row['mean']:,.1f}"
        if row["standard_error"] is not None:
            mean += f", standard error {row['standard_error']:,.1f}"
            mean += f", 95% confidence interval [{row['confidence_low']:,.1f}, {row['confidence_high']:,.1f}]"
        cutoff = f"cut off after {self.cutoff:,} steps" if self.cutoff else "without cut-off"
        failures = self.outcomes.failures
        failed = [f"failed: {len(failures)}, which count as the worst; the first: {first_of(failures)}"] if failures else []
        return [
            f"episodes: {row['episodes']}, {cutoff}, different outcomes: {self.different}",
            *failed,
            mean,
            f"min, median, max: {row['min']:,.1f}, {row['median']:,.1f}, {row['max']:,.1f}",
            f"steps: {row['steps_total']:,}",
            f"frames: {row['frames_total']:,}, {row['frames_per_s']:,.0f}/s",
        ]


def episode_seeds(episodes: int, seed: int | None = None) -> list[int]:
    """The seeds of so many episodes: the held-out ones, or others drawn from `seed`."""
    if seed is None:
        return held_out_seeds(episodes)
    return draw_seeds(episodes, seed, 0, Purpose.HELD_OUT_EPISODES)


def evaluate(
    evaluator: Evaluator,
    elite: Elite,
    seeds: Sequence[int],
    cutoff: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Plays an episode of each seed (at least one), cut off after `cutoff` steps (0: the environment's own limit).

    SimulationError, from the Evaluation: all of them failed.
    """
    begun = time.perf_counter()
    episodes = [Episode(elite.genome, seed, cutoff, elite.normalizer) for seed in seeds]
    outcomes = evaluator.evaluate(episodes, on_progress)
    return Evaluation(list(seeds), outcomes, cutoff, evaluator.frame_skip, time.perf_counter() - begun)
