"""What a run is resumed from, and what may change in its configuration then: what results do not depend on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import inline, shown
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints, Unusable
from neuroevo.runs.metrics_files import check
from neuroevo.runs.paths import CHECKPOINTS


def check_changes(file: Path, after: Config) -> None:
    """Whether a run may go on with another configuration than it has had.

    What a file of the environment held when the run began is not known here: Checkpoints.check_file() knows.

    Args:
        file: Where the run's configuration is.
        after: What it is to go on with.

    Raises:
        UserError: They differ in what results depend on.
    """
    before = _before(file, after)
    free = before.environment.family.free_options
    for section, table in before.origin().items():
        other = after.origin()[section]
        for key in dict.fromkeys([*table, *other]):
            if table.get(key) != other.get(key):
                if section == "env" and key != "name":  # as they were given: a file by its path
                    key, table, other = "options", before.tables()["env"], after.tables()["env"]
                raise UserError(
                    f"{section}.{key} is {shown(table.get(key))} and cannot become {shown(other.get(key))} when a run "
                    "is resumed; what can: total_steps, generations and minutes of [training], [hardware], "
                    "[checkpoints], [cluster]" + (f", {' and '.join(free)} of [env.options]" if free else "")
                )


def newest_checkpoint(path: Path, config: Config) -> tuple[Checkpoint, list[Unusable]]:
    """Finds the checkpoint that a run goes on from.

    Args:
        path: The run's folder.
        config: What it is to go on with.

    Returns:
        The newest checkpoint that can be used, and the newer ones that were passed over.

    Raises:
        UserError: There is none, or a file of the environment has another content.
    """
    checkpoints = Checkpoints(path / CHECKPOINTS, config.checkpoints)
    checkpoints.check_file(config)
    checkpoint, unusable = checkpoints.newest(
        config.algorithm.state_type, config.origin(), lambda checkpoint: _check_files(path, checkpoint.lengths)
    )
    if checkpoint is None:
        found = "".join(f"\n  {each}" for each in unusable) or f" ({checkpoints.folder} has none)"
        raise UserError(f"{path} has no checkpoint to go on from:{found}")
    return checkpoint, unusable


def _check_files(path: Path, lengths: Mapping[str, int]) -> None:
    """ValueError when the metrics files are not those that a checkpoint remembers."""
    try:
        check(path, lengths)
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"remembers other files: {error}") from None


def _before(file: Path, after: Config) -> Config:
    """The configuration in `file`. Where a file of its environment is gone, with that which `after` has."""
    try:
        return load_config(file)
    except UserError:
        moved = after.environment.file
        if moved is None:
            raise
        return load_config(file, [f"env.options.{moved.option}={inline(str(moved.path))}"])
