"""Status and progress of a trial, read from its run's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.statistics import Summary, interval
from neuroevo.runs.database import DATABASE
from neuroevo.runs.paths import CSV
from neuroevo.runs.reader import RunReader
from neuroevo.sweeps.implementations import Row, rows_in
from neuroevo.sweeps.space import value_text
from neuroevo.sweeps.sweep import Sweep, Trial
from neuroevo.system.console import clock


@dataclass(frozen=True)
class TrialStatus:
    """Snapshot of a trial's progress.

    Attributes:
        trial: The trial.
        config: The trial's configuration.
        metric: Column of metrics.csv that searches and pruners maximize.
        rows: Rows of its generations, without the lists of fitness.
        reason: Why its folder cannot be read, or why the trial failed; "" otherwise.
    """

    trial: Trial
    config: Config
    metric: str
    rows: list[Row] = field(default_factory=list)
    reason: str = ""

    @property
    def group(self) -> str:
        """Name of its configuration in tables: the label and the values of the space's keys."""
        values = ", ".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in self.trial.values.items())
        return f"{self.trial.label} {values}".strip()

    @property
    def ended(self) -> bool:
        """Whether the trial is finished, or the pruner has stopped it."""
        return self.trial.status in ("finished", "stopped")

    @property
    def value(self) -> float | None:
        """The metric of the last generation; None before the first generation."""
        return self.rows[-1][self.metric] if self.rows else None

    @property
    def score_of(self) -> Literal["test", "validation"]:
        """Episodes that determine an elite's score: "test" if the trial has test episodes, else "validation"."""
        return "test" if self.config.training.test_episodes else "validation"

    def score(self, row: Row) -> float | None:
        """Return the elite's mean return in the episodes of `score_of`; None if it did not play them."""
        value: float | None = row[f"{self.score_of}_mean"]
        return value

    @property
    def played(self) -> list[Row]:
        """The rows that have a score."""
        return [row for row in self.rows if self.score(row) is not None]

    @property
    def test(self) -> Summary:
        """Summary of the newest elite's test episodes, with the 95% interval of their mean."""
        played = [row for row in self.rows if row["test_mean"] is not None]
        if not played:
            return Summary(0, None, None, None, None)
        numbers = played[-1]["test_mean"], played[-1]["test_standard_error"]
        return interval(self.config.training.test_episodes, *numbers)

    @property
    def steps_per_s(self) -> float | None:
        """Steps per second in all episodes, without the first generation, in which programs may be compiled."""
        phases = ("steps_population", "steps_validation", "steps_test")
        later = [(sum(row[phase] or 0 for phase in phases), row["steps_per_s"]) for row in self.rows[1:]]
        steps = sum(each for each, rate in later if rate)
        return steps / sum(each / rate for each, rate in later if rate) if steps else None


def describe(config: Config, row: Mapping[str, Any]) -> str:
    """Describe a trial's last generation, such as "2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15"."""
    kind = "test" if config.training.test_episodes else "validation"
    elite = "" if row[f"{kind}_mean"] is None else f"elite {kind} {number(row[f'{kind}_mean'], 1)}, "
    generations = int(row["generation"]) + 1
    so_far = f"{generations} generation{'s' if generations > 1 else ''}"
    return f"{so_far}, {elite}{number(row['frames_total'])} frames, {clock(row['seconds_total'])}"


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separated by commas; "-" stands for None."""
    return "-" if value is None else f"{value:,.{digits}f}"


def status_of(sweep: Sweep, trial: Trial) -> TrialStatus:
    """Return the status of a trial, which may be training in another process, from its folder."""
    config, folder = sweep.config(trial), sweep.out / trial.folder
    other = trial.label in sweep.implementations
    now = TrialStatus(trial, config, sweep.metric, reason=trial.reason)
    if not (folder / CSV if other else folder / DATABASE).is_file():
        return replace(now, reason=f"there is no run in {folder}") if now.ended else now
    try:
        if other:
            rows = rows_in(folder)
        else:
            reader = RunReader(folder, trust=sweep.trust, like=config)
            if reader.config.origin() != config.origin():
                return replace(now, reason=f"{folder} holds a run of another configuration")
            reader.check_file()
            rows = reader.rows(fitness=False)
    except UserError as error:
        return replace(now, reason=str(error))
    return replace(now, rows=rows[: trial.stopped])  # a pruned trial may have played further generations


def grouped(statuses: Sequence[TrialStatus]) -> dict[tuple[str, str], list[TrialStatus]]:
    """Return the trials of each game and group, in the order of the sweep."""
    groups: dict[tuple[str, str], list[TrialStatus]] = {}
    for each in statuses:
        groups.setdefault((each.trial.game, each.group), []).append(each)
    return groups


def rank(value: float | None, trial: Trial) -> tuple[bool, float, int]:
    """Return the key that sorts trials by metric in descending order, missing metrics last, ties by number."""
    return value is None, -(value or 0.0), trial.number
