"""The file metrics.csv of a run: metrics of each generation, rewritten from run.db if it is missing or damaged."""

from __future__ import annotations

import csv
import io
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroevo.runs.paths import CSV
from neuroevo.system.files import write_atomically

log = logging.getLogger("neuroevo")
Row = Mapping[str, Any]


class CsvFile:
    """The file metrics.csv of a run in training.

    Args:
        folder: The run's folder.
        rows: Function that returns all rows, without fitness.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, folder: Path, rows: Callable[[], Sequence[Row]]):
        self._file, self._rows = folder / CSV, rows
        self._written: tuple[int, int] | None = None
        self._rewrite()

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows, which rows() already returns.

        Raises:
            OSError: The file cannot be written.
        """
        intact = self._found() == self._written
        if not intact:
            log.warning("%s was deleted or modified by another program; it is rewritten", self._file)
        if not intact or not set(_columns(rows)) <= set(self._columns):
            self._rewrite()
            return
        with open(os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC), "ab") as file:
            file.write(_lines(rows, self._columns))
        self._written = self._found()

    def _rewrite(self) -> None:
        rows = self._rows()
        self._columns = _columns(rows)
        write_atomically(self._file, _lines(rows, self._columns, header=bool(self._columns)))
        self._written = self._found()

    def _found(self) -> tuple[int, int] | None:
        """Return the file's inode and size, which show changes by other programs; None if it does not exist."""
        try:
            found = self._file.lstat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size


def _columns(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, list)))


def _lines(rows: Iterable[Row], columns: Sequence[str], header: bool = False) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if header:
        every = any("\r" in name for name in columns)  # readers take \r as a line end, but csv does not quote it
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
