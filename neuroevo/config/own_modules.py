"""Copies of the user's modules that a run's configuration references, in the run's folder.

The copies are imported if the modules are not found when the run is inspected, and they document the source that the
run used if the modules change. Modules that these modules import are not copied.
"""

from __future__ import annotations

import hashlib
import stat
import sys
from pathlib import Path
from typing import Any

from neuroevo.config.named import named_code
from neuroevo.config.own_runs import list_path, remember
from neuroevo.config.schema import Config
from neuroevo.config.trust import kept_path
from neuroevo.core.user_module import names
from neuroevo.system.files import check_kind, make_folder, write_atomically


def _sources(config: Config) -> dict[str, Path]:
    """Return the modules' files by module name, without modules that are not Python source files."""
    named = [names(name) for name in (config.algorithm_name, config.network.name) if ":" in name]
    files = {parts[0]: getattr(sys.modules.get(parts[0]), "__file__", None) for parts in named if parts is not None}
    return {name: Path(file) for name, file in files.items() if file is not None and file.endswith(".py")}


def keep_sources(config: Config, folder: Path) -> dict[str, Any]:
    """Copy the modules' source into a run's folder.

    Args:
        config: The run's configuration.
        folder: The run's folder.

    Returns:
        The info that the run records: own_modules, the SHA-256 and the path of each file by module name; empty without
        modules.

    Raises:
        OSError: A module cannot be read or written.
    """
    kept = {}
    for name, source in _sources(config).items():
        copy = kept_path(folder, name)
        if source.resolve() != copy.resolve():
            for above in reversed(copy.relative_to(folder).parents[:-1]):
                check_kind(folder / above, stat.S_IFDIR)
                make_folder(folder / above)
            write_atomically(copy, source.read_bytes())
        kept[name] = {"sha256": _sha256(copy), "path": str(source)}
    return {"own_modules": kept} if kept else {}


def remember_own(config: Config, database: Path, path: Path | None = None) -> list[str]:
    """Add a run to the user's list of runs, if it references external code or models.

    Args:
        config: The run's configuration.
        database: The run's database.
        path: The path of the database after it is renamed; None if it is not renamed.

    Returns:
        An empty list, or a warning that the list cannot be written.
    """
    if named_code(config.tables()):
        try:
            remember(database, path)
        except OSError as error:
            return [f"cannot write {list_path()}: {error.strerror}; commands that read the run will require --trust"]
    return []


def changed_modules(config: Config, folder: Path) -> list[str]:
    """Return a warning for each module that differs from the copy in a run's folder.

    Args:
        config: The run's configuration.
        folder: The run's folder.
    """
    return [
        f"{source} has changed since the run began, which may change its results; {copy} is the original"
        for name, source in _sources(config).items()
        if (copy := kept_path(folder, name)).is_file() and _sha256(source) != _sha256(copy)
    ]


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
