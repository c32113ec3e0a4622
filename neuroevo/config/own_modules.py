"""The user's own modules that a run's configuration names: their source is kept in the run's folder.

There they are found when the run is looked at from a folder in which they are not, and there is what the run was made
with once they have changed. A module that a module imports is not kept.
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
    """Return the files of the modules by their names; without those that are no file of Python's source."""
    named = [names(name) for name in (config.algorithm_name, config.network.name) if ":" in name]
    files = {parts[0]: getattr(sys.modules.get(parts[0]), "__file__", None) for parts in named if parts is not None}
    return {name: Path(file) for name, file in files.items() if file is not None and file.endswith(".py")}


def keep_sources(config: Config, folder: Path) -> dict[str, Any]:
    """Copy the modules' source into a run's folder.

    Args:
        config: The run's configuration.
        folder: The run's folder.

    Returns:
        What the run records of them: own_modules, by name the SHA-256 and the path of the file; nothing without any.

    Raises:
        OSError: They cannot be read or written.
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
    """Add a run to the user's list of runs, if it names external code or models.

    Args:
        config: Its configuration.
        database: Its database.
        path: Where the database will be, if it is renamed.

    Returns:
        Nothing, or the sentence that this failed, and why.
    """
    if named_code(config.tables()):
        try:
            remember(database, path)
        except OSError as error:
            return [
                f"{list_path()} cannot be written, so that commands will ask for --trust to look at the run: "
                f"{error.strerror}"
            ]
    return []


def changed_modules(config: Config, folder: Path) -> list[str]:
    """Return sentences about modules that are no longer what a run's folder keeps.

    Args:
        config: The run's configuration.
        folder: The run's folder.
    """
    return [
        f"{source} has changed since the run began, which may change its results: {copy} is what it was"
        for name, source in _sources(config).items()
        if (copy := kept_path(folder, name)).is_file() and _sha256(source) != _sha256(copy)
    ]


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
