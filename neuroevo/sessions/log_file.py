"""The log file of a run, log.txt."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path

from typing_extensions import override

from neuroevo.runs.paths import LOG
from neuroevo.system.files import check_kind

log = logging.getLogger("neuroevo")


class _LogFile(WatchedFileHandler):
    """Log file that ignores failed writes, since a full disk also causes other failures, which are reported."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # a deleted file is reopened, which may fail
            super().emit(record)

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        pass

    @override
    def close(self) -> None:
        with suppress(OSError):
            super().close()


@contextmanager
def logged_to(folder: Path) -> Iterator[None]:
    """Write the log messages of this process to a run's log.txt during the block.

    Args:
        folder: The run's folder.

    Raises:
        OSError: The file cannot be written.
        UserError: The file is a link.
    """
    check_kind(folder / LOG)
    handler = _LogFile(folder / LOG, encoding="utf-8", errors="backslashreplace")  # names of files may be any bytes
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        handler.close()
