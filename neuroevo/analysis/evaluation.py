"""A genome replayed over many episodes, and what its returns come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.episode import Episode, Outcomes, first_of
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.randomness import Purpose, draw_seeds, held_out_seeds
from neuroevo.runs.metrics_files import Elite
from neuroevo.runs.reader import RunReader
from neuroevo.runs.training_run import make_evaluator
from neuroevo.system.statistics import Summary, summarize


@dataclass(frozen=True)
class Evaluation:
    """N episodes of one genome, one for each of the seeds; max_episode_steps in steps, 0 for none; seconds of wall
    time.

    Episodes that failed count as the worst of the others.
    """

    seeds: Sequence[int]
    outcomes: Outcomes
    max_episode_steps: int
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
            "max_episode_steps": self.max_episode_steps,
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
        max_episode_steps = (
            f"cut off after {self.max_episode_steps:,} steps" if self.max_episode_steps else "without cut-off"
        )
        failures = self.outcomes.failures
        failed = (
            [f"failed: {len(failures)}, which count as the worst; the first: {first_of(failures)}"] if failures else []
        )
        return [
            f"episodes: {row['episodes']}, {max_episode_steps}, different outcomes: {self.different}",
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
    max_episode_steps: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Plays an episode of each seed (at least one), cut off after `max_episode_steps` steps (0: the environment's own
    limit).

    SimulationError, from the Evaluation: all of them failed.
    """
    begun = time.perf_counter()
    episodes = [Episode(elite.genome, seed, max_episode_steps, elite.normalizer) for seed in seeds]
    outcomes = evaluator.evaluate(episodes, on_progress)
    return Evaluation(list(seeds), outcomes, max_episode_steps, evaluator.frame_skip, time.perf_counter() - begun)


def evaluate_run(
    run: RunReader | Path | str,
    generation: int | None = None,
    episodes: int = 30,
    seed: int | None = None,
    max_episode_steps: int = 0,
) -> Evaluation:
    """The elite of a run's generation, by default the last finished one, as `neuroevo evaluate` plays it.

    UserError: there is no such run or generation.
    """
    reader = run if isinstance(run, RunReader) else RunReader(run)
    _, elite = reader.elite(generation)
    with make_evaluator(reader.config, reader.reference_batch()) as evaluator:
        return evaluate(evaluator, elite, episode_seeds(episodes, seed), max_episode_steps)
