"""log.txt of a run: what happened when."""

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
    """A log file without messages when it cannot be written: other failures on a full disk are reported."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # when a deleted file is opened again
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
    """In the block, write what this process logs to a run's log.txt.

    Args:
        folder: The run's folder.

    Raises:
        OSError: The file cannot be written.
        UserError: It is a link.
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
