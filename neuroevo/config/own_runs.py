"""The user's own list of runs and sweeps that were begun on this machine: a small file in the user's state folder.

It is $XDG_STATE_HOME/neuroevo/runs, by default ~/.local/state/neuroevo/runs on Linux. A line has the inode and the path
of a file that every process of a run keeps. So a folder from elsewhere is not on the list, not even at a path that is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

from neuroevo.system.files import write_atomically

VARIABLE = "NEUROEVO_TRUST"  # 1: whatever runs name is trusted


def list_path() -> Path:
    """Return where the list is."""
    return user_state_path("neuroevo", appauthor=False) / "runs"


def remember(file: Path, path: Path | None = None) -> None:
    """Add a run or a sweep to the list.

    Args:
        file: Its file that stays as long as it does, such as run.db.
        path: Where the file will be, if it is renamed.

    Raises:
        OSError: The list cannot be written.
    """
    line, own = _line(file, path), list_path()
    if is_own(file) or (own.exists() and line.rstrip() in own.read_bytes().split(b"\n")):
        return
    own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    opened = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(opened, line)
    finally:
        os.close(opened)


def forget(file: Path) -> None:
    """Remove a path from the list, since a run from elsewhere comes there, which may get the inode of a deleted one.

    Args:
        file: As remember() takes it, which need not exist.

    Raises:
        OSError: The list cannot be written.
    """
    with suppress(FileNotFoundError):
        lines = list_path().read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if line.partition(b" ")[2].rstrip() != _name(file)]
        if kept != lines:
            write_atomically(list_path(), b"".join(kept))


def is_own(file: Path) -> bool:
    """Return whether a run or a sweep is on the list, or NEUROEVO_TRUST=1 says that all are trusted.

    Args:
        file: As remember() takes it.
    """
    if os.environ.get(VARIABLE) == "1":
        return True
    try:
        return _line(file).rstrip() in list_path().read_bytes().split(b"\n")
    except OSError:
        return False


def _line(file: Path, path: Path | None = None) -> bytes:
    """Return what the list says of a file. OSError: there is no such file."""
    return b"%d %s\n" % (file.stat().st_ino, _name(path or file))


def _name(path: Path) -> bytes:
    return os.fsencode(path.resolve()).replace(b"\n", b"\\n")
