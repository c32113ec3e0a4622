"""run.db, the SQLite database of a run, treated as untrusted input.

A database is accepted only if its tables are exactly those of schema.sql, so that it cannot execute a trigger, view or
function. Values are validated against types and checksums, since SQLite has no checksums of its own.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from pydantic import TypeAdapter, ValidationError

from neuroevo.core.errors import DiskError, UserError, cannot_read
from neuroevo.runs.values import DamagedError, array_of, array_row, checksum, shape_of

DATABASE = "run.db"
_SCHEMA = Path(__file__).with_name("schema.sql")
_MOST_BYTES = 1 << 30  # limit of a text or a blob
_FREE_BYTES, _FREE_STEPS = 1_000_000, 10_000_000  # a query may use these whatever the file's size: rows, VM steps
_STEPS_AT_ONCE = 1_000_000
_LEAST_ROOM = 1 << 16  # bytes; a disk with less free space counts as full
_FAILURES = (sqlite3.Error, UnicodeDecodeError)  # UnicodeDecodeError: SQLite's message quotes invalid text of the file
_NUMBERS = ("application_id", "user_version")
_IDENTITY = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name, tbl_name, sql"
# Tables that ANALYZE adds, which other programs run when they close a database. They affect query plans only.
_STATISTICS = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}


class LostDatabase(DiskError):
    """Error: the database was deleted, replaced or truncated while a process was writing it."""


class Database:
    """Connection to a run's database; use it as a context manager, or call close().

    Args:
        file: The database file.
        mode: "ro", "rw", or "rwc" to create a missing file.

    Raises:
        DamagedError: The file is not a run's database.
        DiskError: The disk is broken.
        UserError: The file does not exist, is not a regular file, or may not be read.
    """

    def __init__(self, file: Path, mode: str = "ro"):
        self.file = file
        self._new, self._mode = not _is_there(file), mode
        for kind in ("wal", "shm", "journal"):  # SQLite would block on a pipe
            _is_there(Path(f"{file}-{kind}"))
        self._steps = 0  # VM steps of the current statement
        self._connection = self._connect(mode)
        try:
            self._prepare(mode)
        except BaseException:
            self.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = f"file:{quote(os.fsencode(os.path.abspath(self.file)))}?mode={mode}"
        try:
            # Only one thread uses a reader at any time, but not always the thread that opened it.
            return sqlite3.connect(name, uri=True, isolation_level=None, timeout=5.0, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _prepare(self, mode: str) -> None:
        with self.told():
            try:
                self._defend(mode)
            except sqlite3.OperationalError as error:
                if mode == "ro" and "readonly" in str(error):
                    other = "rw"  # a process was killed during a transaction, which SQLite must roll back first
                elif mode == "ro" and "unable to open" in str(error) and _is_missing(Path(f"{self.file}-wal")):
                    other = "ro&immutable=1"  # the folder is not writable, and no process is writing
                else:
                    raise
                self._connection.close()
                self._connection = self._connect(other)
                self._defend(mode)

    def _defend(self, mode: str) -> None:
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self._connection.execute("PRAGMA cell_size_check = ON")
        if mode == "ro":  # writers check the whole file instead
            self._connection.set_progress_handler(self._count_steps, _STEPS_AT_ONCE)
            self._connection.execute("PRAGMA query_only = ON")
            self._connection.execute("BEGIN")  # all reads see one snapshot
        if not self._new:
            self._check_schema()

    def _check_schema(self) -> None:
        found = [
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        expected, tables = _expected()
        if found[0] != expected[0]:
            raise DamagedError(f"{self.file} is not a run's database: its application_id is {found[0]:#x}")
        if found[1] != expected[1]:
            raise DamagedError(
                f"another version of neuroevo made {self.file}: its schema has version {found[1]}, this neuroevo reads "
                f"version {expected[1]}"
            )
        there = self._connection.execute(_IDENTITY).fetchall()
        if [each for each in there if each not in _STATISTICS] != tables:
            raise DamagedError(f"{self.file} is not a run's database: its tables are not those of neuroevo")

    def create_tables(self) -> None:
        """Create the tables in a new file."""
        with self.told():
            self._connection.executescript(f"BEGIN; {_SCHEMA.read_text()} COMMIT;")  # a single sync

    @contextmanager
    def told(self) -> Iterator[None]:
        """Convert SQLite's errors in the block to neuroevo's."""
        try:
            yield
        except _FAILURES as error:
            raise self._error(error) from error

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement.

        Args:
            sql: The statement.
            values: Values of its parameters.

        Raises:
            DamagedError: The file is damaged.
            DiskError: The disk is full or broken.
            UserError: The file may not be written, or another process is writing it.
        """
        try:
            return self._connection.execute(sql, values)
        except _FAILURES as error:
            raise self._error(error) from error

    def insert(self, table: str, values: Mapping[str, Any], replace: bool = False) -> int:
        """Insert a row and return its number; with `replace`, overwrite a row with the same key."""
        names, marks, verb = ", ".join(values), ", ".join("?" * len(values)), "REPLACE" if replace else "INSERT"
        return self.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", list(values.values())).lastrowid or 0

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows."""
        marks = ", ".join("?" * len(columns))
        with self.told():
            self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def rows(self, kind: Any, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Read rows.

        Args:
            kind: Type of a row, such as tuple[int, float | None].
            sql: The query.
            values: Values of its parameters.

        Returns:
            Tuples of type `kind`.

        Raises:
            DamagedError: A value has another type, or the file is damaged.
            DiskError: The disk is broken.
        """
        plain = [each.item() if isinstance(each, np.generic) else each for each in values]  # stored as blobs otherwise
        try:
            self._steps = 0
            found = self._fetch(self._connection.execute(sql, plain))
        except _FAILURES as error:
            raise self._error(error) from error
        try:
            return _adapter(kind).validate_python(found, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            raise self.damaged(f"row {first['loc'][0]} has {str(first['input'])[:80]!r}, {first['msg']}") from None

    def _fetch(self, cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
        """Fetch rows, at most as many as fit in a file of this size: its pages may form a cycle."""
        found: list[tuple[Any, ...]] = []
        size = 0
        while chunk := cursor.fetchmany(1000):
            found += chunk
            size += sum(len(each) if isinstance(each, str | bytes) else 8 for row in chunk for each in row)
            if size > _FREE_BYTES and size > 16 * self._size_of_files():
                raise self.damaged("a query returned more rows than a file of this size can contain")
        return found

    def _count_steps(self) -> bool:
        """Return whether a statement exceeded the steps that a file of this size can need, to interrupt it."""
        self._steps += _STEPS_AT_ONCE
        return self._steps > _FREE_STEPS and self._steps > 64 * self._size_of_files()

    def _size_of_files(self) -> int:
        files = (self.file, Path(f"{self.file}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def row(self, kind: Any, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return the first row that rows() reads; None if there are no rows."""
        return next(iter(self.rows(kind, sql, values)), None)

    def check(self) -> None:
        """Check the structure of the whole file, which SQLite relies on when it writes.

        Raises:
            DamagedError: The file is damaged.
            DiskError: The disk is broken.
        """
        (found,) = self.row(tuple[str], "PRAGMA integrity_check(1)")
        if "unable to get the page" in found:
            raise DiskError(f"cannot read {self.file}: {self._disk_reason()}")
        if found != "ok":
            raise self.damaged(" ".join(found.split())[:200])

    def copy(self, file: Path) -> None:
        """Copy a snapshot of the database to a new file, even while another process writes.

        Raises:
            DamagedError: The database is damaged.
            DiskError: The file cannot be written, or the disk of the database is broken.
        """
        try:
            with closing(sqlite3.connect(file, isolation_level=None)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN")):
                raise DiskError(f"cannot write {file}: {error}") from error
            raise self._error(error) from error

    def add_array(self, array: np.ndarray, state: int | None = None) -> int:
        """Store an array and return its row number.

        Args:
            array: Array of a numeric dtype.
            state: The state that owns the array; deleting the state deletes the array.
        """
        return self.insert("arrays", array_row(array, state))

    def array(self, number: int, state: int | None = None) -> np.ndarray:
        """Read an array of a state, or of the run itself (None). DamagedError: it is missing or was changed."""
        row = self.row(
            tuple[int | None, str, str, bytes, int],
            "SELECT state, dtype, shape, data, checksum FROM arrays WHERE id = ?",
            [number],
        )
        if row is None or row[0] != state or checksum(*row[:-1]) != row[-1]:
            raise self.damaged(f"array {number} is {'missing' if row is None else 'changed'}")
        try:
            return array_of(row[1], shape_of(row[2]), row[3])
        except DamagedError as error:
            raise self.damaged(f"array {number}: {error}") from None

    def damaged(self, reason: str) -> DamagedError:
        """Return the exception for invalid content."""
        return DamagedError(f"{self.file} is damaged: {reason}")

    def _error(self, error: Exception) -> Exception:
        """Return the exception to raise for an error of SQLite."""
        if isinstance(error, UnicodeDecodeError):
            return self.damaged("it contains text that is not UTF-8")
        text = "".join(each if each.isprintable() else "?" for each in str(error))  # may quote the file
        if text.startswith(("Could not decode", "malformed database schema")):
            return self.damaged(text.partition(" with text ")[0][:200])
        if "full" in text:
            return DiskError(f"cannot write {self.file}: {os.strerror(errno.ENOSPC)}")
        if "disk I/O" in text:
            return DiskError(f"cannot read or write {self.file}: {self._disk_reason()}")
        if "unable to open" in text and self._mode != "rwc" and _is_missing(self.file):
            return UserError(f"{self.file} does not exist")
        if "unable to open" in text or "readonly" in text:
            if _may(self.file.parent, os.W_OK | os.X_OK) and (self._new or _may(self.file, os.R_OK | os.W_OK)):
                return DiskError(f"cannot open {self.file}: {self._disk_reason()}")
            return UserError(f"cannot open {self.file}: {os.strerror(errno.EACCES)}")
        if text == "interrupted":
            return self.damaged("a query takes more steps than a file of its size can need")
        if "locked" in text or "busy" in text:
            return UserError(f"another process is using {self.file}")
        if "malformed" in text or "not a database" in text:  # SQLite reports some read errors like this
            text += ", or its disk is broken"
        return self.damaged(text)

    def _disk_reason(self) -> str:
        """Return whether the disk is full or broken, which SQLite does not report."""
        try:
            room = os.statvfs(self.file.parent)
        except OSError as error:
            return error.strerror or str(error)
        return os.strerror(errno.ENOSPC if room.f_bavail * room.f_frsize < _LEAST_ROOM else errno.EIO)

    def close(self) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_there(file: Path) -> bool:
    """Return whether a file exists. UserError: it may not be accessed, or is not a regular file."""
    try:
        mode = os.lstat(file).st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_read(str(file), error) from None
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise UserError(f"{file} is {kind}, expected a file of a run's database")
    return True


def _is_missing(file: Path) -> bool:
    """Return whether a file is missing. After a disk error it is not, so that opening it reports the error."""
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _may(path: Path, mode: int) -> bool:
    """Return whether this process's effective user may access a path in a mode of os.access()."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


@lru_cache
def _expected() -> tuple[tuple[int, int], list[tuple[Any, ...]]]:
    """Return the application_id and user_version, and the result of _IDENTITY, of a new database."""
    with sqlite3.connect(":memory:") as memory:
        memory.executescript(_SCHEMA.read_text())
        numbers = [memory.execute(f"PRAGMA {name}").fetchone()[0] for name in _NUMBERS]
        found = memory.execute(_IDENTITY).fetchall()
    memory.close()
    return (numbers[0], numbers[1]), found


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(list[kind])
