"""What a sweep reports while its trials go on: to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroevo.sweeps.sweep import Trial


class SweepWatcher:
    """Hears from `run_sweep` how a sweep goes. This one ignores it all."""

    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        """Called before the first trial starts.

        Args:
            trials: Those that are known.
            total: How many there will be.
            parallel: How many go at a time.
        """

    def started(self, trial: Trial) -> None:
        """Called when a trial starts or goes on.

        Args:
            trial: The trial.
        """

    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Called when a trial has finished one or more generations.

        Args:
            trial: The trial.
            row: The last generation's numbers, as metrics.csv has them.
        """

    def unreadable(self, trial: Trial, reason: str) -> None:
        """Called for a trial whose run cannot be read, so that its generations are not heard of.

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
