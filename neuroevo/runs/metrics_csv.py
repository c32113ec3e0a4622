"""metrics.csv of a run: its generations for spreadsheets, made from run.db again whenever it is missing or torn."""

from __future__ import annotations

import csv
import io
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from neuroevo.runs.paths import CSV
from neuroevo.system.directory import Directory, write_all

log = logging.getLogger("neuroevo")
Row = Mapping[str, Any]


class CsvFile:
    """The file of a run that is trained.

    Args:
        folder: The run's, open as long as this object is used.
        rows: Returns all rows, without fitness.

    Raises:
        OSError: It cannot be written.
    """

    def __init__(self, folder: Directory, rows: Callable[[], Sequence[Row]]):
        self._folder, self._rows = folder, rows
        self._rewrite()

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, which rows() returns by now.

        Raises:
            OSError: The file cannot be written.
        """
        found = self._folder.status(CSV)
        intact = found is not None and (found.st_ino, found.st_size) == self._written
        if not intact:
            log.warning("%s was deleted or changed meanwhile; it is written again", self._folder.path / CSV)
        if not intact or not set(_columns(rows)) <= set(self._columns):
            self._rewrite()
            return
        file = self._folder.open_file(CSV, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(file, _lines(rows, self._columns))
            self._note(os.fstat(file))
        finally:
            os.close(file)

    def _rewrite(self) -> None:
        rows = self._rows()
        self._columns = _columns(rows)
        self._folder.write(CSV, _lines(rows, self._columns, header=bool(self._columns)))
        self._note(self._folder.status(CSV))

    def _note(self, found: os.stat_result | None) -> None:
        self._written = None if found is None else (found.st_ino, found.st_size)


def _columns(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, list)))


def _lines(rows: Iterable[Row], columns: Sequence[str], header: bool = False) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if header:
        every = any("\r" in name for name in columns)  # which ends a line for readers, and csv does not know it
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
