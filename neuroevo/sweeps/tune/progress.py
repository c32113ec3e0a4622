"""Follows Tune: keeps the ledger up to date, and tells the sweep's watcher."""

from __future__ import annotations

from typing import Any

from ray import tune

from neuroevo.sweeps.tune.ledger import Ledger, Trial
from neuroevo.sweeps.tune.points import with_seed
from neuroevo.sweeps.tune.sweep import Sweep
from neuroevo.sweeps.tune.trainable import NUMBER, TRIAL
from neuroevo.sweeps.tune.watcher import SweepWatcher


class LedgerCallback(tune.Callback):
    """What Tune calls in the sweep's own process."""

    def __init__(self, sweep: Sweep, ledger: Ledger, watcher: SweepWatcher):
        """Args: the sweep, its trials, and who hears of them."""
        self._sweep, self._ledger, self._watcher = sweep, ledger, watcher
        self._finished: set[int] = set()

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A trial's process has it."""
        self._watcher.started(self._update(trial, status="running", reason=""))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        """A generation is finished."""
        known = self._update(trial, status="running", folder=result["folder"])
        if result["finished"]:
            self._finished.add(known.number)
        self._watcher.result(known, result)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A trial is over."""
        finished = trial.config[TRIAL][NUMBER] in self._finished or trial.last_result.get("finished")
        self._watcher.ended(self._update(trial, status="finished" if finished else "stopped"))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A trial has failed for good."""
        self._watcher.ended(self._update(trial, status="failed", reason=_reason(trial)))

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """A round of Tune's loop."""
        self._watcher.tick()

    def _update(self, trial: Any, **changes: Any) -> Trial:
        own = dict(trial.config[TRIAL])
        number = own.pop(NUMBER)
        if number not in self._ledger.trials:
            self._ledger.trials[number] = Trial(number, with_seed(own, self._sweep.tables, self._sweep.seed, number))
        return self._ledger.update(number, values=own, **changes)


def _reason(trial: Any) -> str:
    """Why a trial failed, in a line: the exception's own words are the last line of its traceback."""
    error = trial.get_error() if hasattr(trial, "get_error") else None
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip()]
    return lines[-1] if lines else "its process died"
