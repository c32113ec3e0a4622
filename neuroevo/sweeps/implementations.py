"""Other implementations of an algorithm, which a sweep compares with neuroevo.

An implementation is a function of a user's module, "module:function", that trains a configuration:

def train(config: Config, folder: Path, report: Report) -> None:
    for generation in range(config.training.generations):
        ...
        report(steps_population=steps, fitness_mean=mean, test_mean=score)

It runs in its own process. Its reports are written to metrics.csv in the trial's folder, where it may also write other
files. An interrupted trial restarts from the beginning.
"""

from __future__ import annotations

import csv
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, FiniteFloat, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean, problems_of
from neuroevo.core.user_module import find_function
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import last_generation, rows_of
from neuroevo.runs.paths import CSV, is_run
from neuroevo.system.reading import read_text
from neuroevo.training.record import COLUMNS

Row = dict[str, Any]
Report = Callable[..., None]
"""Function called after each generation with columns of metrics.csv as keyword arguments; see `Reporter`."""
_COLUMNS = tuple(name for name in COLUMNS if name != "fitness")


class Reporter:
    """Writer of metrics.csv for a trial that another implementation trains.

    Args:
        folder: The trial's folder.
    """

    def __init__(self, folder: Path):
        self._file = (folder / CSV).open("w", encoding="utf-8", newline="")
        self._rows = csv.DictWriter(self._file, _COLUMNS, lineterminator="\n")
        self._rows.writeheader()
        self._generation = self._steps = 0
        self._seconds = 0.0  # at the last report
        self._begun = time.perf_counter()

    def __call__(self, **numbers: float | None) -> None:
        """Report a generation.

        Args:
            numbers: Columns of metrics.csv, such as steps_population and test_mean. By default steps_total is the sum
                of steps_population and steps_validation of all generations, frames_total equals steps_total,
                seconds_total is the time since training began, and steps_per_s the rate since the last report.

        Raises:
            UserError: A column does not exist, or a number is not finite.
        """
        for name, value in numbers.items():
            if name not in _COLUMNS:
                raise UserError(f"an implementation reports {name!r}{did_you_mean(name, _COLUMNS)}")
            if value is not None and not math.isfinite(value):
                raise UserError(f"an implementation reports {name} = {value}, expected a finite number")
        steps = [int(numbers.get(f"steps_{phase}") or 0) for phase in ("population", "validation", "test")]
        seconds = time.perf_counter() - self._begun
        self._steps += steps[0] + steps[1]
        row = {
            "generation": self._generation,
            "steps_total": self._steps,
            "frames_total": numbers.get("steps_total", self._steps),
            "seconds_total": round(seconds, 3),
            "steps_per_s": round(sum(steps) / max(seconds - self._seconds, 1e-9), 1),
        }
        self._seconds = seconds
        self._rows.writerow({**row, **numbers})
        self._file.flush()
        self._generation += 1


def function_of(implementation: str) -> Callable[[Config, Path, Report], None]:
    """Import the function of an implementation. Raise UserError if it does not exist."""
    return find_function(implementation, f'the implementation is {implementation!r}, expected "module:function"')


def train(implementation: str, config: Config, folder: Path) -> None:
    """Train a trial with an implementation, after deleting the folder's contents. It raises as function_of() does."""
    function = function_of(implementation)
    shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted process
    folder.mkdir(parents=True)
    function(config, folder, Reporter(folder))


def rows_in(folder: Path, first: int = 0) -> list[Row]:
    """Read the rows of metrics.csv or run.db of a trial, which may be training in another process.

    Args:
        folder: The trial's folder.
        first: The first generation to read; a negative number counts from the end.

    Raises:
        UserError: The file does not exist or cannot be read.
    """
    if is_run(folder):
        with Database(folder / DATABASE) as database:
            before = max(last_generation(database) + 1, 0) if first < 0 else 0
            return rows_of(database, max(before + first, 0), fitness=False)
    file = folder / CSV
    try:
        lines = read_text(file).split("\n")[:-1]  # the last is empty, or not yet complete
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
    try:
        rows: list[Row] = _ROWS.validate_python(list(csv.DictReader(lines)))
    except (ValidationError, csv.Error) as error:
        reason = problems_of("row", error)[0].reason if isinstance(error, ValidationError) else str(error)
        raise UserError(f"{file} is damaged: {reason}") from None
    return rows[first:]


_Number = Annotated[FiniteFloat | None, BeforeValidator(lambda text: text or None)]
_WHOLE = ("generation", "steps_total", "frames_total")
_ROWS: Any = TypeAdapter(
    list[TypedDict("_Row", {name: int if name in _WHOLE else _Number for name in _COLUMNS})]  # type: ignore
)
