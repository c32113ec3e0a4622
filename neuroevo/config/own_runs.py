"""The list of runs and sweeps that the user started on this machine: a small file in the user's state folder.

Its path is $XDG_STATE_HOME/neuroevo/runs, by default ~/.local/state/neuroevo/runs on Linux. A line contains the inode
and the path of a file that is never replaced, so that a folder copied from elsewhere to a listed path is not trusted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

from neuroevo.system.files import write_atomically

VARIABLE = "NEUROEVO_TRUST"  # 1: trust all runs


def list_path() -> Path:
    """Return the path of the list."""
    return user_state_path("neuroevo", appauthor=False) / "runs"


def remember(file: Path, path: Path | None = None) -> None:
    """Add a run or a sweep to the list.

    Args:
        file: A file that exists as long as the run or sweep, such as run.db.
        path: The path of the file after it is renamed; None if it is not renamed.

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
    """Remove a path from the list before a downloaded run is stored there, which may reuse a deleted file's inode.

    Args:
        file: As for remember(); it need not exist.

    Raises:
        OSError: The list cannot be written.
    """
    with suppress(FileNotFoundError):
        lines = list_path().read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if line.partition(b" ")[2].rstrip() != _name(file)]
        if kept != lines:
            write_atomically(list_path(), b"".join(kept))


def is_own(file: Path) -> bool:
    """Return whether a run or a sweep is on the list, or all are trusted (NEUROEVO_TRUST=1).

    Args:
        file: As for remember().
    """
    if os.environ.get(VARIABLE) == "1":
        return True
    try:
        return _line(file).rstrip() in list_path().read_bytes().split(b"\n")
    except OSError:
        return False


def _line(file: Path, path: Path | None = None) -> bytes:
    """Return a file's line in the list. OSError: the file does not exist."""
    return b"%d %s\n" % (file.stat().st_ino, _name(path or file))


def _name(path: Path) -> bytes:
    return os.fsencode(path.resolve()).replace(b"\n", b"\\n")
