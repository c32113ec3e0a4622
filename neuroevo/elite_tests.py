"""Test episodes of the elites: they are played in slots that the generations after leave idle, and attached later.

A generation's test episodes come after the next generation's population and validation and before the population of the
one after that, so that at most the last of them go on for longer. What they give does not depend on when they are
played. Records wait for their tests, in order.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuroevo.config import Training
from neuroevo.episodes import Batch, Episode, Evaluator, Outcomes, Progress, first_of
from neuroevo.metrics import Record
from neuroevo.randomness import Purpose, draw_seeds
from neuroevo.statistics import summarize


def episode_priority(generation: int) -> int:
    """Of a generation's population and validation."""
    return 2 * generation


def elite_evaluation_priority(generation: int) -> int:
    """Of the test episodes of a generation's elite."""
    return episode_priority(generation + 1) + 1


@dataclass(frozen=True)
class Untested:
    """A finished generation whose test episodes are not over, as a checkpoint holds it.

    record: without what the tests give. returns: float64 [test episodes], steps: int64 [test episodes], 0 for those
    that are not over. failures: of those that failed, why, by the index as text.
    """

    record: Record
    returns: np.ndarray
    steps: np.ndarray
    failures: Mapping[str, str] = field(default_factory=dict)


class EliteEvaluations:
    """The tests that are going on, oldest first. untested: those of a checkpoint, which are taken up again."""

    def __init__(self, evaluator: Evaluator, training: Training, untested: Iterable[Untested] = ()):
        self._evaluator, self._training = evaluator, training
        self._playing: deque[_Playing] = deque()
        for each in untested:
            self._submit(each)

    def add(self, record: Record) -> None:
        """Begins to play the tests of a finished generation's elite."""
        count = self._training.test_episodes
        self._submit(Untested(record, np.zeros(count), np.zeros(count, np.int64)))

    def complete(self) -> list[Record]:
        """The records whose tests are over, and those of the generations before too."""
        done = []
        while self._playing and not self._playing[0].batch.left:
            done.append(self._playing.popleft().complete())
        return done

    def wait(self, seconds: float, on_progress: Progress | None = None) -> None:
        """Waits for the oldest tests, at most so long; on_progress hears of those episodes that this process plays."""
        begun, oldest = time.perf_counter(), self._playing[0]
        self._evaluator.wait(oldest.batch, on_progress, seconds)
        oldest.seconds += time.perf_counter() - begun

    @property
    def untested(self) -> tuple[Untested, ...]:
        """What is not over, for a checkpoint."""
        return tuple(playing.untested() for playing in self._playing)

    @property
    def episodes(self) -> int:
        """How many episodes of the oldest tests this process plays."""
        return len(self._playing[0].batch.steps)

    def _submit(self, before: Untested) -> None:
        record, missing = before.record, np.flatnonzero(before.steps == 0)
        seeds = draw_seeds(len(before.steps), self._training.seed, record.generation, Purpose.TEST_EPISODES)
        episodes = [Episode(record.elite, seeds[i], 0, record.normalizer) for i in missing]
        batch = self._evaluator.submit(episodes, elite_evaluation_priority(record.generation))
        self._playing.append(_Playing(before, missing, batch))


@dataclass
class _Playing:
    """before: what was known at the start. missing: indices of the episodes that the batch plays. seconds: in which
    nothing else was waited for."""

    before: Untested
    missing: np.ndarray
    batch: Batch
    seconds: float = 0.0

    def untested(self) -> Untested:
        returns, steps, failures = self.before.returns.copy(), self.before.steps.copy(), dict(self.before.failures)
        returns[self.missing], steps[self.missing] = self.batch.returns, self.batch.steps
        over = {index: failure for index, failure in self.batch.failures.items() if self.batch.steps[index]}
        failures |= {str(self.missing[index]): over[index] for index in sorted(over)}
        return Untested(self.before.record, returns, steps, failures)

    def complete(self) -> Record:
        now, record = self.untested(), self.before.record
        failures = {int(index): failure for index, failure in now.failures.items()}
        outcomes = Outcomes(now.returns, now.steps, failures)
        tested = summarize(outcomes.counted if len(failures) < len(now.steps) else np.zeros(0))  # all failed: no mean
        return replace(
            record,
            test_mean=tested.mean,
            test_standard_error=tested.standard_error,
            steps_test=int(now.steps.sum()),
            seconds_test=self.seconds,
            failures_test=len(failures),
            first_failure=record.first_failure or first_of(failures),
        )
