"""Replay a genome over many episodes and summarize its returns."""

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
from neuroevo.core.statistics import Summary, summarize, without_overflow
from neuroevo.runs.reader import Elite, RunReader
from neuroevo.sessions import evaluators


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The results of N episodes of one genome.

    An episode whose simulation failed counts as the worst of the episodes that did not fail.

    Attributes:
        seeds: The seed of each episode, [N].
        outcomes: Returns, steps and failures of the episodes, in the order of the seeds.
        max_episode_steps: Cut-off in steps (decisions of the network); 0 means the environment's own limit.
        frame_skip: Emulator frames per step.
        seconds: Wall time of all episodes together.
    """

    seeds: Sequence[int]
    outcomes: Outcomes
    max_episode_steps: int
    frame_skip: int
    seconds: float

    @property
    def summary(self) -> Summary:
        """Mean, standard error and 95% confidence interval of the returns.

        Raises:
            SimulationError: All episodes failed.
        """
        return summarize(self.outcomes.counted)

    @property
    def steps(self) -> int:
        """Total number of steps of all episodes."""
        return int(self.outcomes.steps.sum())

    @property
    def different(self) -> int:
        """Number of different returns: far fewer than N if the network has few different episodes of the game."""
        return len(set(self.outcomes.returns.tolist()))

    def __repr__(self) -> str:
        if len(self.outcomes.failures) == len(self.seeds):
            return f"Evaluation({len(self.seeds)} episodes, all failed)"
        summary = self.summary
        error = "" if summary.standard_error is None else f" +- {summary.standard_error:,.1f}"
        return f"Evaluation({summary.n} episodes, mean return {summary.mean:,.1f}{error}, {self.steps:,} steps)"

    def row(self) -> dict[str, Any]:
        """Return all results as plain values, including the return, steps and seed of every episode.

        Raises:
            SimulationError: All episodes failed.
        """
        summary, returns = self.summary, self.outcomes.counted
        return {
            "episodes": summary.n,
            "different_returns": self.different,
            "max_episode_steps": self.max_episode_steps,
            "mean": summary.mean,
            "standard_error": summary.standard_error,
            "confidence": 0.95,
            "confidence_low": summary.low,
            "confidence_high": summary.high,
            "min": float(np.min(returns)),
            "median": float(without_overflow(np.median, returns)),
            "max": float(np.max(returns)),
            "failures": {str(index): failure for index, failure in sorted(self.outcomes.failures.items())},
            "steps_total": self.steps,
            "frames_total": self.steps * self.frame_skip,
            "seconds": round(self.seconds, 3),
            "returns": returns.tolist(),
            "steps": self.outcomes.steps.tolist(),
            "seeds": list(self.seeds),
        }

    def lines(self) -> list[str]:
        """Return a human-readable summary as lines of text, without the individual episodes.

        Raises:
            SimulationError: All episodes failed.
        """
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
            [f"failed: {len(failures)}, counted as the worst return; first failure: {first_of(failures)}"]
            if failures
            else []
        )
        return [
            f"episodes: {row['episodes']}, {max_episode_steps}, different returns: {self.different}",
            *failed,
            mean,
            f"min, median, max: {row['min']:,.1f}, {row['median']:,.1f}, {row['max']:,.1f}",
            f"steps: {row['steps_total']:,}",
            f"frames: {row['frames_total']:,}",
        ]


def episode_seeds(episodes: int, seed: int | None = None) -> list[int]:
    """Return the seeds of an evaluation's episodes.

    Args:
        episodes: Number of seeds.
        seed: Seed to draw them from; None for the held-out seeds, which no training run uses and which are the same
            for every run, so that networks can be compared with each other.

    Returns:
        Seeds in [0, 2**63), [episodes]. A larger number of episodes extends the same sequence.
    """
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
    """Play one episode of an elite per seed.

    If all episodes fail, this function still returns; reading the summary of the result then raises SimulationError.

    Args:
        evaluator: The evaluator that plays the episodes; the caller closes it.
        elite: The genome to play, and the normalizer of its observations, if any.
        seeds: The seed of each episode, at least one.
        max_episode_steps: Steps after which an episode is cut off; 0 means the environment's own limit.
        on_progress: Called a few times per second with the number of finished episodes and their total steps.

    Returns:
        The results, in the order of the seeds.
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
    *,
    trust: bool = False,
) -> Evaluation:
    """Evaluate the elite of one generation of a run, as `neuroevo evaluate` does.

    Args:
        run: A run's folder, or its reader, such as the result of `neuroevo.train`.
        generation: The elite's generation; None for the last finished generation.
        episodes: Number of episodes, at least one.
        seed: Seed that the episodes' seeds are drawn from; None for the held-out seeds, which no training run uses.
        max_episode_steps: Steps after which an episode is cut off; 0 means the environment's own limit.
        trust: Allow external code and models referenced by a run that you did not create; see docs/security.md.

    Returns:
        The returns and steps of the episodes, and their summary.

    Raises:
        NotTrustedError: The run references external code or models and is not trusted.
        UserError: The run or generation does not exist.

    Example:
        >>> import neuroevo
        >>> evaluation = neuroevo.evaluate("runs/frostbite", episodes=100)
        >>> print(evaluation.summary.mean, evaluation.summary.standard_error)
    """
    reader = run if isinstance(run, RunReader) else RunReader(run, trust=trust)
    _, elite = reader.elite(generation)
    with evaluators.make_evaluator(reader.config.on_this_machine(), reader.reference_batch()) as evaluator:
        return evaluate(evaluator, elite, episode_seeds(episodes, seed), max_episode_steps)
