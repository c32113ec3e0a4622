"""The user's own modules that a run's configuration names: their source is kept in the run's folder.

There they are found when the run is looked at from a folder in which they are not, and there is what the run was made
with once they have changed. A module that a module imports is not kept.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuroevo.config.named import named_code
from neuroevo.config.schema import Config
from neuroevo.config.signature import kept_path, write_signature
from neuroevo.core.user_module import names
from neuroevo.system.directory import Directory
from neuroevo.system.user_key import NoKeyError


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
        What the run records of them: own_modules, by name the SHA-256 and the path of the file; nothing without any.

    Raises:
        OSError: They cannot be read or written.
    """
    kept = {}
    for name, source in _sources(config).items():
        copy = kept_path(folder.path, name)
        if source.resolve() != copy.resolve():
            folder.write_below(copy.relative_to(folder.path), source.read_bytes())
        kept[name] = {"sha256": _sha256(copy), "path": str(source)}
    return {"own_modules": kept} if kept else {}


def sign(folder: Directory, config: Config, before: Sequence[str] = ()) -> list[str]:
    """Signs a run as made by this user, if it names modules or models that are not the package's.

    Args:
        folder: The run's folder, in which the modules' source is kept.
        config: What its configuration is to be.
        before: Configurations that it has had, as TOML, which stay signed.

    Returns:
        Nothing, or the sentence that it could not be signed, and why.

    Raises:
        OSError: The signature cannot be written.
    """
    named = named_code(config.tables())
    if not named:
        return []
    try:
        write_signature(folder, [config.toml(), *before], named)
    except NoKeyError as error:
        return [f"the run is not signed as made here, so that commands will ask for --trust to look at it: {error}"]
    return []


def changed_modules(config: Config, folder: Path) -> list[str]:
    """Sentences about modules that are no longer what a run's folder keeps.

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
