"""The folder of a run: what it holds, how it grows, and how a run goes on from it.

config.toml     the configuration with every default filled in
reference.npy   the reference batch of a network with virtual batch normalization, see reference
info.json       command, seed, environment, versions, git commit, machine; the same of every time the run was resumed
metrics.jsonl, metrics.csv, elites.jsonl    a line per finished generation, see metrics_files
checkpoints/, journal.bin   what the run can go on from, see checkpoints; and of the generation in progress, see journal
tensorboard/    event files
own/            the source of the user's own modules that the configuration names
signature.json  with these, or with a robot's model of the user's own: that this user made the run, see config.signature
log.txt         what happened when
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError, cannot_write
from neuroevo.runs import reference_file
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints, Unusable, set_aside
from neuroevo.runs.folder_lock import open_locked
from neuroevo.runs.fork import FORKED, Fork, prepare, write_history, write_snapshot
from neuroevo.runs.info_file import read_info, write_info
from neuroevo.runs.log_file import close_log, open_log
from neuroevo.runs.metrics_files import MetricsFiles
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.needed_files import write_missing
from neuroevo.runs.new_folder import check_free, default_path, make_default
from neuroevo.runs.own_modules import keep_sources, sign
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, INFO, LOG, REFERENCE, check_names, sweep
from neuroevo.runs.provenance import provenance
from neuroevo.runs.resume import prepare_resume
from neuroevo.runs.tensorboard import TensorBoardWriter
from neuroevo.runs.warm_start import first_reference, first_state
from neuroevo.system.directory import Directory, make_folder
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
        directory: The folder, open and locked since resume() or open().
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
        self._told: list[str] = []  # sentences for the log and for who looks on
        self._own = True  # what it names is this user's own, or trusted
        self._default_name: str | None = None
        self._fork: Fork | None = None
        self._checkpoints: Checkpoints  # this and the next since open()
        self._metrics: MetricsFiles
        self.directory: Directory
        self._open = ExitStack()  # closes what is open
        self._tensorboard: TensorBoardWriter | None = None

    @property
    def state(self) -> TrainState:
        """The state that the next generation starts from."""
        return self._after[0]

    @classmethod
    def create(cls, path: Path | str | None, config: Config, name: str = "run", *, trust: bool = False) -> RunFolder:
        """Prepares a new run; writes nothing yet.

        Args:
            path: The run's folder; None for runs/NAME-TIME, chosen when the folder is opened, so that no two
                runs share one.
            config: The run's configuration.
            name: What the run is called if `path` is None.
            trust: Whether to run code and read models that the run to start from names, whoever made it.

        Returns:
            The folder.

        Raises:
            UserError: The folder holds a run, or the run to start from cannot be used.
        """
        if path is not None:
            check_free(path)
        state, reference_batch = first_state(config, trust), first_reference(config, trust)
        folder = cls(Path(path or default_path(name)), config, state, None, reference_batch)
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
        *,
        trust: bool = False,
    ) -> RunFolder:
        """Prepares a new run that goes on from another's checkpoint with other values of keys; writes nothing yet.

        Args:
            path: The new run's folder, which will begin with the other run's rows, elites and checkpoint.
            source: The folder of the other run, which may be going on.
            overrides: Changes to its configuration, such as "algorithm.sigma=0.01"; neuroevo.runs.fork has which.
            config: A configuration to use instead of the other run's own with `overrides`.
            generation: After how many generations they part; None for the other run's newest usable checkpoint.
            trust: Whether to run code and read models that the other run names, whoever made it.

        Returns:
            The folder.

        Raises:
            UserError: The folder holds a run, there is no such run or checkpoint, or a key cannot have another value.
        """
        made = prepare(Path(path), source, overrides, config, generation, trust)
        folder = cls(Path(path), made.config, made.state, None, made.reference_batch)
        folder._fork = made
        return folder

    @classmethod
    def resume(
        cls, path: Path | str, overrides: Sequence[str] = (), config: Config | None = None, *, trust: bool = False
    ) -> RunFolder:
        """Prepares to go on with a run from its newest usable checkpoint; writes nothing yet.

        Args:
            path: The run's folder, which is locked from now on.
            overrides: Changes to the run's own configuration, such as "training.generations=9"; neuroevo.runs.resume
                has which.
            config: A configuration to use instead of the run's own with `overrides`.
            trust: Whether to run code and read models that the run names, whoever made it. It counts as made here from
                then on.

        Returns:
            The folder.

        Raises:
            NotTrustedError: The run names what is not the package's, and is not trusted: docs/security.md.
            UserError: There is no run or no usable checkpoint, another version of neuroevo made the run, another
                process trains into the folder, or a change of the configuration would change results.
        """
        made = prepare_resume(Path(path), overrides, config, trust)
        folder = cls(Path(path), made.config, made.checkpoint.state, made.checkpoint.lengths, made.reference_batch)
        folder.unusable, folder._told, folder._own = made.unusable, made.changed, made.own
        folder.directory = folder._open.enter_context(made.folder)
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
            UserError: The folder may not be written, or what is to be written there is a link.
        """
        try:
            (self._begin if self._after[1] is None else self._go_on)(command, extra or {})
            first = self.state.generation - len(self.state.pending)
            if "tensorboard" in self.config.logging.trackers:
                rows = read_rows(self.path) if first else []
                frame = rows[-1]["frames_total"] + 1 if rows else 0
                self._tensorboard = TensorBoardWriter(self.directory, self.config.tables(), first, frame)
                self._open.callback(self._tensorboard.close)
            self._open.callback(close_log, open_log(self.directory))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise cannot_write(f"to the run folder {self.path}", error) from error
            raise
        for unusable in self.unusable:
            log.warning("passed over %s", unusable)
        for told in self._told:
            log.warning("%s", told)
            print(f"neuroevo: {told}", file=sys.stderr, flush=True)
        return self

    def add(
        self, state: TrainState, records: Sequence[Record], before_checkpoint: Callable[[], None] | None = None
    ) -> bool:
        """Writes complete records, and a checkpoint of the state when one is due; returns whether it was.

        Args:
            state: The state after a generation.
            records: Records that became complete, oldest first.
            before_checkpoint: Makes other files durable, which are not to lack what the checkpoint has.

        Raises:
            DiskError: The disk is full, for example, or somebody has deleted or changed what the run had written.
        """
        try:
            self.directory.check_path()
            with deferred_signals():  # a generation with a row is never played again
                self._after = state, self._metrics.append(records)
                self._metrics.append_csv(records)
                for record in records:
                    if self._tensorboard is not None:
                        self._tensorboard.add(record)
            for path in write_missing(self.directory, self.config, self.reference_batch):
                log.warning("%s was deleted meanwhile; it is written again", path)
            if due := self._checkpoints.due(state.generation) or spent(state, self.config.training) is not None:
                if before_checkpoint is not None:
                    before_checkpoint()
                self._save()
        except OSError as error:
            raise DiskError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        for record in records:
            log.info("%s", describe(record))
        return due

    def save(self) -> None:
        """Writes a checkpoint of the last finished generation, if there is none yet and if that is possible."""
        with suppress(OSError, DiskError, UserError):  # only called when something else has ended the run
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
        self._checkpoints.save(self.directory, Checkpoint(state, self.origin, lengths))

    def close(self) -> None:
        """Closes the files and unlocks the folder."""
        with suppress(OSError, DiskError):  # every generation was written
            self._open.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, command: Sequence[str], extra: Mapping[str, Any]) -> None:
        if self._default_name is not None:
            self.path = make_default(self.path, self._default_name)
        make_folder(self.path)
        self.directory = directory = self._open.enter_context(open_locked(self.path))
        check_free(self.path)
        check_names(directory)
        sweep(directory)
        for stale in (INFO, LOG, REFERENCE):  # of a run that was killed before it had a configuration
            directory.remove(stale)
        self._checkpoints = Checkpoints(self.path / CHECKPOINTS, self.config.checkpoints)
        forked = {} if self._fork is None else {FORKED: self._fork.provenance}
        info = {"seed": self.config.training.seed, "environment": self.config.environment.settings(), **forked, **extra}
        info |= reference_file.checksum(self.reference_batch) | keep_sources(self.config, directory)
        write_info(directory, {**provenance(command), **info, "resumed": []})
        lengths = None if self._fork is None else write_history(self._fork, directory)
        self._metrics = self._open.enter_context(closing(MetricsFiles(directory, lengths)))
        self._after = self.state, self._metrics.lengths
        self._save()
        self._told += sign(directory, self.config)
        directory.flush()
        # Last: with it the folder is a run, and everything that resuming needs is there, also after a power failure.
        write_missing(directory, self.config, self.reference_batch)

    def _go_on(self, command: Sequence[str], extra: Mapping[str, Any]) -> None:
        directory = self.directory
        sweep(directory)
        self._checkpoints = Checkpoints(self.path / CHECKPOINTS, self.config.checkpoints)
        for unusable in self.unusable:
            set_aside(directory, unusable)
        self._checkpoints.tidy(directory, self.state)
        self._metrics = self._open.enter_context(closing(MetricsFiles(directory, self._after[1])))
        info = read_info(self.path)
        again = {**provenance(command), **extra, "generation": self.state.generation}
        write_info(directory, {**info, "resumed": [*info.get("resumed", []), again]})
        if self._own:
            self._told += sign(directory, self.config)
        directory.write(CONFIG, self.config.toml().encode())
