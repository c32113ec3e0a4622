"""The folder of a run that is trained: how it begins, grows by a generation, and is resumed.

run.db          everything: docs/reference/database.md
config.toml     the configuration with every default filled in
metrics.csv     the numbers of every generation
tensorboard/    event files
own/            the source of the user's own modules that the configuration names
log.txt         what happened when
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
    """A run's folder while the run is trained: made by `create` or `resume`, then opened, and closed at the end.

    As a callback of the training it receives each population.

    Attributes:
        path: The folder.
        config: The run's configuration.
        state: The state that the next generation starts from.
        reference_batch: Observations that the network's vbn layers take statistics of, [128, ...]; None without such
            layers.
        unusable: Newer states that `resume` passed over.
        ended: Whether the last process that trained the run ended in order, and not by a signal or a power failure.
        origin: What of the configuration results depend on.
    """

    def __init__(self, path: Path, config: Config, state: TrainState, reference_batch: np.ndarray | None = None):
        self.path, self.config, self.reference_batch = path, config, reference_batch
        self.state = state
        self.origin = config.origin()  # now: a file may become another one while the run goes
        self.unusable: list[Unusable] = []
        self.ended = False
        self._default_name: str | None = None
        self._fork: Fork | None = None
        self._resumed: Resumed | None = None
        self._open = ExitStack()  # closes what is open
        self._place = path  # absolute: this and the next since open()
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
                runs share one.
            config: The run's configuration.
            name: What the run is called if `path` is None.
            trust: Whether to run code and read models that the run to start from names, whoever made it.

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
        """Prepare a new run that continues from another's state with other values of keys; write nothing yet.

        Args:
            path: The new run's folder, which will begin with the other run's generations and state.
            source: The folder of the other run, which may be training.
            overrides: Changes to its configuration, such as "algorithm.sigma=0.01"; neuroevo.sessions.fork has which.
            config: A configuration to use instead of the other run's own with `overrides`.
            generation: After how many generations they part; None for the other run's newest usable state.
            trust: Whether to run code and read models that the other run names, whoever made it.

        Raises:
            UserError: The folder holds a run, there is no such run or state, or a key cannot have another value.
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
            path: The run's folder, which is locked from now on.
            overrides: Changes to the run's own configuration, such as "training.generations=9";
                neuroevo.sessions.resume has which.
            config: A configuration to use instead of the run's own with `overrides`.
            trust: Whether to run code and read models that the run names, whoever made it. It counts as made here from
                then on.

        Raises:
            NotTrustedError: The run names external code or models, and is not trusted: docs/security.md.
            UserError: There is no run or no usable state, another version of neuroevo made the run, another process
                trains in the folder, or a change of the configuration would change results.
        """
        folder = cls._resume(path, overrides, config, trust)
        folder.state = replace(folder.state, stopped="")
        return folder

    @classmethod
    def _resume(cls, path: Path | str, overrides: Sequence[str], config: Config | None, trust: bool) -> RunFolder:
        """Prepare to continue a run; one that a callback has stopped stays finished."""
        made = prepare_resume(Path(path), overrides, config, trust)
        folder = cls(Path(path), made.config, made.stored.state, made.reference_batch)
        folder.unusable, folder.ended, folder._resumed = made.unusable, made.ended, made
        folder._open.callback(made.database.close)
        return folder

    @classmethod
    def resume_or_create(cls, path: Path | str, config: Config, *, trust: bool = False) -> RunFolder:
        """Prepare to continue the run in a folder, or to begin one there; write nothing yet.

        Unlike resume(), leave a run finished that a callback has stopped.

        Arguments are those of create() and resume(), and so is what it raises.
        """
        if is_run(Path(path)):
            return cls._resume(path, (), config, trust)
        return cls.create(path, config, trust=trust)

    def open(self, command: Sequence[str], extra: Mapping[str, Any] | None = None) -> RunFolder:
        """Write the start of a run, or delete what was played after the state from which it continues.

        Args:
            command: The command line that started the run.
            extra: Other values to record beside it.

        Returns:
            This folder.

        Raises:
            DiskError: The disk is full, for example.
            UserError: The folder may not be written, or what is to be written there is a link.
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
            log.warning("passed over %s", unusable)
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
        """Store what has been played in one transaction: durable when this returns.

        Args:
            state: The state after a generation.
            records: Records that became complete, oldest first.

        Raises:
            DiskError: The disk is full, for example, or the database was deleted or replaced.
        """
        try:
            with deferred_signals():
                due = state.generation % self.config.checkpoints.every == 0
                due = due or spent(state, self.config.training) is not None
                try:  # first: events that were written too early are replaced when the run resumes, others are missing
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
        """Store the state after the last finished generation, if it is not stored yet and if that is possible."""
        if self._saved is self.state:
            return
        with suppress(OSError, DiskError, UserError):  # only called when something else has ended the run
            with self._recorder.transaction(last=True):
                self._recorder.save(self.state)
            self._saved = self.state

    def journal(self) -> EpisodeRows | None:
        """Open the journal of outcomes of episodes.

        Returns:
            The journal. None where simulators run on the accelerator: the outcome of an episode may then depend on
            which others are played beside it, so that what is missing could not be played alone.
        """
        if self.config.environment.accelerated:
            return None
        journal = EpisodeRows(self._database, self.state.seconds)
        if count := len(journal.known_episodes):
            log.info("%s has the outcomes of %d episodes, which are not played again", self._database.file, count)
        return journal

    def close(self) -> None:
        """Close the files and unlock the folder."""
        with suppress(OSError, DiskError):  # every generation was written
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
                if self._default_name is None:  # a file
                    raise
                self.path = default_path(self._default_name)  # another process has made that folder meanwhile
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
            # Now: the run of a process that is killed before the next line is this user's.
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
                forget_episodes(self._database)  # which another version may play otherwise
            cut_back(self._database, resumed.stored)
        write_atomically(self._place / CONFIG, self.config.toml().encode())
        self._start(info, resumed.stored.known)
        return [*resumed.messages, *own]

    def _start(self, info: Mapping[str, Any], known: Mapping[Genome, int]) -> None:
        """Begin a session."""
        (seconds,) = self._database.row(tuple[Number | None], "SELECT max(seconds) FROM sessions")
        if seconds is not None and seconds > self.state.seconds:  # up to the last outcome that was kept
            self.state = replace(self.state, seconds=seconds)
        self._saved = self.state
        self._recorder = Recorder(self._database, self.config, self.state.generation, known)
        self._database.begin_session(self.state.generation, info, self.state.seconds)
        self._csv = CsvFile(self._place, lambda: rows_of(self._database, fitness=False))
