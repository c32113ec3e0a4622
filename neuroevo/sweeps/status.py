"""How far a run of a suite is: what its folder says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from neuroevo.core.errors import UserError
from neuroevo.runs.paths import is_run
from neuroevo.runs.reader import RunReader
from neuroevo.sweeps.suite import SuiteRun
from neuroevo.system.console import clock
from neuroevo.training.state import finished

Row = dict[str, Any]
Status = Literal["not started", "unfinished", "finished", "unusable"]


@dataclass(frozen=True)
class RunStatus:
    """A run as it is now.

    Attributes:
        run: The run.
        status: How far it is.
        rows: One per finished generation, without the lists of fitness.
        reason: Why the folder is unusable: it cannot be read, or the run in it has another configuration.
    """

    run: SuiteRun
    status: Status
    rows: list[Row] = field(default_factory=list)
    reason: str = ""

    @property
    def played(self) -> list[Row]:
        """The rows that have a score."""
        return [row for row in self.rows if score(row, self.run) is not None]


def status_of(run: SuiteRun) -> RunStatus:
    """Reads a run's folder, into which another process may be training meanwhile.

    Args:
        run: The run.

    Returns:
        How far it is.
    """
    if not is_run(run.folder):
        return RunStatus(run, "not started")
    try:
        reader = RunReader(run.folder, trust=run.trust, like=run.config)
        if reader.config.origin() != run.config.origin():
            return RunStatus(run, "unusable", reason=f"{run.folder} holds a run of another configuration")
        reader.check_file()
        over = finished(reader.state(), run.config.training)
        rows = reader.rows(fitness=False)
    except UserError as error:
        return RunStatus(run, "unusable", reason=str(error))
    return RunStatus(run, "finished" if over else "unfinished", rows)


def score_of(run: SuiteRun) -> Literal["test", "validation"]:
    """Says which episodes of an elite make its score.

    Args:
        run: The run.

    Returns:
        "test" if the run has test episodes, else "validation".
    """
    return "test" if run.config.training.test_episodes else "validation"


def score(row: Row, run: SuiteRun) -> float | None:
    """Gets the score of a generation's elite.

    Args:
        row: The generation's numbers.
        run: The run.

    Returns:
        The elite's mean return in the episodes that `score_of` names; None if it has none.
    """
    value: float | None = row[f"{score_of(run)}_mean"]
    return value


def describe(run: SuiteRun, row: Row) -> str:
    """Describes how far a run is.

    Args:
        run: The run.
        row: The numbers of its last generation.

    Returns:
        A clause, such as "2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15".
    """
    value = score(row, run)
    elite = "" if value is None else f"elite {score_of(run)} {value:,.1f}, "
    generations = int(row["generation"]) + 1
    so_far = f"{generations} generation{'s' if generations > 1 else ''}"
    return f"{so_far}, {elite}{int(row['frames_total']):,} frames, {clock(row['seconds_total'])}"
