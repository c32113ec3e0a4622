"""How far a trial is: what its run's folder says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

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
    """A trial as it is now.

    Attributes:
        trial: The trial.
        config: Its configuration.
        metric: The column that searches and pruners want to be large.
        rows: Those of its generations, without the lists of fitness.
        reason: Why its folder cannot be read, or why the trial failed; "" without either.
    """

    trial: Trial
    config: Config
    metric: str
    rows: list[Row] = field(default_factory=list)
    reason: str = ""

    @property
    def group(self) -> str:
        """What tables call its configuration: the label, with the values of the space's keys."""
        values = ", ".join(f"{key.rpartition('.')[2]} {value_text(value)}" for key, value in self.trial.values.items())
        return f"{self.trial.label} {values}".strip()

    @property
    def ended(self) -> bool:
        """Whether the trial is finished, or the pruner has stopped it."""
        return self.trial.status in ("finished", "stopped")

    @property
    def value(self) -> float | None:
        """The metric of the last generation; None before there is one."""
        return self.rows[-1][self.metric] if self.rows else None

    @property
    def score_of(self) -> Literal["test", "validation"]:
        """Which episodes of an elite make its score: "test" if the trial has test episodes, else "validation"."""
        return "test" if self.config.training.test_episodes else "validation"

    def score(self, row: Row) -> float | None:
        """Return an elite's mean return in these episodes; None if it has none."""
        value: float | None = row[f"{self.score_of}_mean"]
        return value

    @property
    def played(self) -> list[Row]:
        """The rows that have a score."""
        return [row for row in self.rows if self.score(row) is not None]

    @property
    def test(self) -> Summary:
        """The test episodes of the newest elite that played them, with the 95% interval of their mean."""
        for row in reversed(self.rows):
            if row["test_mean"] is not None:
                episodes = self.config.training.test_episodes
                return interval(episodes, row["test_mean"], row["test_standard_error"])
        return Summary(0, None, None, None, None)

    @property
    def steps_per_s(self) -> float | None:
        """Steps of all episodes per second after the first generation, in which programs may be compiled."""
        phases = ("steps_population", "steps_validation", "steps_test")
        later = [(sum(row[phase] or 0 for phase in phases), row["steps_per_s"]) for row in self.rows[1:]]
        steps = sum(each for each, rate in later if rate)
        return steps / sum(each / rate for each, rate in later if rate) if steps else None

    def describe(self) -> str:
        """Return a clause, such as "2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15"."""
        return describe(self.config, self.rows[-1]) if self.rows else "no generation yet"


def describe(config: Config, row: Row) -> str:
    """Describe how far a trial is.

    Args:
        config: Its configuration.
        row: The numbers of its last generation.

    Returns:
        A clause, such as "2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15".
    """
    kind = "test" if config.training.test_episodes else "validation"
    value = row[f"{kind}_mean"]
    elite = "" if value is None else f"elite {kind} {value:,.1f}, "
    generations = int(row["generation"]) + 1
    so_far = f"{generations} generation{'s' if generations > 1 else ''}"
    return f"{so_far}, {elite}{int(row['frames_total']):,} frames, {clock(row['seconds_total'])}"


def status_of(sweep: Sweep, trial: Trial) -> TrialStatus:
    """Read a trial's folder, into which another process may be training meanwhile.

    Args:
        sweep: The sweep.
        trial: The trial.
    """
    config, folder = sweep.config(trial), sweep.out / trial.folder
    other = trial.label in sweep.implementations
    if not (folder / CSV if other else folder / DATABASE).is_file():
        now = TrialStatus(trial, config, sweep.metric, reason=trial.reason)
        return replace(now, reason=f"there is no run in {folder}") if now.ended else now
    try:
        if other:
            return TrialStatus(trial, config, sweep.metric, rows_in(folder)[: trial.stopped], trial.reason)
        reader = RunReader(folder, trust=sweep.trust, like=config)
        if reader.config.origin() != config.origin():
            reason = f"{folder} holds a run of another configuration"
            return TrialStatus(trial, config, sweep.metric, reason=reason)
        reader.check_file()
        rows = reader.rows(fitness=False)  # a process that is stopped may have gone on for a while
        return TrialStatus(trial, config, sweep.metric, rows[: trial.stopped], trial.reason)
    except UserError as error:
        return TrialStatus(trial, config, sweep.metric, reason=str(error))


def ranked(found: Sequence[TrialStatus]) -> list[TrialStatus]:
    """Sort trials: the best first, then those without a result; equal ones by number."""
    return sorted(found, key=lambda now: (now.value is None, -(now.value or 0.0), now.trial.number))
