"""The names of the files and folders in a run's folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroevo.config.signature import SIGNATURE
from neuroevo.core.errors import UserError, cannot_read
from neuroevo.core.user_module import KEPT
from neuroevo.system.directory import Directory
from neuroevo.system.files import nearest_file

CONFIG = "config.toml"  # the configuration with every default filled in; with it the folder is a run
REFERENCE = "reference.npy"  # the reference batch of a network with virtual batch normalization
INFO = "info.json"  # command, seed, versions, git commit and machine of the start and of every resumption
METRICS = "metrics.jsonl"  # one line per finished generation
CSV = "metrics.csv"  # the same numbers for spreadsheets
ELITES = "elites.jsonl"  # the elite of every generation
CHECKPOINTS = "checkpoints"  # the folder of checkpoints, from which the run can be resumed
MEMBERS = "members.bin"  # the members of every generation, within a budget
JOURNAL = "journal.bin"  # outcomes of episodes that no checkpoint knows of yet; there while the run goes on, or stopped
TENSORBOARD = "tensorboard"  # the folder of event files
LOG = "log.txt"  # what happened when
_FILES = (CONFIG, REFERENCE, INFO, SIGNATURE, METRICS, CSV, ELITES, MEMBERS, JOURNAL, LOG)
_FOLDERS = (CHECKPOINTS, TENSORBOARD, KEPT)


def check_names(folder: Directory) -> None:
    """Checks that a run's files are files of its folder, so that nothing is written elsewhere.

    Args:
        folder: The run's.

    Raises:
        UserError: One of them is a link, or something else than a file or a folder.
    """
    for name in _FILES:
        folder.check(name)
    for name in _FOLDERS:
        folder.check(name, stat.S_IFDIR)


def sweep(folder: Directory) -> None:
    """Deletes the temporary files that a killed process left in a run's folder.

    Args:
        folder: The run's, locked.

    Raises:
        OSError: One cannot be deleted.
    """
    folder.sweep(rf"(?:{'|'.join(map(re.escape, _FILES))})(?:\.kept-\d+)?|trackers\.json")
    if folder.status(CHECKPOINTS) is not None:
        with folder.below(CHECKPOINTS) as checkpoints:
            checkpoints.sweep(r"generation-\d+\.ckpt")
    if folder.status(KEPT) is not None:
        with folder.below(KEPT) as kept:
            _sweep_modules(kept)


def _sweep_modules(folder: Directory) -> None:
    folder.sweep(r".+\.py")
    for name in os.listdir(folder.descriptor):
        found = folder.status(name)
        if found is not None and stat.S_ISDIR(found.st_mode):
            with folder.below(name) as package:
                _sweep_modules(package)


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Has failures to read a run's folder told as those.

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
    """Whether there is a run in a folder, which need not be there.

    Args:
        path: The folder.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder may not be read.
    """
    with readable(path):
        return (path / CONFIG).is_file()


def runs_in(path: Path) -> list[Path]:
    """What a folder stands for where several runs may be: the run in it, or those below it, as of a suite.

    Args:
        path: The folder.

    Returns:
        The runs' folders, sorted; where there is none the folder itself, of which whoever opens it says so.

    Raises:
        DiskError: The disk is broken.
        UserError: The folder may not be read.
    """
    return [path] if is_run(path) else _runs_below(path) or [path]


def no_run(path: Path) -> UserError:
    """The error about a folder without a run, which names one that is below it.

    Args:
        path: The folder.
    """
    hint = "" if path.exists() else nearest_file(path)
    if below := _runs_below(path):
        hint = f"; {'a run is' if len(below) == 1 else f'{len(below)} runs are'} below it, such as {below[0]}"
    return UserError(f"there is no run in {path}: expected {path / CONFIG}{hint}")


def _runs_below(path: Path) -> list[Path]:
    """The runs in the folders below one, at most three levels down; other programs have a config.toml, too."""
    with readable(path):
        found = [each.parent for down in ("*", "*/*", "*/*/*") for each in path.glob(f"{down}/{CONFIG}")]
        return sorted(each for each in found if (each / INFO).is_file())
