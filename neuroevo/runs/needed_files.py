"""The files beside checkpoints and metrics without which a run cannot be gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.runs import reference_file
from neuroevo.runs.paths import CONFIG, REFERENCE
from neuroevo.system.directory import Directory


def write_missing(folder: Directory, config: Config, batch: np.ndarray | None) -> list[Path]:
    """Writes config.toml, and before it reference.npy, where they are not there.

    Args:
        folder: The run's folder.
        config: The run's configuration.
        batch: Its reference batch, if its network needs one.

    Returns:
        What was missing.

    Raises:
        OSError: It cannot be written.
    """
    needed = [CONFIG] if batch is None else [REFERENCE, CONFIG]
    missing = [name for name in needed if folder.status(name) is None]
    for name in missing:
        if name == CONFIG:
            folder.write(CONFIG, config.toml().encode())
        elif batch is not None:
            reference_file.save(folder, batch)
    return [folder.path / name for name in missing]
