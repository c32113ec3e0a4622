"""What a sweep reports while its trials go on: to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroevo.sweeps.tune.ledger import Trial


class SweepWatcher:
    """Hears from `run_sweep` how a sweep goes. This one ignores it all."""

    def begin(self, trials: Sequence[Trial], total: int, concurrent: int) -> None:
        """Called before the first trial starts.

        Args:
            trials: Those that are known, from before where the sweep goes on.
            total: How many there will be.
            concurrent: How many go at a time.
        """

    def started(self, trial: Trial) -> None:
        """Called when a trial starts or goes on.

        Args:
            trial: The trial.
        """

    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Called when a trial has finished a generation.

        Args:
            trial: The trial.
            row: The generation's result, see Trainable.
        """

    def ended(self, trial: Trial) -> None:
        """Called when a trial is finished, stopped by the scheduler, or failed.

        Args:
            trial: The trial.
        """

    def tick(self) -> None:
        """Called several times a second."""
