"""The folder of a run: what it holds, how it grows, and how a run goes on from it.

config.toml     the configuration with every default filled in
reference.npy   the reference batch of a network with virtual batch normalization, see reference
info.json       command, seed, environment, versions, git commit, machine; the same of every time the run was resumed
metrics.jsonl, metrics.csv, elites.jsonl    a line per finished generation, see metrics_files
checkpoints/, journal.bin   what the run can go on from, see checkpoints; and of the generation in progress, see journal
tensorboard/    event files
own/            the source of the user's own modules that the configuration names
log.txt         what happened when
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, cannot_write
from neuroevo.runs import reference_file
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints, Unusable, set_aside
from neuroevo.runs.folder_lock import lock_folder
from neuroevo.runs.fork import FORKED, Fork, prepare, write_history, write_snapshot
from neuroevo.runs.info_file import read_info, write_info
from neuroevo.runs.log_file import close_log, open_log
from neuroevo.runs.metrics_files import MetricsFiles, read_rows
from neuroevo.runs.new_folder import check_free, default_path, make_default
from neuroevo.runs.own_modules import keep_sources
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, INFO, LOG, REFERENCE, TENSORBOARD
from neuroevo.runs.provenance import provenance
from neuroevo.runs.resume import prepare_resume
from neuroevo.runs.tensorboard import TensorBoardWriter
from neuroevo.runs.warm_start import first_reference, first_state
from neuroevo.system.files import write_atomically
from neuroevo.system.signals import deferred_signals
from neuroevo.training.record import Record, describe
from neuroevo.training.state import TrainState, spent

log = logging.getLogger("neuroevo")


class RunFolder:
    """A run's folder while the run goes on: made by `create` or `resume`, then opened, and closed at the end.

    Attributes:
        path: The folder.
        config: The run's configuration.
        reference_batch: Observations that the network's vbn layers take statistics of, [128, ...]; None without such
            layers.
        unusable: Newer checkpoints that `resume` passed over.
        origin: What of the configuration results depend on.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        state: TrainState,
        lengths: Mapping[str, int] | None,
        reference_batch: np.ndarray | None = None,
    ):
        """Writes nothing; use `create` or `resume`.

        Args:
            path: The folder.
            config: The run's configuration.
            state: What the next generation starts from.
            lengths: Bytes of the run's files to keep; None for a new run.
            reference_batch: See the class.
        """
        self.path, self.config, self.reference_batch = path, config, reference_batch
        self.origin = config.origin()  # now: a file may become another one while the run goes
        # One attribute, so that an interruption never finds the state of one generation with the lengths of another.
        self._after = state, lengths
        self.unusable: list[Unusable] = []
        self._changed: list[str] = []  # sentences about the user's own modules
        self._default_name: str | None = None
        self._fork: Fork | None = None
        self._checkpoints: Checkpoints  # this and the next since open()
        self._metrics: MetricsFiles
        self._lock: int | None = None
        self._handler: logging.Handler | None = None
        self._tensorboard: TensorBoardWriter | None = None

    @property
    def state(self) -> TrainState:
        """The state that the next generation starts from."""
        return self._after[0]

    @classmethod
    def create(cls, path: Path | str | None, config: Config, name: str = "run") -> RunFolder:
        """Prepares a new run; writes nothing yet.

        Args:
            path: The run's folder; None for runs/<name>-<local time>, chosen when the folder is opened, so that no two
                runs share one.
            config: The run's configuration.
            name: What the run is called if `path` is None.

        Returns:
            The folder.

        Raises:
            UserError: The folder holds a run, or the run to start from cannot be used.
        """
        if path is not None:
            check_free(path)
        folder = cls(Path(path or default_path(name)), config, first_state(config), None, first_reference(config))
        folder._default_name = name if path is None else None
        return folder

    @classmethod
    def fork(
        cls,
        path: Path | str,
        source: Path | str,
        overrides: Sequence[str] = (),
        config: Config | None = None,
        generation: int | None = None,
    ) -> RunFolder:
        """Prepares a new run that goes on from another's checkpoint with other values of keys; writes nothing yet.

        Args:
            path: The new run's folder, which will begin with the other run's rows, elites and checkpoint.
            source: The folder of the other run, which may be going on.
            overrides: Changes to its configuration, such as "algorithm.sigma=0.01"; neuroevo.runs.fork has which.
            config: A configuration to use instead of the other run's own with `overrides`.
            generation: After how many generations they part; None for the other run's newest usable checkpoint.

        Returns:
            The folder.

        Raises:
            UserError: The folder holds a run, there is no such run or checkpoint, or a key cannot have another value.
        """
        made = prepare(Path(path), source, overrides, config, generation)
        folder = cls(Path(path), made.config, made.state, None, made.reference_batch)
        folder._fork = made
        return folder

    @classmethod
    def resume(cls, path: Path | str, overrides: Sequence[str] = (), config: Config | None = None) -> RunFolder:
        """Prepares to go on with a run from its newest usable checkpoint; writes nothing yet.

        Args:
            path: The run's folder, which is locked from now on.
            overrides: Changes to the run's own configuration, such as "training.generations=9"; neuroevo.runs.resume
                has which.
            config: A configuration to use instead of the run's own with `overrides`.

        Returns:
            The folder.

        Raises:
            UserError: There is no run or no usable checkpoint, another version of neuroevo made the run, another
                process trains into the folder, or a change of the configuration would change results.
        """
        made = prepare_resume(Path(path), overrides, config)
        folder = cls(Path(path), made.config, made.checkpoint.state, made.checkpoint.lengths, made.reference_batch)
        folder.unusable, folder._lock, folder._changed = made.unusable, made.lock, made.changed
        return folder

    def open(self, command: Sequence[str], extra: Mapping[str, Any] | None = None) -> RunFolder:
        """Writes the start of a run, or cuts the files back to where it goes on.

        Args:
            command: The command line that started the run, for info.json.
            extra: Other keys of info.json.

        Returns:
            This folder.

        Raises:
            DiskError: The disk is full, for example.
            UserError: The folder may not be written.
        """
        try:
            if self._after[1] is None:
                self._begin(command, extra or {})
            else:
                self._go_on(command, extra or {})
            first = self.state.generation - len(self.state.pending)
            if "tensorboard" in self.config.logging.trackers:
                rows = read_rows(self.path) if first else []
                frame = rows[-1]["frames_total"] + 1 if rows else 0
                self._tensorboard = TensorBoardWriter(self.path / TENSORBOARD, self.config.tables(), first, frame)
            self._handler = open_log(self.path / LOG)
        except OSError as error:
            self.close()
            raise cannot_write(f"to the run folder {self.path}", error) from error
        for unusable in self.unusable:
            log.warning("passed over %s", unusable)
        for changed in self._changed:
            log.warning("%s", changed)
            print(f"neuroevo: {changed}", file=sys.stderr, flush=True)
        return self

    def add(self, state: TrainState, records: Sequence[Record]) -> bool:
        """Writes complete records, and a checkpoint of the state when one is due; returns whether it was.

        Args:
            state: The state after a generation.
            records: Records that became complete, oldest first.

        Raises:
            DiskError: The disk is full, for example; the run can be resumed from the newest checkpoint.
        """
        assert self._after[1] is not None, "open() comes first"
        try:
            with deferred_signals():  # a generation with a row is never played again
                for record in records:
                    self._metrics.append(record)
                    if self._tensorboard is not None:
                        self._tensorboard.add(record)
                self._after = state, self._metrics.lengths
            if due := self._checkpoints.due(state.generation) or spent(state, self.config.training) is not None:
                self._save()
        except OSError as error:
            raise DiskError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        for record in records:
            log.info("%s", describe(record))
        return due

    def save(self) -> None:
        """Writes a checkpoint of the last finished generation, if there is none yet and if that is possible."""
        with suppress(OSError):  # only called when something else has ended the run
            self._save()

    def snapshot(self, into: Path) -> None:
        """Copies the open run as it is now into a folder that is a run, too, and can be forked.

        Args:
            into: The folder, without a run.

        Raises:
            OSError: It cannot be written.
        """
        write_snapshot(self.path, Checkpoint(self.state, self.origin, self._metrics.lengths), into)

    def _save(self) -> None:
        state, lengths = self._after
        assert lengths is not None, "open() comes first"
        self._metrics.flush()
        self._checkpoints.save(Checkpoint(state, self.origin, lengths))

    def close(self) -> None:
        """Closes the files and unlocks the folder."""
        with suppress(OSError):  # every generation was flushed
            if self._tensorboard is not None:
                self._tensorboard.close()
        close_log(self._handler)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, command: Sequence[str], extra: Mapping[str, Any]) -> None:
        if self._default_name is not None:
            self.path = make_default(self.path, self._default_name)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(self.path)
        check_free(self.path)
        for stale in (INFO, LOG, REFERENCE):  # of a run that was killed before it had a configuration
            (self.path / stale).unlink(missing_ok=True)
        self._checkpoints = Checkpoints(self.path / CHECKPOINTS, self.config.checkpoints)
        forked = {} if self._fork is None else {FORKED: self._fork.provenance}
        info = {"seed": self.config.training.seed, "environment": self.config.environment.settings(), **forked, **extra}
        info |= reference_file.checksum(self.reference_batch) | keep_sources(self.config, self.path)
        write_info(self.path, {**provenance(command), **info, "resumed": []})
        self._metrics = MetricsFiles(self.path, None if self._fork is None else write_history(self._fork, self.path))
        self._after = self.state, self._metrics.lengths
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
        write_info(self.path, {**info, "resumed": [*info.get("resumed", []), again]})
        write_atomically(self.path / CONFIG, self.config.toml().encode())
