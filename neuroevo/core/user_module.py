"""Import of user modules, which runs their code.

Modules are searched on Python's path, then in the current folder, then among the sources kept by a run. Kept sources
are compiled from the text that was read. Python does not search a run's folder, since any other file in it could shadow
another module.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import decode_source, find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from neuroevo.core.errors import UserError

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
EVOSAX = "evosax"
KEPT = "own"  # subfolder of a run with the sources of user modules
_may: ContextVar[Collection[str] | None] = ContextVar("modules that may be imported", default=None)  # None: all
# Files whose frames precede the user's code in a traceback.
_NOT_THEIRS = (
    os.path.join("neuroevo", "core", "user_module.py"),
    os.path.join("neuroevo", "networks", "own_network.py"),
    os.path.join("importlib", "__init__.py"),
)


def names(text: str) -> tuple[str, str] | None:
    """Split "module:name" into the module and the name in it; return None if the text has another form.

    "evosax:NAME" also returns None, since this package wraps evosax's strategies.
    """
    module, _, name = text.partition(":")
    if module == EVOSAX:
        return None
    return (module, name) if all(part.isidentifier() for part in (*module.split("."), name)) else None


def name_of(value: Any) -> Any:
    """Return the name "module:name" of a class or function for a configuration; return other values unchanged.

    Raises:
        UserError: Other processes and later commands cannot import the class or function under its name.
    """
    if not isinstance(value, (type, FunctionType)):
        return value
    module, name = value.__module__, value.__qualname__
    if module == "__main__":
        module = _script(name)
    if not name.isidentifier() or getattr(sys.modules.get(module), name, None) is not value:
        raise UserError(f"{module}.{name} cannot be imported, expected a class or function at a module's top level")
    return f"{module}:{name}"


def _script(name: str) -> str:
    """Return the import name of the running script, and register it so that importing does not run it again."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is None:
        expected = "expected it in a module; in a notebook, a cell that starts with %%writefile my_module.py makes one"
        raise UserError(f"{name} is defined in an interactive session, {expected}")
    if "__name__" not in Path(file).read_text(encoding="utf-8"):
        guard = 'if __name__ == "__main__":'
        raise UserError(f"importing {name} would run all of {file}, expected `{guard}` around its main code")
    spec = getattr(main, "__spec__", None)
    module = Path(file).stem if spec is None else str(spec.name)
    sys.modules.setdefault(module, main)
    return module


@dataclass(frozen=True)
class KeptModule:
    """Source of a module kept by a run.

    Attributes:
        path: Path of the file.
        source: Contents of the file when it was read.
        first: Whether the kept source takes precedence over a module of the same name elsewhere.
    """

    path: str
    source: bytes
    first: bool = False


_kept: dict[str, KeptModule] = {}  # modules of the run passed to keep() last
_folder: str | None = None  # current folder of the main process, in its workers


def current_folder() -> str:
    """Return the folder in which user modules are searched for, after Python's path."""
    return _folder or os.getcwd()


def keep(modules: Mapping[str, KeptModule], folder: str | None = None) -> None:
    """Register the modules kept by a run, replacing those of any other run.

    A module is imported from its kept source if it takes precedence or no other module has its name.

    Args:
        modules: The modules by name.
        folder: Folder that current_folder() returns afterwards; None for this process's current folder.
    """
    global _folder
    _folder = folder
    _kept.clear()
    _kept.update(modules)
    for finder in _FINDERS:
        if finder not in sys.meta_path:
            sys.meta_path.insert(0 if finder.first else len(sys.meta_path), finder)


def kept_modules() -> dict[str, KeptModule]:
    """Return the modules that keep() registered last, for processes on other machines."""
    return dict(_kept)


@contextmanager
def only(modules: Collection[str]) -> Iterator[None]:
    """Make imported() reject all other modules during the block.

    Args:
        modules: Names of the allowed modules.
    """
    before = _may.set(modules)
    try:
        yield
    finally:
        _may.reset(before)


def located(name: str) -> Path | None:
    """Return the file that imported() would run, without running anything; None if it is missing or unknown.

    Args:
        name: Name of the module. Sources kept by a run are not considered.
    """
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return None if file is None else Path(file)
    parts = name.split(".")
    try:
        spec = find_spec(parts[0]) or PathFinder.find_spec(parts[0], [current_folder()])
        for part in parts[1:]:
            places = None if spec is None else spec.submodule_search_locations
            if places is None:
                return None
            # Iterating over a namespace package's path requires an imported parent package: use its list _path instead.
            spec = PathFinder.find_spec(part, list(getattr(places, "_path", places)))
    except (ImportError, ValueError, OSError):  # ValueError: a module without spec
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


class _KeptLoader(InspectLoader):
    """Loader that runs kept source, without reading or writing compiled files."""

    def __init__(self, kept: KeptModule):
        self._kept = kept

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return decode_source(self._kept.source)

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002
        return False

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self._kept.source, self._kept.path, "exec", dont_inherit=True)


class _KeptFinder(MetaPathFinder):
    """Finder of modules kept by a run, and of empty packages for the parents of dotted names.

    Attributes:
        first: Whether the finder is limited to modules that take precedence over other modules.
    """

    def __init__(self, first: bool):
        self.first = first

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        kept = _kept.get(fullname)
        if kept is not None and (kept.first or not self.first):
            return spec_from_file_location(fullname, kept.path, loader=_KeptLoader(kept))
        if not self.first and any(name.startswith(f"{fullname}.") for name in _kept):
            return ModuleSpec(fullname, None, is_package=True)
        return None


_FINDERS = (_KeptFinder(True), _KeptFinder(False))


def users_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the part of a traceback in user code, if an error was raised there or in a function called from there.

    Args:
        error: An error that passed through this package, or whose cause did.

    Returns:
        Frames of the error or of its cause, the outermost first; empty if this package raised the error.
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
    """Import a module.

    Args:
        name: Name of the module, such as "experiments.examples.cma_es".

    Raises:
        UserError: No such module exists, only() does not allow it, or importing it raises an exception, which is the
            error's cause.
    """
    allowed = _may.get()
    if allowed is not None and name not in allowed and name.partition(".")[0] != __package__.partition(".")[0]:
        raise UserError(f"the module {name} is not imported, since the run's configuration does not reference it")
    folder = current_folder()
    first = name in _kept and _kept[name].first
    if not first and not {"", folder} & set(sys.path):
        sys.path.append(folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise UserError(f"there is no module {error.name}, expected one in {folder} or installed") from None
        raise UserError(raised(f"importing {name}", error)) from error
    except (Exception, SystemExit) as error:
        raise UserError(raised(f"importing {name}", error)) from error


def find_function(text: str, expected: str) -> Callable[..., Any]:
    """Import a user function.

    Args:
        text: Name of the function, "module:function".
        expected: Description of the expected value, for messages.

    Raises:
        UserError: No such function exists, or importing the module raises an exception, which is the error's cause.
    """
    parts = names(text)
    if parts is None:
        raise UserError(expected)
    module = imported(parts[0])
    function = getattr(module, parts[1], None)
    if not callable(function) or isinstance(function, type):
        where = getattr(module, "__file__", None) or "a folder"
        raise UserError(f"{parts[0]} ({where}) has no function {parts[1]}: {expected}")
    return function


def raised(doing: str, error: BaseException) -> str:
    """Describe an exception raised by user code, with its location, on one line.

    Args:
        doing: The action that failed, such as "importing mine".
        error: The exception.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    # Skip frames of this package and of importlib. A SyntaxError has no other frames; its message has the location.
    own = [frame for frame in frames if not frame.filename.endswith(_NOT_THEIRS)]
    theirs = [frame for frame in own if "site-packages" not in frame.filename] or own
    place = f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{doing} raises {message}{place}"
