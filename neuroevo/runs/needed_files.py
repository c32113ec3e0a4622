"""The files beside checkpoints and metrics without which a run cannot be gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.runs import reference_file
from neuroevo.runs.paths import CONFIG, REFERENCE
from neuroevo.system.appended_file import LostFile
from neuroevo.system.directory import Directory
from neuroevo.system.reading import read_regular


def write_missing(folder: Directory, config: Config, batch: np.ndarray | None) -> list[Path]:
    """Write config.toml, and before it reference.npy, where they are missing or have another content.

    Args:
        folder: The run's folder.
        config: The run's configuration.
        batch: Its reference batch, if its network needs one.

    Returns:
        The files that were missing.

    Raises:
        LostFile: A file had another content, which is kept beside it.
        OSError: A file cannot be read or written.
    """
    needed = {} if batch is None else {REFERENCE: reference_file.content(batch)}
    missing = []
    for name, content in {**needed, CONFIG: config.toml().encode()}.items():
        path = folder.path / name
        try:
            found = read_regular(path)
        except FileNotFoundError:
            folder.write(name, content)
            missing.append(path)
            continue
        if found != content:
            folder.write(f"{name}.changed", found)
            folder.write(name, content)
            raise LostFile(
                f"{path} was changed meanwhile; its own content was written again, and the other is in {path}.changed"
            )
    return missing
