"""Experiment trackers: callbacks that send a run's metrics to Weights & Biases or to MLflow.

The trackers are configured by their own environment variables: WANDB_MODE=offline, WANDB_ENTITY,
MLFLOW_TRACKING_URI=sqlite:///mlflow.db, and so on. A resumed run continues the tracker's run, whose id is stored in
trackers.json in the run's folder. If a tracker fails during training, the failure is reported once, and the run
continues without the tracker.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import override

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError, shortened
from neuroevo.core.extras import require
from neuroevo.system.files import write_atomically
from neuroevo.system.reading import parse_json, read_regular
from neuroevo.training.callback import Callback
from neuroevo.training.record import Record

log = logging.getLogger("neuroevo")
_KEPT = "trackers.json"


class Tracker(Callback):
    """Base class of the trackers.

    Args:
        project: The wandb project or MLflow experiment; None for the configuration's logging.project.
    """

    package = ""  # required package, also the name of the extra

    def __init__(self, project: str | None = None):
        self._project = project
        self._failed = False

    @override
    def begin(self, config: Config, folder: Path, generation: int) -> None:
        require(self.package, self.package)
        kept = _kept(folder)
        parameters = {
            f"{section}.{key}": list(value) if isinstance(value, tuple) else value
            for section, table in config.tables().items()
            for key, value in table.items()
        }
        try:
            run = self._start(self._project or config.logging.project, folder, parameters, kept.get(self.package))
        except Exception as error:
            raise UserError(f"the tracker {self.package} cannot be started: {error}") from error
        self._failed = False
        write_atomically(folder / _KEPT, json.dumps({**kept, self.package: run}, indent=2).encode() + b"\n")

    @override
    def generation(self, record: Record) -> None:
        row = record.row()
        numbers = {name: value for name, value in row.items() if isinstance(value, (int, float))}
        self._try(lambda: self._log(record.generation, numbers))

    @override
    def end(self, error: BaseException | None) -> None:
        self._try(lambda: self._finish(error))

    def _try(self, send: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            send()
        except Exception as error:  # external code, whose failure must not end the run
            self._failed = True
            reason = shortened(" ".join(f"{type(error).__name__}: {error}".split()))
            log.warning("the tracker %s failed; the run continues without it: %s", self.package, reason)
            told = f"neuroevo: the tracker {self.package} failed; the run continues without it: {reason}"
            print(told, file=sys.stderr, flush=True)

    @abstractmethod
    def _start(self, project: str, folder: Path, parameters: dict[str, Any], run: str | None) -> str:
        """Start a run of the tracker, or continue the run with the id `run`; return its id."""

    @abstractmethod
    def _log(self, generation: int, numbers: dict[str, float]) -> None:
        """Log the metrics of a finished generation."""

    @abstractmethod
    def _finish(self, error: BaseException | None) -> None:
        """End the tracker's run."""


class WandbTracker(Tracker):
    """Tracker for Weights & Biases; generation, frames_total, steps_total or seconds_total may be the x axis."""

    package = "wandb"

    @override
    def _start(self, project: str, folder: Path, parameters: dict[str, Any], run: str | None) -> str:
        import wandb

        self._run = wandb.init(
            project=project, name=folder.name, dir=folder, config=parameters, id=run, resume="allow" if run else None
        )
        self._run.define_metric("*", step_metric="generation")  # records may arrive late
        return str(self._run.id)

    @override
    def _log(self, generation: int, numbers: dict[str, float]) -> None:
        self._run.log(numbers)

    @override
    def _finish(self, error: BaseException | None) -> None:
        self._run.finish(exit_code=0 if error is None else 1)


class MlflowTracker(Tracker):
    """Tracker for MLflow. A step is a generation; frames_total, steps_total and seconds_total are metrics."""

    package = "mlflow"

    @override
    def _start(self, project: str, folder: Path, parameters: dict[str, Any], run: str | None) -> str:
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient()
        if run is not None:
            self._client.set_terminated(run, "RUNNING")
            self._run = run
            return run
        experiment = self._client.get_experiment_by_name(project)
        number = self._client.create_experiment(project) if experiment is None else experiment.experiment_id
        self._run = str(self._client.create_run(number, run_name=folder.name).info.run_id)
        for name, value in parameters.items():
            self._client.log_param(self._run, name, value)
        return self._run

    @override
    def _log(self, generation: int, numbers: dict[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(name, float(value), now, generation) for name, value in numbers.items()]
        self._client.log_batch(self._run, metrics=metrics)

    @override
    def _finish(self, error: BaseException | None) -> None:
        status = "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        self._client.set_terminated(self._run, status)


TRACKERS: dict[str, type[Tracker]] = {"wandb": WandbTracker, "mlflow": MlflowTracker}


def trackers_of(config: Config) -> list[Tracker]:
    """Return the trackers in logging.trackers, except TensorBoard, whose files the run folder writes."""
    return [TRACKERS[name]() for name in config.logging.trackers if name in TRACKERS]


def _kept(folder: Path) -> dict[str, str]:
    """Return the ids of the trackers' runs. UserError: the file is malformed."""
    path = folder / _KEPT
    if not path.exists():
        return {}
    try:
        kept = parse_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    if not isinstance(kept, dict) or not all(isinstance(run, str) for run in kept.values()):
        raise UserError(f"{path} has {kept!r}, expected the ids of the trackers' runs")
    return kept
