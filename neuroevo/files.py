"""Files that are either as they were or complete and on the disk, whatever happens in between."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Puts `data` into the file at `path`: written aside, flushed, renamed. OSError leaves `path` as it was."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Makes the names in a folder last through a power failure."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
