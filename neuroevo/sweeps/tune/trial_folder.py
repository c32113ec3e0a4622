"""The folders of a trial: its run's, and under population-based training one more for each fork that it went on as.

trial-00003, trial-00003-fork-1, trial-00003-fork-2, ...     each is a run of its own, and the first ones stay
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.runs.about import FORKED, SNAPSHOT, read_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.paths import is_run
from neuroevo.runs.reader import RunReader

log = logging.getLogger("neuroevo")
_LOCK_SECONDS = 15.0  # for the process that had the trial before to end
_FORK = re.compile(r"-fork-(\d+)")


def begin(path: Path, config: Config) -> RunFolder:
    """Makes a trial's folder, or goes on with the newest one of the trial that has this configuration.

    Args:
        path: The trial's first folder.
        config: What it is to be made of.

    Returns:
        The folder, to which nothing is written yet.

    Raises:
        UserError: It cannot be used.
    """
    for folder in reversed(folders(path)):
        if _holds(folder, config):
            return _resume(folder, config)
    return RunFolder.create(_free(path), config)


def go_on_from(path: Path, config: Config, snapshot: Path) -> RunFolder:
    """Goes on from a snapshot: of the trial itself in its own folder, of another as a fork.

    Args:
        path: The trial's first folder.
        config: What it is to be made of.
        snapshot: What RunFolder.snapshot() wrote.

    Returns:
        The folder, to which nothing is written yet.

    Raises:
        UserError: The snapshot cannot be used, or its state does not allow the configuration.
    """
    source, generation = _source(snapshot, config)
    for folder in reversed(folders(path)):
        came_from = _info(folder).get(FORKED, {})
        is_it = folder.absolute() == Path(source) or (came_from.get("path"), came_from.get("generation")) == (
            source,
            generation,
        )
        if is_it and _holds(folder, config):
            return _resume(folder, config)
    return RunFolder.fork(_free(path), snapshot, config=config)


def folders(path: Path) -> list[Path]:
    """Lists the folders of a trial that hold runs.

    Args:
        path: Its first folder.

    Returns:
        The folders, oldest first.
    """
    return [folder for folder in _all(path) if is_run(folder)]


def _all(path: Path) -> list[Path]:
    found = {0: path} if path.is_dir() else {}
    for each in path.parent.glob(f"{path.name}-fork-*"):
        match = _FORK.fullmatch(each.name.removeprefix(path.name))
        if match and each.is_dir():
            found[int(match[1])] = each
    return [found[number] for number in sorted(found)]


def _free(path: Path) -> Path:
    """The folder for the next run of a trial: one that was not finished being made, or a new one."""
    there = _all(path)
    if not there or (len(there) == 1 and not is_run(path)):
        return path
    last = there[-1]
    if not is_run(last):
        return last
    match = _FORK.fullmatch(last.name.removeprefix(path.name))
    return path.with_name(f"{path.name}-fork-{int(match[1]) + 1 if match else 1}")


def _holds(folder: Path, config: Config) -> bool:
    """Whether the run in a folder is of this configuration, budgets and hardware aside."""
    try:
        return RunReader(folder, like=config).config.origin() == config.origin()
    except UserError as error:
        log.warning("passed over %s: %s", folder, error)
        return False


def _resume(folder: Path, config: Config) -> RunFolder:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return RunFolder.resume(folder, config=config)
        except UserError as error:
            if "another process" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _source(snapshot: Path, config: Config) -> tuple[str, int]:
    """The run that a snapshot is of, and after how many generations it was taken."""
    info, state = _info(snapshot), RunReader(snapshot, like=config).state()
    return str(info.get(SNAPSHOT, snapshot)), state.generation


def _info(folder: Path) -> Mapping[str, Any]:
    """Return where the run in a folder was made."""
    with Database(folder / DATABASE) as database:
        return read_about(database).info
