"""log.txt of a run: what happened when."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

log = logging.getLogger("neuroevo")


class _LogFile(logging.FileHandler):
    """A log file without messages when it cannot be written: what else fails on a full disk is reported."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        pass


def open_log(path: Path) -> logging.Handler:
    """Has what this process logs written to a file.

    Args:
        path: The file, which is made or continued.

    Returns:
        The handler, to be removed from the logger and closed.

    Raises:
        OSError: It cannot be written.
    """
    handler = _LogFile(path, encoding="utf-8")
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
        with suppress(OSError):
            handler.close()
