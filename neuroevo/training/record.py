"""Records of generations: statistics of each phase, the elite, and a flat row of plain values.

A generation has three phases: its population plays, the best candidates play validation episodes, and the elite plays
test episodes. The last phase often runs in parallel with later generations, hence two types: a `GenerationRecord`
is available when the generation is finished, and becomes a `Record` once its elite has been evaluated. Metrics files,
TensorBoard and progress displays receive a `Record`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from neuroevo.core.arrays import Checked, check_array, check_counts
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.statistics import without_overflow


@dataclass(frozen=True, kw_only=True)
class PhaseRecord(Checked):
    """Statistics of the episodes in one phase of a generation. All numbers are 0 if the phase has no episodes.

    Attributes:
        episodes: Number of episodes played.
        steps: Steps (decisions of the networks) in all episodes.
        seconds: Wall time spent waiting for the phase.
        failures: Number of failed episodes; each is scored as the phase's worst episode that did not fail.
        first_failure: Reason of the first failure; "" without failures.
    """

    episodes: int
    steps: int
    seconds: float
    failures: int = 0
    first_failure: str = ""

    def check_state(self) -> None:
        """Check ranges.

        Raises:
            ValueError: A number is below 0.
        """
        check_counts(episodes=self.episodes, steps=self.steps, failures=self.failures)
        if self.seconds < 0:
            raise ValueError(f"seconds is {self.seconds}, expected at least 0")


@dataclass(frozen=True, kw_only=True)
class EvaluationRecord(PhaseRecord):
    """Statistics of the elite's test episodes.

    Attributes:
        episodes: See `PhaseRecord`, also for `steps`, `failures` and `first_failure`.
        seconds: Wall time spent waiting for these episodes only; most are played in parallel with other generations.
        mean: Mean return; None if there are no test episodes, or all of them failed.
        standard_error: Standard error of the mean; None if there are fewer than two test episodes, or all failed.
    """

    mean: float | None
    standard_error: float | None


NOT_EVALUATED = EvaluationRecord(episodes=0, steps=0, seconds=0.0, mean=None, standard_error=None)
"""Placeholder for unfinished test episodes."""


@dataclass(frozen=True, kw_only=True)
class GenerationRecord(Checked):
    """Record of a finished generation whose elite has not been evaluated yet.

    Attributes:
        generation: Index of the generation, from 0.
        max_episode_steps: Cut-off of the episodes of population and validation, in steps.
        elite: The best genome after the generation.
        fitness: Fitness of each genome of the population, float64 [N].
        validation_mean: Mean return of the elite's validation episodes; None if there are none.
        population: Statistics of the population's episodes.
        validation: Statistics of the validation episodes of all candidates.
        steps_total: Steps of population and validation since the run's start, as counted by the budget.
        frames_total: `steps_total` times the environment's frame skip.
        seconds_total: Wall time of the run so far, see TrainState.seconds. If the elite's evaluation finished after the
            last generation, it includes the time until then.
        steps_per_s: Throughput during the generation, including test episodes of earlier generations; steps of episodes
            that share a play count once.
        idle_share: Share of the worker threads' time during the generation in which they were idle, in [0, 1].
        extra_metrics: The algorithm's metrics, such as sigma, under names that are not in `COLUMNS`; and `retries`, the
            number of episodes played again, if the evaluator retries episodes. It includes finished test episodes.
        normalizer: Normalizer of the networks' observations in the generation; None: no normalization.
    """

    generation: int
    max_episode_steps: int
    elite: Genome
    fitness: np.ndarray
    validation_mean: float | None
    population: PhaseRecord
    validation: PhaseRecord
    steps_total: int
    frames_total: int
    seconds_total: float
    steps_per_s: float
    idle_share: float
    extra_metrics: Mapping[str, float | None] = field(default_factory=dict)
    normalizer: Normalizer | None = None

    def check_state(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: A count is below 0, or fitness is not float64 [N].
        """
        check_counts(generation=self.generation, max_episode_steps=self.max_episode_steps)
        check_counts(steps_total=self.steps_total, frames_total=self.frames_total)
        check_array("fitness", self.fitness, [None], np.float64)
        check_counts(retries=int(self.extra_metrics.get(RETRIES) or 0))
        checked_metrics("the record", {name: value for name, value in self.extra_metrics.items() if name != RETRIES})

    def evaluated(self, test: EvaluationRecord) -> Record:
        """Complete the record with the evaluation of its elite.

        Args:
            test: Statistics of the elite's test episodes.

        Returns:
            The complete record.
        """
        return Record(**{each.name: getattr(self, each.name) for each in fields(GenerationRecord)}, test=test)


@dataclass(frozen=True, kw_only=True, repr=False)
class Record(GenerationRecord):
    """Complete record of a finished generation whose elite has been evaluated.

    Attributes:
        test: Statistics of the elite's test episodes; of 0 episodes if the run has no test episodes.
    """

    test: EvaluationRecord

    @property
    def phases(self) -> tuple[PhaseRecord, PhaseRecord, PhaseRecord]:
        """The phases in order: population, validation, test."""
        return self.population, self.validation, self.test

    @property
    def failures(self) -> int:
        """Number of failed episodes in all phases."""
        return sum(phase.failures for phase in self.phases)

    @property
    def first_failure(self) -> str:
        """Reason for the first failure, in the order of the phases; "" if no episode failed."""
        return next((phase.first_failure for phase in self.phases if phase.failures), "")

    @property
    def failure_summary(self) -> str:
        """Number of failed episodes and reason for the first failure, as a clause of a sentence; "" if none failed."""
        if not self.failures:
            return ""
        return f"{self.failures:,} episode{'s' if self.failures > 1 else ''} failed, the first: {self.first_failure}"

    def __str__(self) -> str:
        line = describe_row(self.row())
        return f"{line}, {self.failure_summary}" if self.failures else line

    def __repr__(self) -> str:
        return f"Record({self})"

    def row(self) -> dict[str, Any]:
        """Flatten the record into plain values, for metrics files and TensorBoard.

        Returns:
            The generation's index, the algorithm's metrics, then the other values of `COLUMNS`, without the elite and
            the normalizer. Only seconds_*, steps_per_s and idle_share depend on the clock.
        """
        values = {name: value_of(self) for name, value_of in _VALUES.items()}
        return {"generation": self.generation, **self.extra_metrics, **values}


_VALUES: dict[str, Callable[[Record], Any]] = {  # users' scripts read these names
    "max_episode_steps": lambda record: record.max_episode_steps,
    "fitness_mean": lambda record: float(without_overflow(np.mean, record.fitness)),
    "fitness_median": lambda record: float(without_overflow(np.median, record.fitness)),
    "fitness_max": lambda record: float(np.max(record.fitness)),
    "fitness_min": lambda record: float(np.min(record.fitness)),
    "fitness_std": lambda record: float(without_overflow(np.std, record.fitness)),
    "validation_mean": lambda record: record.validation_mean,
    "test_mean": lambda record: record.test.mean,
    "test_standard_error": lambda record: record.test.standard_error,
    "steps_population": lambda record: record.population.steps,
    "steps_validation": lambda record: record.validation.steps,
    "steps_test": lambda record: record.test.steps,
    "steps_total": lambda record: record.steps_total,
    "frames_total": lambda record: record.frames_total,
    "failures_population": lambda record: record.population.failures,
    "failures_validation": lambda record: record.validation.failures,
    "failures_test": lambda record: record.test.failures,
    "seconds_population": lambda record: round(record.population.seconds, 3),
    "seconds_validation": lambda record: round(record.validation.seconds, 3),
    "seconds_test": lambda record: round(record.test.seconds, 3),
    "seconds_total": lambda record: round(record.seconds_total, 3),
    "steps_per_s": lambda record: round(record.steps_per_s, 1),
    "idle_share": lambda record: round(record.idle_share, 4),
    "fitness": lambda record: record.fitness.tolist(),
}

COLUMNS = ("generation", *_VALUES)
"""Names of the columns of every run, in order; an algorithm's metrics are inserted after the first column."""

ARCHIVE = "archive"  # size of the algorithm's archive of behaviors, if it has one
RETRIES = "retries"  # the only extra metric that does not come from the algorithm


def with_retries(metrics: Mapping[str, float | None], *more: int | None) -> dict[str, float | None]:
    """Add the number of episodes that were played again to a generation's metrics.

    Args:
        metrics: GenerationRecord.extra_metrics.
        more: Numbers to add, see Outcomes.retries.

    Returns:
        The metrics, with `retries` if any count is known.
    """
    counts = [count for count in (metrics.get(RETRIES), *more) if count is not None]
    return {**metrics, RETRIES: sum(counts)} if counts else dict(metrics)


def checked_metrics(source: str, metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Check the metrics of an algorithm.

    Args:
        source: Name of the function that returned the metrics, for messages.
        metrics: Values by name; may be NumPy scalars, which are converted for checkpoints and JSON.

    Returns:
        The metrics as Python numbers.

    Raises:
        UserError: A metric is not a finite number, or its name is reserved or not a valid string.
    """
    checked: dict[str, float | None] = {}
    for name, value in metrics.items():
        try:
            name.encode()
        except (AttributeError, UnicodeEncodeError):
            raise UserError(f"{source} has a metric {name!r}, expected a string that can be encoded as UTF-8") from None
        if name in (*COLUMNS, RETRIES):
            raise UserError(f"{source} has '{name}', which is a column of every run's results; expected another name")
        number = value.item() if isinstance(value, np.generic) else value
        number = int(number) if isinstance(number, bool) else number
        if number is not None and not (isinstance(number, int | float) and abs(number) <= sys.float_info.max):
            raise UserError(f"{source} has {name} = {value!r}, expected a finite number, or None if it is unknown")
        checked[name] = number
    return checked


def describe_row(row: Mapping[str, Any]) -> str:
    """Describe a row in a line of text, without the reasons of failures.

    Args:
        row: Row in the format of Record.row(); fitness may be missing.

    Returns:
        The line, without a newline.
    """
    parts = []
    if row.get("novelty_mean") is not None:  # only if the algorithm selects by novelty
        parts.append(f"novelty mean {row['novelty_mean']:.2f} max {row['novelty_max']:.2f}")
    parts.append(f"fitness mean {row['fitness_mean']:.1f} max {row['fitness_max']:.1f}")
    if row["validation_mean"] is not None:
        parts.append(f"elite validation {row['validation_mean']:.1f}")
    if row["test_mean"] is not None:
        error = "" if row["test_standard_error"] is None else f" +- {row['test_standard_error']:.1f}"
        parts.append(f"test {row['test_mean']:.1f}{error}")
    parts.append(f"steps {row['steps_total']:,}, {row['steps_per_s']:,.0f}/s, threads {row['idle_share']:.1%} idle")
    parts.append(f"{row['seconds_total']:.1f} s")
    return f"generation {row['generation']}: {', '.join(parts)}"
