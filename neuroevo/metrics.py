"""What a finished generation leaves behind, as one flat row of numbers, and as a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroevo.genome import Genome
from neuroevo.normalization import Normalizer


@dataclass(frozen=True)
class Record:
    """One finished generation. Steps are decisions of the network, seconds are wall time.

    fitness: float64 [N]. validation: mean of the elite's validation episodes. test_mean and test_standard_error: of the
    elite's test episodes. Each is None where there were no such episodes. steps_*_total count from the run's start;
    steps_total is population + validation, which the budget counts. frames_total is steps_total times the frame skip.
    seconds_test: in which nothing but the test episodes was waited for; they are played while other generations are.
    steps_per_s: of all episodes that were played during the generation, tests of earlier ones included. idle_share: of
    the worker threads' time in the generation, what they had no work for, in [0, 1].
    figures: the algorithm's own numbers, such as sigma, of other names than row() has without them.
    normalizer: what the generation's networks, the elite among them, see observations through; None: as they are.
    failures_*: how many of the episodes failed; they count as the worst of the others. first_failure: why the first did.
    """

    generation: int
    cutoff: int
    elite: Genome
    fitness: np.ndarray
    validation: float | None
    test_mean: float | None
    test_standard_error: float | None
    steps_population: int
    steps_validation: int
    steps_test: int
    steps_total: int
    frames_total: int
    seconds_population: float
    seconds_validation: float
    seconds_test: float
    seconds_total: float
    steps_per_s: float
    idle_share: float
    figures: Mapping[str, float | None] = field(default_factory=dict)
    normalizer: Normalizer | None = None
    failures_population: int = 0
    failures_validation: int = 0
    failures_test: int = 0
    first_failure: str = ""

    @property
    def failures(self) -> str:
        """How many of the episodes failed, and why the first one did, as a clause; "" if none did."""
        count = self.failures_population + self.failures_validation + self.failures_test
        return f"{count:,} episode{'s' if count > 1 else ''} failed, the first: {self.first_failure}" if count else ""

    def row(self) -> dict[str, Any]:
        """The record as plain values without the elite and what it sees through; those that depend on the clock are
        seconds_*, steps_per_s and idle_share."""
        return {
            "generation": self.generation,
            **self.figures,
            "cutoff": self.cutoff,
            "fitness_mean": float(np.mean(self.fitness)),
            "fitness_median": float(np.median(self.fitness)),
            "fitness_max": float(np.max(self.fitness)),
            "fitness_min": float(np.min(self.fitness)),
            "fitness_std": float(np.std(self.fitness)),
            "validation_mean": self.validation,
            "test_mean": self.test_mean,
            "test_standard_error": self.test_standard_error,
            "steps_population": self.steps_population,
            "steps_validation": self.steps_validation,
            "steps_test": self.steps_test,
            "steps_total": self.steps_total,
            "frames_total": self.frames_total,
            "failures_population": self.failures_population,
            "failures_validation": self.failures_validation,
            "failures_test": self.failures_test,
            "seconds_population": round(self.seconds_population, 3),
            "seconds_validation": round(self.seconds_validation, 3),
            "seconds_test": round(self.seconds_test, 3),
            "seconds_total": round(self.seconds_total, 3),
            "steps_per_s": round(self.steps_per_s, 1),
            "idle_share": round(self.idle_share, 4),
            "fitness": self.fitness.tolist(),
        }


def describe(record: Record) -> str:
    """One line about a generation."""
    parts = [
        f"generation {record.generation}:",
        f"fitness mean {record.fitness.mean():.1f} max {record.fitness.max():.1f}",
    ]
    if record.validation is not None:
        parts.append(f"elite validation {record.validation:.1f}")
    if record.test_mean is not None:
        error = "" if record.test_standard_error is None else f" +- {record.test_standard_error:.1f}"
        parts.append(f"test {record.test_mean:.1f}{error}")
    parts.append(f"steps {record.steps_total:,}, {record.steps_per_s:,.0f}/s, {record.idle_share:.1%} idle")
    parts.append(f"{record.seconds_total:.1f} s")
    if record.failures:
        parts.append(record.failures)
    return " ".join(parts[:2]) + "".join(f", {part}" for part in parts[2:])
