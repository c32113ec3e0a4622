"""Elite evaluation: the test episodes of each generation's elite, played in parallel with later generations.

The train loop submits a finished generation's test episodes and continues with the next generation. Their priority is
lower than that of the next generation's population and validation and higher than that of the generation after it, so
that test episodes fill otherwise idle slots. Their results do not depend on when they are played. A generation's record
is complete when its own evaluation and those of all earlier generations have finished.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuroevo.config.schema import Training
from neuroevo.core.arrays import Checked, check_array
from neuroevo.core.episode import Batch, Episode, EpisodeResults, Outcomes, first_of
from neuroevo.core.evaluator import Evaluator, Progress
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.statistics import summarize
from neuroevo.training.record import EvaluationRecord, GenerationRecord, Record, with_retries


def episode_priority(generation: int) -> int:
    """Return the priority of a generation's population and validation episodes.

    Args:
        generation: The generation's number.

    Returns:
        The priority number; the evaluator plays episodes of lower numbers first.
    """
    return 2 * generation


def elite_evaluation_priority(generation: int) -> int:
    """Return the priority of the test episodes of a generation's elite.

    Args:
        generation: The generation's number.

    Returns:
        A number between the priorities of the next generation's other episodes and of the generation after it.
    """
    return episode_priority(generation + 1) + 1


@dataclass(frozen=True)
class PendingEvaluation(Checked):
    """Finished generation with an unfinished evaluation of its elite, stored in checkpoints. E: test episodes.

    Attributes:
        record: The generation's record, without the evaluation.
        returns: Return of each episode, float64 [E]; 0 for unfinished episodes.
        steps: Length of each episode in steps, int64 [E]; 0 for unfinished episodes.
        failures: Reasons of failures of finished episodes, by the episode's index as a string.
    """

    record: GenerationRecord
    returns: np.ndarray
    steps: np.ndarray
    failures: Mapping[str, str] = field(default_factory=dict)

    def check_state(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: The shapes differ, a step count is below 0, or a failure belongs to no episode.
        """
        check_array("returns", self.returns, self.returns.shape[:1], np.float64)  # [0] without test episodes
        check_array("steps", self.steps, self.returns.shape, np.int64)
        if (self.steps < 0).any():
            raise ValueError("steps has numbers below 0")
        for index in self.failures.keys() - {str(index) for index in range(len(self.steps))}:
            raise ValueError(f"failures has {index[:80]!r}, expected the number of one of {len(self.steps)} episodes")


class EliteEvaluations:
    """Queue of unfinished elite evaluations, oldest first."""

    def __init__(
        self,
        evaluator: Evaluator,
        training: Training,
        pending: Iterable[PendingEvaluation] = (),
    ):
        """Continue the pending evaluations of a checkpoint.

        Args:
            evaluator: Evaluator that plays the test episodes.
            training: Settings: the number of test episodes per elite, and the run's seed.
            pending: Evaluations to continue, oldest first; only their unfinished episodes are played.
        """
        self._evaluator, self._training = evaluator, training
        self._playing: deque[_Playing] = deque()
        for each in pending:
            self._continue(each)

    def submit(self, record: GenerationRecord) -> None:
        """Start the evaluation of a finished generation's elite, without waiting for it.

        Args:
            record: The generation's record.
        """
        count = self._training.test_episodes
        self._continue(PendingEvaluation(record, np.zeros(count), np.zeros(count, np.int64)))

    def take_complete(self) -> list[Record]:
        """Remove finished evaluations from the front of the queue.

        Returns:
            Their complete records, oldest first. A finished evaluation stays in the queue behind an unfinished one.
        """
        complete = []
        while self._playing and not self._playing[0].batch.left:
            complete.append(self._playing.popleft().record())
        return complete

    def wait(self, seconds: float, on_progress: Progress | None = None) -> None:
        """Wait for the oldest evaluation.

        Args:
            seconds: Timeout in seconds.
            on_progress: Function that is called with the number of finished episodes and their steps.
        """
        begun, oldest = time.perf_counter(), self._playing[0]
        known = len(oldest.batch.steps) - len(oldest.missing.steps)
        if oldest.steps_before is None:
            oldest.steps_before = int(oldest.batch.steps.sum()) - oldest.steps_known
        before = oldest.steps_before

        def report(finished: int, steps: int) -> None:
            if on_progress is not None:
                on_progress(known + finished, steps - before)

        self._evaluator.wait(oldest.missing, report, seconds)
        oldest.seconds += time.perf_counter() - begun

    @property
    def pending(self) -> tuple[PendingEvaluation, ...]:
        """The unfinished evaluations, oldest first, for a checkpoint."""
        return tuple(playing.pending() for playing in self._playing)

    @property
    def episodes(self) -> int:
        """Number of episodes of the oldest evaluation."""
        return len(self._playing[0].batch.steps)

    def _continue(self, pending: PendingEvaluation) -> None:
        """Submit the unfinished episodes of an evaluation."""
        record, count = pending.record, len(pending.steps)
        seeds = draw_seeds(count, self._training.seed, record.generation, Purpose.TEST_EPISODES)
        batch, missing = Batch(count), np.flatnonzero(pending.steps == 0)
        batch.book(_known(pending))

        def book(results: EpisodeResults) -> None:
            nothing = np.zeros((len(results), 0))
            own = replace(results, ids=missing[results.ids], observation_sums=nothing, behaviors=nothing)
            batch.book(own)

        episodes = [Episode(record.elite, seeds[i], 0, record.normalizer) for i in missing]
        played = self._evaluator.submit(episodes, elite_evaluation_priority(record.generation), book)
        self._playing.append(_Playing(record, batch, played, int(batch.steps.sum())))


def _known(pending: PendingEvaluation) -> EpisodeResults:
    """Return the results of an evaluation's finished episodes."""
    over = np.flatnonzero(pending.steps)
    failures = [pending.failures.get(str(index), "") for index in over]
    nothing = np.zeros((len(over), 0))
    return EpisodeResults(over, pending.returns[over], pending.steps[over], failures, nothing, nothing)


@dataclass
class _Playing:
    """Evaluation whose missing episodes have been submitted to an evaluator.

    Attributes:
        generation: The generation's record, without the evaluation.
        batch: All episodes of the evaluation.
        missing: The evaluator's batch of the episodes that were unfinished when the evaluation was submitted.
        steps_known: Steps of the episodes that were already finished then.
        seconds: Wall time spent waiting for this evaluation only.
        steps_before: Steps played before the first call of wait(); None before that call.
    """

    generation: GenerationRecord
    batch: Batch
    missing: Batch
    steps_known: int
    seconds: float = 0.0
    steps_before: int | None = None

    def pending(self) -> PendingEvaluation:
        """Return the evaluation in its current state."""
        batch = self.batch
        failures = {str(index): batch.failures[index] for index in sorted(batch.failures)}
        metrics = with_retries(self.generation.extra_metrics, batch.retries)
        record = replace(self.generation, extra_metrics=metrics)
        return PendingEvaluation(record, batch.returns.copy(), batch.steps.copy(), failures)

    def record(self) -> Record:
        """Return the complete record, once all episodes have finished."""
        now = self.pending()
        failures = {int(index): failure for index, failure in now.failures.items()}
        outcomes = Outcomes(now.returns, now.steps, failures)
        summary = summarize(outcomes.counted if len(failures) < len(now.steps) else np.zeros(0))  # all failed: no mean
        test = EvaluationRecord(
            episodes=len(now.steps),
            steps=int(now.steps.sum()),
            seconds=self.seconds,
            failures=len(failures),
            first_failure=first_of(failures),
            mean=summary.mean,
            standard_error=summary.standard_error,
        )
        return now.record.evaluated(test)
