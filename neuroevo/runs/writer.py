"""Connection of the training process, the only writer of run.db, with one transaction per generation.

The process holds SQLite's write lock while it trains, which does not block readers. In WAL mode, the outcome of an
episode is committed without waiting for the disk, so that it survives a crash of the process; a generation is durable
once its transaction is committed.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from typing_extensions import override

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.database import DATABASE, Database, LostDatabase
from neuroevo.runs.values import DamagedError
from neuroevo.system.files import flush_names
from neuroevo.system.processes import is_running, this_process
from neuroevo.system.reading import parse_json

log = logging.getLogger("neuroevo")
_SECONDS_FOR_READERS = 1.0  # wait at the end of a run for readers to finish


class Writer(Database):
    """Exclusive connection for writing a run's database, held from opening to closing.

    Args:
        file: The database file.

    Raises:
        UserError: Another process is training in the folder, which the message names; or as Database.
    """

    def __init__(self, file: Path):
        self._session: int | None = None
        self._lost: str | None = None
        self._size: int | None = None  # size of the file in WAL mode, in which it never shrinks
        self._has_written = False
        self._process = os.getpid()
        super().__init__(file, "rw")
        try:
            self._absolute = Path(os.path.abspath(file))  # the working directory may change
            self._place, self._folder = os.stat(file), os.stat(file.parent)
            with self.told():
                self._connection.execute("PRAGMA busy_timeout = 1000")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute("PRAGMA foreign_keys = OFF")  # faster cut_back(); see begin_session()
                self._connection.execute("BEGIN IMMEDIATE")
            last = last_session(self)
            if last is not None and is_running(last) and last != this_process():
                raise UserError(_in_use(file, last))
        except BaseException as error:
            self.close()
            if isinstance(error, UserError) and "another process" in str(error):
                raise UserError(self._who(file)) from None
            raise

    @staticmethod
    def _who(file: Path) -> str:
        with suppress(UserError, DiskError), Database(file) as reader:
            return _in_use(file, last_session(reader))
        return _in_use(file, None)

    def begin_session(self, generation: int, info: Mapping[str, Any], seconds: float) -> None:
        """Record the start of a training session of this process.

        Args:
            generation: First generation to play.
            info: Command, versions and machine, as JSON values.
            seconds: Wall time of the run so far.
        """
        self.execute("COMMIT")
        self.execute("PRAGMA foreign_keys = ON")  # not earlier: each deleted genome would be searched for in all rows
        self._lock()
        row = {"generation": generation, "process": json.dumps(this_process()), "info": json.dumps(info)}
        with self.transaction():
            session = self.insert("sessions", {**row, "seconds": seconds, "ended": 0})
        self._session = session

    def set_seconds(self, seconds: float) -> None:
        """Record the wall time of the run so far, in a transaction."""
        self.execute("UPDATE sessions SET seconds = ? WHERE id = ?", [seconds, self._session])

    @contextmanager
    def transaction(self, durable: bool = False, last: bool = False) -> Iterator[None]:
        """Run the block in a transaction, which an exception rolls back.

        Args:
            durable: Whether the transaction survives a power failure once it is committed.
            last: Whether to write even if the file was moved or lost: into the moved file, or a copy of the lost one.

        Raises:
            LostDatabase: The file was deleted, replaced or truncated, or another process has taken over the run.
            DiskError: The disk is full or broken.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a forked process cannot write the run of its parent")
        if not last:
            self._check_place()
        if not self._has_written:
            self._begin_log()
        try:
            if durable:  # the setting can only change outside a transaction
                if self._connection.in_transaction:
                    self.execute("COMMIT")
                self.execute("PRAGMA synchronous = FULL")
            if not self._connection.in_transaction:
                self._lock()
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            with suppress(DiskError, UserError):  # the first error is the one to report
                self._relax_and_lock(durable)
            raise
        self._relax_and_lock(durable)

    def _begin_log(self) -> None:
        """Switch to WAL mode. This writes the file, so it is not done for a run without anything left to do."""
        with self.told():
            self._connection.execute("PRAGMA busy_timeout = 30000")  # until no process reads
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
            mode = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            self._connection.execute("PRAGMA busy_timeout = 1000")
        if mode == "wal":
            self._size = 0
        else:
            log.info("the file system of %s has no shared memory: SQLite uses a rollback journal", self.file)
        self._lock()
        self._has_written = True

    def _relax_and_lock(self, durable: bool) -> None:
        if durable:
            self.execute("PRAGMA synchronous = NORMAL")
        self._lock()

    def _lock(self) -> None:
        try:
            self.execute("BEGIN IMMEDIATE")
        except DamagedError:
            raise
        except UserError as error:
            raise LostDatabase(f"{error}: it has taken over the run") from None
        if self._session is not None:
            (last,) = self.row(tuple[int | None], "SELECT max(id) FROM sessions")
            if last != self._session:
                raise LostDatabase(f"another process has taken over the run in {self.file.parent}")

    def _check_place(self) -> None:
        """Check that the file is intact and in its place. LostDatabase: it is not."""
        if self._lost is None:
            self._lost = self._find_loss()
        if self._lost is not None:
            raise LostDatabase(self._lost)

    def _find_loss(self) -> str | None:
        """Describe a loss of the file, None if it is intact; write a missing file again."""
        folder, file = _stat(self._absolute.parent), _stat(self._absolute)
        if file is not None and os.path.samestat(file, self._place):
            if self._size is not None and file.st_size < self._size:
                cut = f"{self.file} was truncated from {self._size:,} to {file.st_size:,} bytes meanwhile"
                return f"{cut}; the missing data may be lost"
            self._size = None if self._size is None else file.st_size
            return None
        if folder is None or not os.path.samestat(folder, self._folder):
            what = "deleted or renamed" if folder is None else "replaced by another folder"
            return f"the folder {self.file.parent} was {what} meanwhile"
        lost = f"{self.file} was {'deleted' if file is None else 'replaced by another file'} meanwhile"
        names = chain([DATABASE], (f"{DATABASE}.kept-{number}" for number in count(1)))
        try:
            self._continue_in(next(name for name in names if not self._absolute.with_name(name).exists()))
        except (OSError, sqlite3.Error) as error:
            return f"{lost}; its content is lost, since writing it again failed: {error}"
        return f"{lost}; its content, which was still open, was written to {self.file}"

    def _continue_in(self, name: str) -> None:
        """Copy the database within its folder and switch to the copy. OSError, sqlite3.Error: that failed."""
        self._connection.rollback()
        copy = sqlite3.connect(self._absolute.with_name(name), isolation_level=None, check_same_thread=False)
        try:
            self._connection.backup(copy)
            copy.execute("PRAGMA foreign_keys = ON")
            copy.execute("BEGIN IMMEDIATE")
        except BaseException:
            copy.close()
            raise
        self._connection.close()
        self._connection, self.file = copy, self.file.with_name(name)

    @override
    def close(self) -> None:
        """Commit, record the end of the session, and close the connection.

        Unless a reader is active, the result is a single file, which can be read on a read-only file system.
        """
        if os.getpid() != self._process:
            return  # SQLite must not be used in a forked process
        with suppress(sqlite3.Error):
            if self._session is not None and self._connection.in_transaction:
                self._connection.execute("UPDATE sessions SET ended = 1 WHERE id = ?", [self._session])
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
                self._end_log()
        super().close()

    def _end_log(self) -> None:
        """Leave WAL mode, retrying for readers, which take milliseconds: SQLite itself does not wait here."""
        self._connection.execute("PRAGMA busy_timeout = 0")
        end = time.monotonic() + _SECONDS_FOR_READERS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = DELETE")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.005)


def _stat(path: Path) -> os.stat_result | None:
    """Return os.stat() of a path; None if it does not exist. DiskError: the status cannot be read."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}") from error


def new_database(folder: Path, fill: Callable[[Database], None], source: Path | None = None) -> None:
    """Create a run's database atomically: it appears in its folder complete or not at all.

    Args:
        folder: A folder without a run.
        fill: Function that writes the rows, in a transaction.
        source: Database to start from a copy of; None for empty tables.

    Raises:
        DiskError: The disk is full or broken.
        OSError: The folder cannot be written.
    """
    aside = folder / f".{DATABASE}.{os.getpid()}.tmp"
    aside.unlink(missing_ok=True)
    try:
        if source is not None:
            with Database(source) as old:
                old.copy(aside)
        with Database(aside, "rwc" if source is None else "rw") as database:
            # No rollback journal is needed: the file is not used before it is complete.
            database.execute("PRAGMA journal_mode = MEMORY")
            database.execute("PRAGMA synchronous = FULL")
            if source is None:
                database.create_tables()
            else:
                database.check()
            database.execute("BEGIN")
            fill(database)
            database.execute("COMMIT")
        aside.replace(folder / DATABASE)
        flush_names(folder)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def last_session(database: Database) -> dict[str, Any] | None:
    """Return the process of the last session unless that has ended; None if it has."""
    found = database.row(tuple[str, int], "SELECT process, ended FROM sessions ORDER BY id DESC LIMIT 1")
    if found is None or found[1]:
        return None
    try:
        process = parse_json(found[0])
    except ValueError:
        return None
    return process if isinstance(process, dict) else None


def _in_use(file: Path, process: Mapping[str, Any] | None) -> str:
    who = "" if process is None else f": process {process.get('pid')} on {str(process.get('host'))[:80]}"
    return f"another process is training into {file.parent}{who}"
