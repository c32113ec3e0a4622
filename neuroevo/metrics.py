"""What a generation leaves behind: one flat JSON object, written and flushed as soon as the generation is finished."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
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
        """The record as plain values, for JSON; those that depend on the clock are seconds_* and *_per_s."""
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
            "elite": genome_to_json(self.elite),
            "fitness": self.fitness.tolist(),
        }


def mean_and_error(returns: np.ndarray) -> tuple[float | None, float | None]:
    """Mean and standard error of the mean of returns, float64 [n]; None where n is too small for it."""
    if len(returns) == 0:
        return None, None
    error = float(np.std(returns, ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else None
    return float(np.mean(returns)), error


def genome_to_json(genome: Genome) -> dict[str, Any]:
    """A genome as plain values; seeds need 63 bits, which a reader that makes floats of numbers does not keep."""
    return {"base": genome.base, "chain": [list(mutation) for mutation in genome.chain], "network": genome.network}


def genome_from_json(value: Mapping[str, Any]) -> Genome:
    """The genome that genome_to_json wrote."""
    chain = tuple((int(seed), float(scale)) for seed, scale in value["chain"])
    return Genome(int(value["base"]), chain, int(value.get("network", 0)))


def append_row(path: Path, record: Record) -> None:
    """Adds the record to the JSON lines file at `path`."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record.row(), allow_nan=False) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
