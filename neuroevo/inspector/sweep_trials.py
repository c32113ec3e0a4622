"""A sweep's trials for the page: their values, what they achieved, and where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuroevo.core.errors import UserError
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import plain
from neuroevo.runs.paths import is_run, runs_in
from neuroevo.sweeps.study import DATABASE, Study
from neuroevo.sweeps.sweep import Trial

_METRICS = ("validation_mean", "fitness_mean")  # what sweeps go by where they name nothing else


class SweepTrials:
    """The trials of a sweep, which may be going on.

    Args:
        path: The sweep's folder.
        trust: Whether to read a sweep that was not begun on this machine.

    Attributes:
        path: The sweep's folder.

    Raises:
        NotTrustedError: It was not begun here.
        UserError: Its trials cannot be read.
    """

    def __init__(self, path: Path, trust: bool = False):
        self.path, self._study = path, Study(path, trust)

    @staticmethod
    def is_sweep(path: Path) -> bool:
        """Return whether a folder is a sweep's."""
        return (path / DATABASE).is_file()

    def trials(self) -> dict[Path, Trial]:
        """Return the trials that have a run, by its folder."""
        trials = {self.path / trial.folder: trial for trial in self._study.trials()}
        return {folder: trial for folder, trial in trials.items() if is_run(folder)}

    def payload(self, runs: Sequence[InspectedRun]) -> dict[str, Any]:
        """Return the sweep's trials, with the values of the keys that differ, as the page draws them.

        Args:
            runs: All that the page shows; the number of a trial's run is its place among them.
        """
        numbers = {run.path: number for number, run in enumerate(runs)}
        trials = {numbers[path]: trial for path, trial in self.trials().items() if path in numbers}
        last = {number: runs[number].metrics.rows[-1] for number in trials if runs[number].metrics.rows}
        metric = next(
            (name for name in _METRICS if any(row.get(name) is not None for row in last.values())), _METRICS[0]
        )
        keys = list(dict.fromkeys(key for trial in trials.values() for key in trial.values if key != "training.seed"))
        rows = [
            {
                "run": number,
                "trial": trial.number,
                "values": plain([trial.values.get(key) for key in keys]),
                "metric": last.get(number, {}).get(metric),
                "generations": len(runs[number].metrics.rows),
                "status": trial.status,
                "reason": trial.reason,
            }
            for number, trial in trials.items()
        ]
        return {"name": self.path.name, "metric": metric, "keys": keys, "trials": rows}


def runs_of(path: Path, trust: bool) -> tuple[list[InspectedRun], SweepTrials | None]:
    """Return the runs that a path stands for: itself, a sweep's trials, or the runs right below it.

    Args:
        path: A folder.
        trust: As InspectedRun takes it.

    Returns:
        The runs, at least one, and the sweep if it is one.

    Raises:
        UserError: There is no run.
    """
    if SweepTrials.is_sweep(path):
        sweep = SweepTrials(path, trust)
        trials = [InspectedRun(folder, str(folder.relative_to(path)), trust) for folder in sweep.trials()]
        if not trials:
            raise UserError(f"the sweep in {path} has no trial with a run yet")
        return trials, sweep
    named = {each: path.name if each == path else str(each.relative_to(path)) for each in runs_in(path)}
    return [InspectedRun(each, name, trust) for each, name in named.items()], None
