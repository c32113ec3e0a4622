"""Names of the files and folders in a run folder, and checks on run folders."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroevo.core.errors import UserError, cannot_read, cannot_write
from neuroevo.core.user_module import KEPT
from neuroevo.runs.database import DATABASE
from neuroevo.system.files import check_kind, nearest_file, sweep

CONFIG = "config.toml"  # the configuration with every default filled in, for users; neuroevo reads the database's copy
CSV = "metrics.csv"  # metrics of every generation, for spreadsheets
TENSORBOARD = "tensorboard"  # folder of event files
LOG = "log.txt"
_FILES = (DATABASE, CONFIG, CSV, LOG)
_FOLDERS = (TENSORBOARD, KEPT)
_EARLIER = ("metrics.jsonl", "checkpoints", "elites.jsonl")  # file format before run.db


def check_names(folder: Path) -> None:
    """Check that no file or folder of a run is a link, so that nothing is written outside the run folder.

    Args:
        folder: The run folder.

    Raises:
        UserError: An entry is a link, or has the wrong type (file or folder).
    """
    for name in (*_FILES, *(f"{DATABASE}{ending}" for ending in ("-wal", "-shm", "-journal"))):
        check_kind(folder / name)
    for name in _FOLDERS:
        check_kind(folder / name, stat.S_IFDIR)


def delete_temporary(folder: Path) -> None:
    """Delete the temporary files that a killed process left in a run's folder.

    Args:
        folder: The run folder; no other process may be writing to it.

    Raises:
        OSError: A file cannot be deleted.
    """
    sweep(folder, rf"(?:{'|'.join(map(re.escape, _FILES))})|trackers\.json")
    for path, _, _ in os.walk(folder / KEPT):
        sweep(Path(path), r".+\.py")


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Convert an OSError in the block to an error about reading a run folder.

    Args:
        path: The folder.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder may not be read.
    """
    try:
        yield
    except OSError as error:
        raise cannot_read(f"the run folder {path}", error) from error


def is_run(path: Path) -> bool:
    """Return whether a folder contains a run.

    Args:
        path: The folder, which need not exist.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder may not be read.
    """
    with readable(path):
        return (path / DATABASE).is_file()


def runs_in(path: Path) -> list[Path]:
    """Return the run in a folder or, as for a sweep, the runs in its subfolders.

    Args:
        path: The folder.

    Returns:
        The run folders, sorted. Without any run, the folder itself, so that opening it raises the error.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder may not be read.
    """
    return [path] if is_run(path) else _runs_below(path) or [path]


def check_run(path: Path) -> None:
    """Check that a folder contains a run.

    Args:
        path: The folder.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder contains no run, or may not be read. The message names a run in a subfolder, if any.
    """
    if is_run(path):
        return
    if any((path / name).exists() for name in _EARLIER):
        raise UserError(
            f"an earlier version of neuroevo made the run in {path}, which this one does not read: "
            f"expected {path / DATABASE}"
        )
    hint = "" if path.exists() else nearest_file(path)
    if below := _runs_below(path):
        hint = f"; {'a run is' if len(below) == 1 else f'{len(below)} runs are'} below it, such as {below[0]}"
    raise UserError(f"there is no run in {path}: expected {path / DATABASE}{hint}")


def _runs_below(path: Path) -> list[Path]:
    """Return the runs in the subfolders of a folder, at most three levels down."""
    with readable(path):
        return sorted(each.parent for down in ("*", "*/*", "*/*/*") for each in path.glob(f"{down}/{DATABASE}"))


def check_free(path: Path | str) -> None:
    """Check that a new run can be created in a folder.

    Args:
        path: The folder, which need not exist.

    Raises:
        UserError: The folder contains a run or may not be read, or `path` is a file.
    """
    path = Path(path)
    try:
        is_file = path.exists() and not path.is_dir()
    except OSError as error:  # no permission to search a parent folder
        raise cannot_write(f"a run to {path}", error) from None
    if is_file:
        raise UserError(f"{path} is a file, expected a folder or nothing")
    with readable(path):
        if (path / DATABASE).exists():
            raise UserError(
                f"{path} already holds a run, expected another folder; to resume it: neuroevo train --resume {path}, "
                "or resume=True in Python"
            )
        for name in (*_EARLIER, CONFIG, CSV):
            if (path / name).exists():
                raise UserError(f"{path} holds {name} of another run without its {DATABASE}, expected another folder")


def default_path(name: str) -> Path:
    """Return a new run folder named after the current time.

    Args:
        name: Name of the run.

    Returns:
        runs/<name>-<local time>, which does not exist yet.
    """
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, again = Path("runs") / stem, 2
    while path.exists():
        path, again = Path("runs") / f"{stem}-{again}", again + 1
    return path
