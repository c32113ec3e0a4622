"""The user's own modules that a run's configuration names: their source is kept in the run's folder.

There they are found when the run is looked at from a folder in which they are not, and there is what the run was made
with once they have changed. A module that a module imports is not kept.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.user_module import KEPT, names
from neuroevo.system.directory import Directory


def _sources(config: Config) -> dict[str, Path]:
    """The files of the modules by their names; without those that are no file of Python's source."""
    named = [names(name) for name in (config.algorithm_name, config.network.name) if ":" in name]
    files = {parts[0]: getattr(sys.modules.get(parts[0]), "__file__", None) for parts in named if parts is not None}
    return {name: Path(file) for name, file in files.items() if file is not None and file.endswith(".py")}


def keep_sources(config: Config, folder: Directory) -> dict[str, Any]:
    """Copies the modules' source into a run's folder.

    Args:
        config: The run's configuration.
        folder: The run's folder.

    Returns:
        What info.json says of them: own_modules, by name the SHA-256 and the path of the file; nothing without any.

    Raises:
        OSError: They cannot be read or written.
    """
    kept = {}
    for name, source in _sources(config).items():
        copy = _copy(folder.path, name)
        if source.resolve() != copy.resolve():
            _write(folder, copy.relative_to(folder.path), source.read_bytes())
        kept[name] = {"sha256": _sha256(copy), "path": str(source)}
    return {"own_modules": kept} if kept else {}


def changed_modules(config: Config, folder: Path) -> list[str]:
    """Sentences about modules that are no longer what a run's folder keeps.

    Args:
        config: The run's configuration.
        folder: The run's folder.
    """
    return [
        f"{source} has changed since the run began, which may change its results: {_copy(folder, name)} is what it was"
        for name, source in _sources(config).items()
        if _copy(folder, name).is_file() and _sha256(source) != _sha256(_copy(folder, name))
    ]


def _write(folder: Directory, file: Path, data: bytes) -> None:
    """Writes a file into a folder below another one."""
    if len(file.parts) == 1:
        return folder.write(file.name, data)
    with folder.below(file.parts[0], make=True) as inner:
        return _write(inner, Path(*file.parts[1:]), data)


def _copy(folder: Path, name: str) -> Path:
    return folder / KEPT / Path(*name.split(".")).with_suffix(".py")


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
