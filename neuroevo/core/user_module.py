"""Imports a module of the user's own, from where this process finds modules or else from the current folder.

Importing it runs its code.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from types import ModuleType

from neuroevo.core.errors import UserError

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
