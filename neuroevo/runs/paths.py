"""The names of the files and folders in a run's folder."""

from __future__ import annotations

from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.system.files import nearest_file

CONFIG = "config.toml"  # the configuration with every default filled in; with it the folder is a run
REFERENCE = "reference.npy"  # the reference batch of a network with virtual batch normalization
INFO = "info.json"  # command, seed, versions, git commit and machine of the start and of every resumption
METRICS = "metrics.jsonl"  # one line per finished generation
CSV = "metrics.csv"  # the same numbers for spreadsheets
ELITES = "elites.jsonl"  # the elite of every generation
CHECKPOINTS = "checkpoints"  # the folder of checkpoints, from which the run can be resumed
JOURNAL = "journal.bin"  # outcomes of episodes that no checkpoint knows of yet; there while the run goes on, or stopped
TENSORBOARD = "tensorboard"  # the folder of event files
LOG = "log.txt"  # what happened when


def no_run(path: Path) -> UserError:
    """The error about a folder without a run.

    Args:
        path: The folder.
    """
    return UserError(
        f"there is no run in {path}: expected {path / CONFIG}{'' if path.exists() else nearest_file(path)}"
    )
