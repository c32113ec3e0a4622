"""Keeps two processes from training into one folder."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from neuroevo.core.errors import UserError

log = logging.getLogger("neuroevo")


def lock_folder(path: Path) -> int:
    """Locks a run's folder, where the file system has locks.

    Args:
        path: The folder.

    Returns:
        A file descriptor; the folder is locked until it is closed or the process ends.

    Raises:
        OSError: The folder cannot be opened.
        UserError: Another process has locked it.
    """
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UserError(f"another process is training into {path}") from None
    except OSError:
        log.debug("the file system of %s has no locks", path)
    return lock
