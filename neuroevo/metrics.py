"""What a finished generation leaves behind, as one flat row of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroevo.genome import Genome


@dataclass(frozen=True)
class Record:
    """One finished generation. Steps are decisions of the network, seconds are wall time.

    fitness: float64 [N]. validation: mean of the elite's validation episodes. test_mean and test_standard_error: of the
    elite's test episodes. Each is None where there were no such episodes. steps_*_total count from the run's start;
    steps_total is population + validation, which the budget counts. frames_total is steps_total times the frame skip.
    figures: the algorithm's own numbers, such as sigma.
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
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def steps_per_s(self) -> float:
        """Steps of all of the generation's episodes over the seconds that they took."""
        seconds = self.seconds_population + self.seconds_validation + self.seconds_test
        return (self.steps_population + self.steps_validation + self.steps_test) / max(seconds, 1e-9)

    def row(self) -> dict[str, Any]:
        """The record as plain values without the elite; those that depend on the clock are seconds_* and *_per_s."""
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
            "seconds_population": round(self.seconds_population, 3),
            "seconds_validation": round(self.seconds_validation, 3),
            "seconds_test": round(self.seconds_test, 3),
            "seconds_total": round(self.seconds_total, 3),
            "steps_per_s": round(self.steps_per_s, 1),
            "fitness": self.fitness.tolist(),
        }
