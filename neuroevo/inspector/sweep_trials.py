"""Trials of a sweep for the page: their settings, results and runs."""

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

_METRICS = ("validation_mean", "fitness_mean")  # default objectives of sweeps, by preference


class SweepTrials:
    """Trials of a sweep, which may be running.

    Args:
        path: The sweep's folder.
        trust: Whether to read a sweep that was not started on this machine.

    Attributes:
        path: The sweep's folder.

    Raises:
        NotTrustedError: The sweep was not started on this machine.
        UserError: The trials cannot be read.
    """

    def __init__(self, path: Path, trust: bool = False):
        self.path, self._study = path, Study(path, trust)

    @staticmethod
    def is_sweep(path: Path) -> bool:
        """Return whether a folder contains a sweep."""
        return (path / DATABASE).is_file()

    def trials(self) -> dict[Path, Trial]:
        """Return the trials that have a run, by the folder of the run."""
        trials = {self.path / trial.folder: trial for trial in self._study.trials()}
        return {folder: trial for folder, trial in trials.items() if is_run(folder)}

    def payload(self, runs: Sequence[InspectedRun]) -> dict[str, Any]:
        """Return the sweep's trials for the page, with the values of the keys that differ between trials.

        Args:
            runs: All runs of the page; the number of a trial's run is its index in this sequence.
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
    """Resolve a path to runs: the run itself, a sweep's trials, or the runs below the folder.

    Args:
        path: A folder.
        trust: As for InspectedRun.

    Returns:
        The runs, at least one, and the sweep if the folder contains one.

    Raises:
        UserError: The folder contains no run.
    """
    if SweepTrials.is_sweep(path):
        sweep = SweepTrials(path, trust)
        trials = [InspectedRun(folder, str(folder.relative_to(path)), trust) for folder in sweep.trials()]
        if not trials:
            raise UserError(f"the sweep in {path} has no trial with a run yet")
        return trials, sweep
    named = {each: path.name if each == path else str(each.relative_to(path)) for each in runs_in(path)}
    return [InspectedRun(each, name, trust) for each, name in named.items()], None
