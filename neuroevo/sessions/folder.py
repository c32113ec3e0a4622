"""The folder of a run in training: creation, recording of generations, and resuming.

run.db          all data: docs/reference/database.md
config.toml     the configuration with all defaults filled in
metrics.csv     the metrics of each generation
tensorboard/    event files
own/            the source of the user's modules that the configuration references
log.txt         log messages with timestamps
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.own_modules import keep_sources, remember_own
from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError, cannot_write
from neuroevo.core.genome import Genome
from neuroevo.runs.about import About, read_about, write_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.episode_rows import EpisodeRows, forget_episodes
from neuroevo.runs.generation_rows import rows_of
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.paths import (
    CONFIG,
    TENSORBOARD,
    check_free,
    check_names,
    default_path,
    delete_temporary,
    is_run,
)
from neuroevo.runs.state_rows import Unusable, write_state
from neuroevo.runs.values import Number
from neuroevo.runs.writer import Writer, new_database
from neuroevo.sessions.fork import Fork, prepare, write_fork
from neuroevo.sessions.log_file import logged_to
from neuroevo.sessions.metrics_csv import CsvFile
from neuroevo.sessions.provenance import provenance
from neuroevo.sessions.recorder import Recorder
from neuroevo.sessions.resume import Resumed, cut_back, prepare_resume
from neuroevo.sessions.warm_start import first_state
from neuroevo.system.files import make_folder, write_atomically
from neuroevo.system.signals import deferred_signals
from neuroevo.training.callback import Callback
from neuroevo.training.record import Record
from neuroevo.training.state import TrainState, spent
from neuroevo.training.tensorboard import TensorBoardWriter

log = logging.getLogger("neuroevo")


class RunFolder(Callback):
    """Folder of a run in training: made by `create`, `fork` or `resume`, then opened, and closed at the end.

    As a callback of the training loop it records each population.

    Attributes:
        path: The folder.
        config: The run's configuration.
        state: The state that the next generation starts from.
        reference_batch: Observations from which the network's vbn layers compute statistics, [128, ...]; None without
            such layers.
        unusable: Newer states that `resume` skipped because they cannot be used.
        ended: Whether the last process that trained the run exited cleanly, not by a signal or a power failure.
        origin: The part of the configuration that results depend on.
    """

    def __init__(self, path: Path, config: Config, state: TrainState, reference_batch: np.ndarray | None = None):
        self.path, self.config, self.reference_batch = path, config, reference_batch
        self.state = state
        self.origin = config.origin()  # now, since the environment's file may be replaced during the run
        self.unusable: list[Unusable] = []
        self.ended = False
        self._default_name: str | None = None
        self._fork: Fork | None = None
        self._resumed: Resumed | None = None
        self._open = ExitStack()  # closes all open files
        self._place = path  # absolute since open(), like the attributes below
        self._database: Writer
        self._recorder: Recorder
        self._csv: CsvFile
        self._tensorboard: TensorBoardWriter | None = None
        self._saved: TrainState | None = None

    @classmethod
    def create(cls, path: Path | str | None, config: Config, name: str = "run", *, trust: bool = False) -> RunFolder:
        """Prepare a new run; write nothing yet.

        Args:
            path: The run's folder; None for runs/NAME-TIME, chosen when the folder is opened, so that no two
                runs share a folder.
            config: The run's configuration.
            name: NAME of the run if `path` is None.
            trust: Allow external code and models referenced by the run in training.start_from.

        Raises:
            UserError: The folder holds a run, or the run to start from cannot be used.
        """
        if path is not None:
            check_free(path)
        folder = cls(Path(path or default_path(name)), config, *first_state(config, trust))
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
        """Prepare a new run that continues from another run's state with a changed configuration; write nothing yet.

        Args:
            path: The new run's folder, which will start with the source run's generations and state.
            source: The folder of the source run, which may be in training.
            overrides: Changes to its configuration, such as "algorithm.sigma=0.01"; see neuroevo.sessions.fork.
            config: A configuration to use instead of the source run's configuration with `overrides`.
            generation: Number of generations to copy; None for the source run's newest usable state.
            trust: Allow external code and models referenced by the source run.

        Raises:
            UserError: The folder holds a run, the source run or state does not exist, or a key must not change.
        """
        made = prepare(Path(path), source, overrides, config, generation, trust)
        folder = cls(Path(path), made.config, made.stored.state, made.reference_batch)
        folder._fork = made
        return folder

    @classmethod
    def resume(
        cls, path: Path | str, overrides: Sequence[str] = (), config: Config | None = None, *, trust: bool = False
    ) -> RunFolder:
        """Prepare to continue a run from its newest usable state; write nothing yet.

        Args:
            path: The run's folder; the call locks it.
            overrides: Changes to the run's configuration, such as "training.generations=9"; see
                neuroevo.sessions.resume.
            config: A configuration to use instead of the run's configuration with `overrides`.
            trust: Allow external code and models referenced by the run, now and in later commands.

        Raises:
            NotTrustedError: The run references external code or models, and is not trusted: docs/security.md.
            UserError: There is no run or no usable state, another version of neuroevo made the run, another process
                trains in the folder, or a change of the configuration would change results.
        """
        folder = cls._resume(path, overrides, config, trust)
        folder.state = replace(folder.state, stopped="")
        return folder

    @classmethod
    def _resume(cls, path: Path | str, overrides: Sequence[str], config: Config | None, trust: bool) -> RunFolder:
        """Prepare to continue a run; a run that a callback has stopped stays finished."""
        made = prepare_resume(Path(path), overrides, config, trust)
        folder = cls(Path(path), made.config, made.stored.state, made.reference_batch)
        folder.unusable, folder.ended, folder._resumed = made.unusable, made.ended, made
        folder._open.callback(made.database.close)
        return folder

    @classmethod
    def resume_or_create(cls, path: Path | str, config: Config, *, trust: bool = False) -> RunFolder:
        """Prepare to continue the run in a folder, or to start a new run there; write nothing yet.

        Unlike with resume(), a run that a callback has stopped stays finished.

        The arguments and exceptions are those of create() and resume().
        """
        if is_run(Path(path)):
            return cls._resume(path, (), config, trust)
        return cls.create(path, config, trust=trust)

    def open(self, command: Sequence[str], extra: Mapping[str, Any] | None = None) -> RunFolder:
        """Write the start of a new run, or delete the generations after the state from which a run continues.

        Args:
            command: The command line that started the run.
            extra: Other values to record with it.

        Returns:
            This folder.

        Raises:
            DiskError: Writing failed, for example because the disk is full.
            UserError: The folder is not writable, or a file to be written is a link.
        """
        info = {**provenance(command), **(extra or {})}
        try:
            messages = self._begin(info) if self._resumed is None else self._continue(self._resumed, info)
            first = self.state.generation - len(self.state.pending)
            if "tensorboard" in self.config.logging.trackers:
                rows = rows_of(self._database, max(first - 1, 0), fitness=False)
                frame = rows[0]["frames_total"] + 1 if first and rows else 0
                self._tensorboard = TensorBoardWriter(self._place / TENSORBOARD, self.config.tables(), first, frame)
                self._open.callback(self._tensorboard.close)
            self._open.enter_context(logged_to(self._place))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise cannot_write(f"to the run folder {self.path}", error) from error
            raise
        for unusable in self.unusable:
            log.warning("skipped %s", unusable)
        for message in messages:
            log.warning("%s", message)
            print(f"neuroevo: {message}", file=sys.stderr, flush=True)
        return self

    @override
    def population(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:
        self._recorder.population(generation, played, steps, novelties)

    def add(self, state: TrainState, records: Sequence[Record]) -> None:
        """Store a finished generation in one transaction, which is durable when this returns.

        Args:
            state: The state after a generation.
            records: Records that became complete, oldest first.

        Raises:
            DiskError: Writing failed, for example because the disk is full, or the database was deleted or replaced.
        """
        try:
            with deferred_signals():
                due = state.generation % self.config.checkpoints.every == 0
                due = due or spent(state, self.config.training) is not None
                try:  # first: extra events are replaced when the run is resumed, missing ones are not
                    for record in records:
                        if self._tensorboard is not None:
                            self._tensorboard.add(record)
                finally:
                    with self._recorder.transaction():
                        self._recorder.add(state, records)
                        if due:
                            self._recorder.save(state)
                            forget_episodes(self._database)
                    self.state = state
                    self._saved = state if due else self._saved
                if records:
                    self._csv.append(rows_of(self._database, records[0].generation, fitness=False))
        except OSError as error:
            raise DiskError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        except UserError as error:
            raise DiskError(str(error)) from error
        for record in records:
            log.info("%s", record)

    def save(self) -> None:
        """Store the state after the last finished generation, unless it is already stored; ignore disk errors."""
        if self._saved is self.state:
            return
        with suppress(OSError, DiskError, UserError):  # only called when something else has ended the run
            with self._recorder.transaction(last=True):
                self._recorder.save(self.state)
            self._saved = self.state

    def journal(self) -> EpisodeRows | None:
        """Open the journal of episode outcomes.

        Returns:
            The journal. None if simulators run on the accelerator: an outcome may then depend on the other episodes in
            the batch, so that missing episodes cannot be played separately.
        """
        if self.config.environment.accelerated:
            return None
        journal = EpisodeRows(self._database, self.state.seconds)
        if count := len(journal.known_episodes):
            log.info("%s contains the outcomes of %d episodes, which are not played again", self._database.file, count)
        return journal

    def close(self) -> None:
        """Close the files and unlock the folder."""
        with suppress(OSError, DiskError):  # all generations are already written
            self._open.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, info: Mapping[str, Any]) -> list[str]:
        while True:
            try:
                make_folder(self.path, exist_ok=self._default_name is None)
                break
            except FileExistsError:
                if self._default_name is None:  # the path is a file
                    raise
                self.path = default_path(self._default_name)  # another process has created that folder
        self._place = place = Path(os.path.abspath(self.path))
        check_free(self.path)
        check_names(self.path)
        delete_temporary(place)
        config = self.config
        about = {"seed": config.training.seed, "environment": config.environment.settings(), **info}
        about |= keep_sources(config, place)
        messages: list[str] = []
        known: dict[Genome, int] = {}

        def fill(database: Database) -> None:
            if self._fork is None:
                genomes = self._write_first(database, about)
            else:
                genomes = write_fork(database, self._fork, about)
            known.update(genomes.known)
            # Before the rename: if the process is killed after it, the run must already be trusted.
            messages.extend(remember_own(config, database.file, place / DATABASE))

        new_database(place, fill, None if self._fork is None else self._fork.source / DATABASE)
        write_atomically(place / CONFIG, config.toml().encode())
        self._database = Writer(self.path / DATABASE)
        self._open.callback(self._database.close)
        self._start(info, known)
        return messages

    def _write_first(self, database: Database, info: Mapping[str, Any]) -> GenomeWriter:
        batch, genomes = self.reference_batch, GenomeWriter(database)
        reference = None if batch is None else database.add_array(batch)
        write_about(database, About(self.config.toml(), self.origin, info, reference))
        write_state(database, self.state, genomes)
        return genomes

    def _continue(self, resumed: Resumed, info: Mapping[str, Any]) -> list[str]:
        self._place, self._database = Path(os.path.abspath(self.path)), resumed.database
        delete_temporary(self._place)
        about = read_about(self._database)
        own = remember_own(self.config, self.path / DATABASE) if resumed.trusted else []
        with self._database.transaction(durable=True):
            write_about(
                self._database,
                About(self.config.toml(), about.origin, {**about.info, "resumed": []}, about.reference, about.token),
            )
            versions = (about.info["resumed"] or [about.info])[-1].get("versions")
            if not isinstance(versions, dict) or versions.get("neuroevo") != info["versions"]["neuroevo"]:
                forget_episodes(self._database)  # their outcomes may differ in this version
            cut_back(self._database, resumed.stored)
        write_atomically(self._place / CONFIG, self.config.toml().encode())
        self._start(info, resumed.stored.known)
        return [*resumed.messages, *own]

    def _start(self, info: Mapping[str, Any], known: Mapping[Genome, int]) -> None:
        """Start a training session."""
        (seconds,) = self._database.row(tuple[Number | None], "SELECT max(seconds) FROM sessions")
        if seconds is not None and seconds > self.state.seconds:  # time of the last outcome in the journal
            self.state = replace(self.state, seconds=seconds)
        self._saved = self.state
        self._recorder = Recorder(self._database, self.config, self.state.generation, known)
        self._database.begin_session(self.state.generation, info, self.state.seconds)
        self._csv = CsvFile(self._place, lambda: rows_of(self._database, fitness=False))
