"""Spent share of a run's budgets, and the time left at the rate of its last generations."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from neuroevo.config.schema import Training

_GENERATIONS = 10  # from which the rate is estimated, since generations change in length as agents learn


def share_done(training: Training, row: Mapping[str, Any]) -> float:
    """Return the completed share of a run.

    Args:
        training: The run's budgets. The target is ignored, since it is unknown when the run will reach it.
        row: Row of the last generation, in the format of Record.row().

    Returns:
        The largest spent share of the budgets, in [0, 1].
    """
    spent = [
        (row["generation"] + 1) / training.generations if training.generations else 0.0,
        row["steps_total"] / training.total_steps if training.total_steps else 0.0,
        row["seconds_total"] / 60 / training.minutes if training.minutes else 0.0,
    ]
    return min(max(spent), 1.0)


class TimeLeft:
    """Estimator of the time until one of a run's budgets is spent."""

    def __init__(self, training: Training):
        """Create an estimator without any generation.

        Args:
            training: The run's budgets.
        """
        self._training = training
        self._last: deque[tuple[float, float]] = deque(maxlen=_GENERATIONS + 1)  # seconds and share

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a generation.

        Args:
            row: The generation's row, in the format of Record.row().
        """
        self._last.append((row["seconds_total"], share_done(self._training, row)))

    def seconds(self) -> float | None:
        """Return the estimated wall time after the last added generation, in seconds; None if it is unknown."""
        if not self._last:
            return None
        (before, share_before), (now, share) = (0.0, 0.0) if len(self._last) == 1 else self._last[0], self._last[-1]
        if share >= 1:
            return 0.0
        return (1 - share) * (now - before) / (share - share_before) if share > share_before else None
