"""Where a new run may go: a folder that holds no run yet."""

from __future__ import annotations

import time
from pathlib import Path

from neuroevo.core.errors import UserError, cannot_write
from neuroevo.runs.checkpoints import generations
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, METRICS, readable
from neuroevo.system.directory import make_folder


def check_free(path: Path | str) -> None:
    """Checks that a new run may go into a folder, which need not be there.

    Args:
        path: The folder.

    Raises:
        UserError: There is a run in it, `path` is a file, or what is there cannot be known.
    """
    try:
        is_file = Path(path).exists() and not Path(path).is_dir()
    except OSError as error:  # a folder above it that this user may not look into
        raise cannot_write(f"a run to {path}", error) from None
    if is_file:
        raise UserError(f"{path} is a file, expected a folder or nothing")
    with readable(path):
        _check_free(path)


def _check_free(path: Path | str) -> None:
    if (Path(path) / CONFIG).exists():
        raise UserError(
            f"{path} already holds a run; go on with it by --resume {path}, or give another folder with --out"
        )
    metrics = Path(path) / METRICS
    if metrics.is_file() and metrics.stat().st_size:  # a start that was killed leaves it empty
        raise UserError(f"{path} holds {METRICS} of a run without its {CONFIG}; give another folder with --out")
    if any(generation > 0 for generation in generations(Path(path) / CHECKPOINTS)):  # likewise
        raise UserError(f"{path} holds checkpoints of a run without its {CONFIG}; give another folder with --out")


def default_path(name: str) -> Path:
    """Chooses a run's folder by the time.

    Args:
        name: What the run is called.

    Returns:
        runs/<name>-<local time>, which is not there yet.
    """
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, again = Path("runs") / stem, 2
    while path.exists():
        path, again = Path("runs") / f"{stem}-{again}", again + 1
    return path


def make_default(path: Path, name: str) -> Path:
    """Makes a run's folder that was chosen by the time, or the next one that no other process has made meanwhile.

    Args:
        path: What default_path chose.
        name: What the run is called.

    Returns:
        The folder.

    Raises:
        OSError: It cannot be made.
    """
    while True:
        try:
            make_folder(path, exist_ok=False)
            return path
        except FileExistsError:
            path = default_path(name)
