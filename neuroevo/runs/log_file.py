"""log.txt of a run: what happened when."""

from __future__ import annotations

import logging
from contextlib import suppress

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.paths import LOG
from neuroevo.system.appended_file import AppendedFile, LostFile
from neuroevo.system.directory import Directory

log = logging.getLogger("neuroevo")


class _LogFile(logging.Handler):
    """A log file without messages when it cannot be written: what else fails on a full disk is reported."""

    def __init__(self, folder: Directory):
        self._folder, self._file = folder, AppendedFile(folder, LOG)
        super().__init__()  # from now on logging closes it in the end

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record).encode(errors="backslashreplace") + b"\n"  # names of files may be any bytes
        with suppress(OSError, DiskError, UserError):
            try:
                self._file.append(line)
            except LostFile as lost:  # nothing depends on it: it says so and goes on
                self._file.close()
                self._file = AppendedFile(self._folder, LOG)
                self._file.append(f"{lost}\n".encode() + line)

    def close(self) -> None:
        super().close()
        with suppress(OSError):
            self._file.close()


def open_log(folder: Directory) -> logging.Handler:
    """Has what this process logs written to a run's log.txt.

    Args:
        folder: The run's folder, which stays open as long as the file, which is made or continued.

    Returns:
        The handler, to be removed from the logger and closed.

    Raises:
        OSError: It cannot be written.
        UserError: It is a link.
    """
    handler = _LogFile(folder)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    return handler


def close_log(handler: logging.Handler | None) -> None:
    """Ends what open_log began.

    Args:
        handler: What it returned, or None.
    """
    if handler is not None:
        log.removeHandler(handler)
        handler.close()
