"""Keeps two processes from training into one folder."""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.system.directory import Directory

log = logging.getLogger("neuroevo")


def open_locked(path: Path) -> Directory:
    """Opens a run's folder and locks it, where the file system has locks.

    Args:
        path: The folder.

    Returns:
        The folder, which is locked until it is closed or the process ends.

    Raises:
        OSError: The folder cannot be opened.
        UserError: Another process has locked it.
    """
    folder = Directory(path)
    try:
        fcntl.flock(folder.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        folder.close()
        raise UserError(f"another process is training into {path}") from None
    except OSError:
        log.debug("the file system of %s has no locks", path)
    return folder
