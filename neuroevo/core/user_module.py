"""Imports modules of the user's own, which runs their code.

They are looked for where this process finds modules, then in the current folder, then where a run has kept them.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType

from neuroevo.core.errors import UserError

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
KEPT = "own"  # the folder in a run's folder with the source of the user's modules
_kept: list[str] = []  # such a folder
# Files through which the way to the user's code leads.
_NOT_THEIRS = (
    os.path.join("neuroevo", "core", "user_module.py"),
    os.path.join("neuroevo", "networks", "own_network.py"),
    os.path.join("importlib", "__init__.py"),
)


def names(text: str) -> tuple[str, str] | None:
    """The module and the name in it of "module:name"; None if the text is something else."""
    module, _, name = text.partition(":")
    return (module, name) if all(part.isidentifier() for part in (*module.split("."), name)) else None


def also_as_kept(run: Path) -> None:
    """Has modules imported as a run has kept them, where they are nowhere else.

    Args:
        run: The run's folder, or any other.
    """
    if (run / KEPT).is_dir():
        _kept[:] = [str((run / KEPT).resolve())]  # the last run's that was looked at


def users_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The part of a traceback that is in the user's own code, where an error was raised there or by what it called.

    Args:
        error: That went through this package, or has such a cause.

    Returns:
        Frames, the outermost first, of the error or else of its cause; none where this package has raised it.
    """
    cause: BaseException | None = error
    while cause is not None:
        frames = list(traceback.extract_tb(cause.__traceback__))
        ours = max((k for k, frame in enumerate(frames) if frame.filename.startswith(_PACKAGE)), default=None)
        theirs = [k for k, frame in enumerate(frames) if not _is_installed(frame.filename)]
        if ours is not None and theirs and theirs[-1] > ours:
            return frames[next(k for k in theirs if k > ours) :]
        cause = cause.__cause__
    return []


def _is_installed(file: str) -> bool:
    return file.startswith((_PACKAGE, sys.prefix, sys.base_prefix, "<")) or "site-packages" in file


def imported(name: str) -> ModuleType:
    """Imports a module.

    Args:
        name: Such as "experiments.examples.cma_es".

    Raises:
        UserError: There is none, or importing it raises an exception, which is the error's cause.
    """
    folder = os.getcwd()
    if not {"", folder} & set(sys.path):
        sys.path.append(folder)
    sys.path += [kept for kept in _kept if kept not in sys.path]  # last
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UserError(f"there is no module {error.name}, expected one in {folder} or installed") from None
        raise UserError(raised(f"importing {name}", error)) from error
    except (Exception, SystemExit) as error:
        raise UserError(raised(f"importing {name}", error)) from error


def raised(doing: str, error: BaseException) -> str:
    """Describes on one line the exception that the user's code raised, with its place there.

    Args:
        doing: What was done, such as "importing mine".
        error: What it raised.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    # After this package's own and importlib's; a SyntaxError has none, and its message names the place.
    own = [frame for frame in frames if not frame.filename.endswith(_NOT_THEIRS)]
    theirs = [frame for frame in own if "site-packages" not in frame.filename] or own
    place = f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{doing} raises {message}{place}"
