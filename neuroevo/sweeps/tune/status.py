"""How a trial of a sweep stands: what its run's folder says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import RunReader
from neuroevo.sweeps.tune.ledger import Ledger, Trial
from neuroevo.system.statistics import Summary, interval

Row = dict[str, Any]


@dataclass(frozen=True)
class TrialStatus:
    """A trial as it is now.

    Attributes:
        trial: The trial.
        metric: The column that is to be large.
        rows: Those of its generations, without the lists of fitness; the last ones may lack their tests.
        test_episodes: How many each elite plays.
        reason: Why the folder cannot be read, or why the trial failed; "" without either.
    """

    trial: Trial
    metric: str
    rows: list[Row] = field(default_factory=list)
    test_episodes: int = 0
    reason: str = ""

    @property
    def value(self) -> float | None:
        """The metric of the last generation; None before there is one."""
        return self.rows[-1][self.metric] if self.rows else None

    @property
    def test(self) -> Summary:
        """The test episodes of the newest elite that played them, with the 95% interval of their mean."""
        for row in reversed(self.rows):
            if row["test_mean"] is not None:
                return interval(self.test_episodes, row["test_mean"], row["test_standard_error"])
        return Summary(0, None, None, None, None)

    @property
    def generations(self) -> int:
        """How many are finished."""
        return len(self.rows)

    @property
    def steps(self) -> int | None:
        """Of population and validation episodes; None before a generation is finished."""
        return self.rows[-1]["steps_total"] if self.rows else None


def status_of(trial: Trial, metric: str, like: Config | None = None, trust: bool = False) -> TrialStatus:
    """Reads a trial's folder, into which another process may be training meanwhile.

    Args:
        trial: The trial.
        metric: The column that is to be large.
        like: The configuration that all trials share: what that names needs no trust.
        trust: Whether to run code and read models that the run names beside it.

    Returns:
        How it stands.
    """
    if not trial.folder:
        return TrialStatus(trial, metric, reason=trial.reason)
    try:
        reader = RunReader(Path(trial.folder), trust=trust, like=like)
        rows = reader.rows(fitness=False)
        for pending in reader.state().pending:  # their tests are missing, not what the sweep goes by
            if pending.record.generation >= len(rows):
                rows.append(pending.record.row_without_test())
    except UserError as error:
        return TrialStatus(trial, metric, reason=str(error))
    return TrialStatus(trial, metric, rows, reader.config.training.test_episodes, trial.reason)


def statuses(ledger: Ledger, metric: str, like: Config | None = None, trust: bool = False) -> list[TrialStatus]:
    """Reads the folders of all trials of a sweep.

    Args:
        ledger: The trials.
        metric: The column that is to be large.
        like: As status_of() takes it.
        trust: Likewise.

    Returns:
        How they stand, the best first, then those without a result.
    """
    return ranked([status_of(trial, metric, like, trust) for trial in ledger.trials.values()])


def ranked(found: Sequence[TrialStatus]) -> list[TrialStatus]:
    """Sorts trials.

    Args:
        found: How they stand.

    Returns:
        The best first, then those without a result; equal ones by number.
    """

    def key(now: TrialStatus) -> tuple[bool, float, int]:
        value = now.value
        return value is None, -(value or 0.0), now.trial.number

    return sorted(found, key=key)
