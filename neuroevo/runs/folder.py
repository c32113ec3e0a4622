"""The folder of a run: what it holds, how it grows, and how a run goes on from it.

config.toml     the configuration with every default filled in
reference.npy   the reference batch of a network with virtual batch normalization, see reference
info.json       command, seed, versions, git commit, machine, and the same of every time the run was resumed
metrics.jsonl, metrics.csv, elites.jsonl    a line per finished generation, see metrics_files
checkpoints/    what the run can go on from, see checkpoints
tensorboard/    event files
log.txt         what happened when
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError, cannot_write
from neuroevo.runs import reference_file
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints, Unusable, generations, set_aside
from neuroevo.runs.metrics_files import MetricsFiles, check
from neuroevo.runs.other_versions import refuse_other_versions
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, INFO, LOG, METRICS, REFERENCE, TENSORBOARD
from neuroevo.runs.provenance import provenance
from neuroevo.runs.resume_checks import check_changes
from neuroevo.runs.tensorboard import TensorBoardWriter
from neuroevo.runs.warm_start import first_reference, first_state
from neuroevo.system.files import write_atomically
from neuroevo.training.loop import TrainState, spent
from neuroevo.training.record import Record, describe

log = logging.getLogger("neuroevo")


class RunFolder:
    """A run's folder while the run goes. Make it with create() or resume(), then open() it; close() it at the end.

    reference_batch: observations that the network's vbn layers take statistics of, [128, ...]; None where it has none.
    unusable: newer checkpoints that resume() passed over.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        state: TrainState,
        lengths: Mapping[str, int] | None,
        reference_batch: np.ndarray | None = None,
    ):
        self.path, self.config, self.reference_batch = path, config, reference_batch
        self._origin = config.origin()  # now: a file may become another one while the run goes
        # One attribute, so that an interruption never finds the state of one generation with the lengths of another.
        self._after = state, lengths
        self.unusable: list[Unusable] = []
        self._default_name: str | None = None
        self._checkpoints: Checkpoints | None = None
        self._lock: int | None = None
        self._handler: logging.Handler | None = None
        self._tensorboard: TensorBoardWriter | None = None

    @property
    def state(self) -> TrainState:
        """What the next generation starts from."""
        return self._after[0]

    @classmethod
    def create(cls, path: Path | str | None, config: Config, name: str = "run") -> RunFolder:
        """A new run's folder; nothing is written yet. UserError: it holds a run, or there is nothing to start from.

        path: None for runs/<name>-<local time>, which is settled when it is opened, so that no two runs share one.
        """
        if path is not None:
            check_free(path)
        folder = cls(Path(path or default_path(name)), config, first_state(config), None, first_reference(config))
        folder._default_name = name if path is None else None
        return folder

    @classmethod
    def resume(cls, path: Path | str, overrides: Sequence[str] = (), config: Config | None = None) -> RunFolder:
        """The folder of a run that is to go on from its newest checkpoint that can be used; nothing is written yet.

        config: instead of the run's own with `overrides`; both may change only what results do not depend on: budgets,
        [hardware], [checkpoints], workers and timeout of environments of Gymnasium, and where a file of an environment
        is, if it is still the same.
        UserError: there is no run, no such checkpoint, another process is at it, or a change would change results.
        """
        path = Path(path)
        if not (path / CONFIG).is_file():
            raise UserError(f"there is no run in {path}: expected {path / CONFIG}")
        lock = _locked(path)
        try:
            refuse_other_versions(path)
            config = config or load_config(path / CONFIG, overrides)
            check_changes(path / CONFIG, config)
            checkpoints = Checkpoints(path / CHECKPOINTS, config.checkpoints)
            checkpoints.check_file(config)
            checkpoint, unusable = checkpoints.newest(
                config.algorithm.state_type, config.origin(), lambda checkpoint: _check_files(path, checkpoint.lengths)
            )
            if checkpoint is None:
                found = "".join(f"\n  {each}" for each in unusable) or f" ({checkpoints.folder} has none)"
                raise UserError(f"{path} has no checkpoint to go on from:{found}")
            batch = reference_file.load(path, config)
        except BaseException:
            os.close(lock)
            raise
        folder = cls(path, config, checkpoint.state, checkpoint.lengths, batch)
        folder.unusable, folder._lock = unusable, lock
        return folder

    def open(self, command: Sequence[str], extra: Mapping[str, Any] | None = None) -> RunFolder:
        """Writes the start of a run, or cuts the files back to where it goes on; info.json gets `extra` keys too.

        UserError: the folder may not be written. DiskError: the disk is full, for example.
        """
        try:
            if self._after[1] is None:
                self._begin(command, extra or {})
            else:
                self._go_on(command, extra or {})
            tables = {
                f"{name}.{key}": value for name, keys in self.config.tables().items() for key, value in keys.items()
            }
            self._tensorboard = TensorBoardWriter(
                self.path / TENSORBOARD, tables, self.state.generation - len(self.state.pending)
            )
            self._handler = _LogFile(self.path / LOG, encoding="utf-8")
        except OSError as error:
            self.close()
            raise cannot_write(f"to the run folder {self.path}", error) from error
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(self._handler)
        log.setLevel(logging.INFO)
        log.propagate = False
        for unusable in self.unusable:
            log.warning("passed over %s", unusable)
        return self

    def add(self, state: TrainState, records: Sequence[Record]) -> None:
        """Writes the records that are complete, and a checkpoint of the state when one is due.

        DiskError: the disk is full, for example; the run can be resumed from the newest checkpoint.
        """
        try:
            for record in records:
                self._metrics.append(record)
            self._after = state, self._metrics.lengths
            if self._checkpoints.due(state.generation) or spent(state, self.config.training):
                self._save()
            for record in records:
                self._tensorboard.add(record)
        except OSError as error:
            raise DiskError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        for record in records:
            log.info("%s", describe(record))

    def save(self) -> None:
        """Writes a checkpoint of the last finished generation, if there is none yet and if that is possible."""
        with suppress(OSError):  # only called when something else has ended the run
            self._save()

    def _save(self) -> None:
        state, lengths = self._after
        self._metrics.flush()
        self._checkpoints.save(Checkpoint(state, self._origin, lengths))

    def close(self) -> None:
        """Closes the files and lets other processes have the folder."""
        with suppress(OSError):  # every generation was flushed
            if self._tensorboard is not None:
                self._tensorboard.close()
        with suppress(OSError):
            if self._handler is not None:
                log.removeHandler(self._handler)
                self._handler.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, command: Sequence[str], extra: Mapping[str, Any]) -> None:
        while self._default_name is not None:
            try:
                self.path.mkdir(parents=True)
                break
            except FileExistsError:
                self.path = default_path(self._default_name)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.path)
        check_free(self.path)
        for stale in (INFO, LOG, REFERENCE):  # of a run that was killed before it had a configuration
            (self.path / stale).unlink(missing_ok=True)
        self._checkpoints = Checkpoints(self.path / CHECKPOINTS, self.config.checkpoints)
        self._metrics = MetricsFiles(self.path)
        self._after = self.state, self._metrics.lengths
        info = {
            **provenance(command),
            "seed": self.config.training.seed,
            **reference_file.checksum(self.reference_batch),
            **extra,
        }
        self._write_info({**info, "resumed": []})
        if self.reference_batch is not None:
            reference_file.save(self.path, self.reference_batch)
        self._save()
        # Last: with it the folder is a run, and everything that resuming needs is there.
        write_atomically(self.path / CONFIG, self.config.toml().encode())

    def _go_on(self, command: Sequence[str], extra: Mapping[str, Any]) -> None:
        self._checkpoints = Checkpoints(self.path / CHECKPOINTS, self.config.checkpoints)
        for unusable in self.unusable:
            set_aside(unusable)
        self._metrics = MetricsFiles(self.path, self._after[1])
        info = read_info(self.path)
        again = {**provenance(command), **extra, "generation": self.state.generation}
        self._write_info({**info, "resumed": [*info.get("resumed", []), again]})
        write_atomically(self.path / CONFIG, self.config.toml().encode())

    def _write_info(self, info: Mapping[str, Any]) -> None:
        write_atomically(self.path / INFO, (json.dumps(info, indent=2) + "\n").encode())


class _LogFile(logging.FileHandler):
    """A log file that says nothing when it cannot be written: what else fails on a full disk is reported."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        pass


def check_free(path: Path | str) -> None:
    """UserError when a run is in the folder already or `path` is a file."""
    if Path(path).exists() and not Path(path).is_dir():
        raise UserError(f"{path} is a file, expected a folder or nothing")
    if (Path(path) / CONFIG).exists():
        raise UserError(
            f"{path} already holds a run; go on with it by --resume {path}, or give another folder with --out"
        )
    metrics = Path(path) / METRICS
    if metrics.is_file() and metrics.stat().st_size:  # a start that was killed leaves it empty
        raise UserError(f"{path} holds {METRICS} of a run without its {CONFIG}; give another folder with --out")
    if any(generation > 0 for generation in generations(Path(path) / CHECKPOINTS)):  # likewise
        raise UserError(f"{path} holds checkpoints of a run without its {CONFIG}; give another folder with --out")


def read_info(path: Path) -> dict[str, Any]:
    """info.json of a run; nothing where it is missing or damaged, since nothing depends on it."""
    try:
        info = json.loads((path / INFO).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) and isinstance(info.get("resumed"), list) else {}


def default_path(name: str) -> Path:
    """runs/<name>-<local time>, not there yet."""
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, again = Path("runs") / stem, 2
    while path.exists():
        path, again = Path("runs") / f"{stem}-{again}", again + 1
    return path


def _locked(path: Path) -> int:
    """A descriptor that keeps other processes from training into the folder until it is closed or the process ends."""
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UserError(f"another process is training into {path}") from None
    except OSError:
        log.debug("the file system of %s has no locks", path)
    return lock


def _check_files(path: Path, lengths: Mapping[str, int]) -> None:
    """ValueError when the metrics files are not those that a checkpoint remembers."""
    try:
        check(path, lengths)
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"remembers other files: {error}") from None
