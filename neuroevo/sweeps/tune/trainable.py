"""A trial for Ray Tune: a run folder and the pipeline that plays it, a generation a step.

For those who write Tune themselves:

    from ray import tune
    from neuroevo.sweeps import Trainable

    space = {
        "config": "inverted_pendulum",             # a preset, a file, or tables
        "out": "/home/me/runs/mine",               # the trials' run folders go here
        "algorithm.sigma": tune.loguniform(1e-3, 1e-1),
    }
    tuning = tune.TuneConfig(metric="validation_mean", mode="max", num_samples=8)
    tune.Tuner(Trainable, param_space=space, tune_config=tuning).fit()
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import tune

from neuroevo.config.schema import Config
from neuroevo.config.sources import read
from neuroevo.config.trust import is_of_run, require_trust
from neuroevo.core.errors import UserError
from neuroevo.networks.network import Network
from neuroevo.runs.folder import RunFolder, log
from neuroevo.runs.reader import RunReader
from neuroevo.runs.training_run import make_evaluator, make_shared_evaluator
from neuroevo.sweeps.tune.ledger import trial_name
from neuroevo.sweeps.tune.points import config_of
from neuroevo.sweeps.tune.trial_folder import begin, go_on_from
from neuroevo.training import loop
from neuroevo.training.record import Record
from neuroevo.training.state import TrainState, finished, spent

if TYPE_CHECKING:
    import numpy as np

    from neuroevo.runs.training_run import AnyEvaluator

# Of Tune's configuration: the values of a sweep's trial, which trial it is, and networks that share a pipeline.
TRIAL, NUMBER, SHARED = "trial", "number", "shared"


class Trainable(tune.Trainable):
    """Trains one run; keys of Tune's configuration that have a dot are keys of ours.

    A trial that Tune starts again, in this process or another, goes on from the newest state in its own folder. A
    checkpoint of Tune's is a snapshot of the run, which outlives what the run itself deletes; a trial that gets another
    trial's goes on as a fork, with its own configuration and seed.

    A result has the columns of metrics.csv, of which test_* are those of the newest elite that was evaluated, and
    `folder`, the run's folder, and `finished`, whether a budget is spent.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Reads the configuration; the folder and the pipeline are made at the first step.

        Args:
            config: See the module.
        """
        self._read(config)
        self._folder: RunFolder | None = None
        self._evaluator: AnyEvaluator | None = None
        self._plays: tuple[Any, ...] = ()
        self._generations: Iterator[tuple[TrainState, list[Record]]] | None = None
        self._test: dict[str, Any] = {}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Takes another trial's configuration; the next step keeps the pipeline if environment and network are equal.

        Args:
            new_config: See the module.

        Returns:
            True, since this process can play any configuration.
        """
        self._close_folder()
        self._read(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Plays a generation.

        Returns:
            Its result.
        """
        folder = self._opened()
        assert self._generations is not None
        before, row = folder.state.generation, None
        try:
            for state, records in self._generations:
                folder.add(state, records)
                for record in records:
                    self._test = {key: value for key, value in record.row().items() if key.startswith("test_")}
                if state.generation > before:
                    row = _row(state, records)
                    if spent(state, folder.config.training) is None:
                        break  # otherwise the last elites are waited for
        except BaseException as error:
            log.error("stopped in generation %d: %r", folder.state.generation, error)
            folder.save()
            raise
        if row is None:  # the run was over before this process had it
            row = RunReader(folder.path, like=self._wanted).rows(fitness=False)[-1]
        over = finished(folder.state, folder.config.training) is not None
        place = {"folder": str(folder.path), "finished": over, "done": over}
        return {**row, **self._test, **place, "training_iteration": folder.state.generation}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Writes a snapshot of the run.

        Args:
            checkpoint_dir: The folder for it.
        """
        self._opened().snapshot(Path(checkpoint_dir))

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Goes on from a snapshot, of this trial or another.

        Args:
            checkpoint: The snapshot's folder.
        """
        self._close_folder()
        self._open(go_on_from(self._path, self._wanted, Path(checkpoint)))

    def cleanup(self) -> None:
        """Store the state and end the pipeline."""
        self._close_folder()
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None

    def _read(self, config: Mapping[str, Any]) -> None:
        # Tune goes to a folder of its own; configurations may name files and modules from where the sweep began.
        os.chdir(os.environ.get("TUNE_ORIG_WORKING_DIR", "."))
        self._wanted, self._path = read_trial(config, self.trial_id or "trial")
        self._number, shared = config.get(TRIAL, {}).get(NUMBER, 0), config.get(SHARED)
        self._networks = None if shared is None else [Network(**table) for table in shared]
        self._command = config.get("command", ["neuroevo.sweeps.Trainable"])

    def _opened(self) -> RunFolder:
        if self._folder is None:
            self._open(begin(self._path, self._wanted))
        assert self._folder is not None
        return self._folder

    def _open(self, folder: RunFolder) -> None:
        config = folder.config
        plays = _plays(config, folder.reference_batch)
        if self._evaluator is not None and self._plays != plays:
            self._evaluator.close()
            self._evaluator = None
        if self._evaluator is None:
            self._evaluator, self._plays = self._make_evaluator(config, folder.reference_batch), plays
        known = self._evaluator
        extra = {"parameters": known.dimension, "actions": known.num_actions, "device": known.device}
        self._folder = folder.open(self._command, extra)
        self._test = {}
        self._generations = loop.train(config.algorithm, self._evaluator, config.training, folder.state, folder)
        log.info("a trial on the %s, from generation %d", known.device, folder.state.generation)

    def _make_evaluator(self, config: Config, reference_batch: np.ndarray | None) -> AnyEvaluator:
        # Every trial has its own statistics of a reference batch, and players have no accelerator.
        if self._networks is None or config.network.needs_reference or config.environment.accelerated:
            return make_evaluator(config, reference_batch)
        return make_shared_evaluator(config, self._networks, self._number)

    def _close_folder(self) -> None:
        if self._generations is not None:
            self._generations.close()  # type: ignore[attr-defined]
            self._generations = None
        if self._folder is not None:
            self._folder.save()
            self._folder.close()
            self._folder = None


def read_trial(config: Mapping[str, Any], name: str) -> tuple[Config, Path]:
    """Reads Tune's configuration of a trial.

    Args:
        config: See the module. A sweep's trials have their values in a table "trial", with their "number".
        name: What the trial's folder is called if it has no number.

    Returns:
        The trial's configuration, checked, and its first folder.

    Raises:
        UserError: A key is missing or the configuration has problems.
    """
    for key in ("config", "out"):
        if key not in config:
            raise UserError(f"the trial's configuration has no {key!r}, expected a configuration and a folder 'out'")
    source = config["config"]
    if not isinstance(source, Mapping) and is_of_run(source):
        require_trust(Path(source), trains=True)
    tables = source if isinstance(source, Mapping) else read(source).tables
    values = {key: value for key, value in config.items() if "." in key}
    own = dict(config.get(TRIAL, {}))
    number = own.pop(NUMBER, None)
    folder = Path(config["out"]).absolute() / (name if number is None else trial_name(number))
    return config_of(tables, {**values, **own}), folder


def _plays(config: Config, reference_batch: np.ndarray | None) -> tuple[Any, ...]:
    """What a pipeline is made of."""
    batch = None if reference_batch is None else reference_batch.tobytes()
    return config.tables()["env"], config.network, config.hardware, config.recorded_behavior, batch


def _row(state: TrainState, records: list[Record]) -> dict[str, Any]:
    """The columns of the newest generation, which mostly has no test yet."""
    newest = state.pending[-1].record if state.pending else records[-1]
    return newest.row_without_test()
