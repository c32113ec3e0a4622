"""Progress notifications of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroevo.sweeps.sweep import Trial


class SweepWatcher:
    """Receiver of the events of `run_sweep`. This one ignores them."""

    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        """Called before the first trial starts.

        Args:
            trials: Those that are known.
            total: How many there will be.
            parallel: Number of trials in parallel.
        """

    def started(self, trial: Trial, resumes: bool) -> None:
        """Called when a process trains a trial.

        Args:
            trial: The trial.
            resumes: Whether its run exists already.
        """

    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Called when a trial has finished one or more generations.

        Args:
            trial: The trial.
            row: The last generation's numbers, as metrics.csv has them.
        """

    def unreadable(self, trial: Trial, reason: str) -> None:
        """Called for a trial whose run cannot be read, so that its generations are not reported.

        Args:
            trial: The trial.
            reason: What is wrong.
        """

    def ended(self, trial: Trial) -> None:
        """Called when a trial is finished, stopped by the pruner, or failed.

        Args:
            trial: The trial.
        """

    def tick(self) -> None:
        """Called several times a second."""
