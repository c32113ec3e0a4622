"""What a run goes on from when it is resumed.

Its configuration may change only in what results do not depend on: budgets, [hardware], [checkpoints], workers and
timeout of Gymnasium's environments, and where an environment's file is, if its content is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroevo.config.load import load_run_config
from neuroevo.config.schema import Config
from neuroevo.config.trust import require_trust
from neuroevo.core.errors import UserError, cannot_read
from neuroevo.core.problems import inline, shown
from neuroevo.runs import reference_file
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints, Unusable
from neuroevo.runs.folder_lock import open_locked
from neuroevo.runs.metrics_files import check
from neuroevo.runs.other_versions import refuse_other_versions
from neuroevo.runs.own_modules import changed_modules
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, check_names, is_run, no_run, readable
from neuroevo.system.directory import Directory


@dataclass(frozen=True)
class Resumed:
    """What a resumed run goes on with.

    Attributes:
        folder: Its folder, locked, which whoever gets this has to close.
        config: Its configuration from now on.
        checkpoint: Its newest usable checkpoint.
        unusable: The newer checkpoints, which cannot be used.
        changed: A sentence for each of the user's own modules that is another one than when the run began.
        own: Whether what it names is this user's own or trusted, so that it may be signed as it goes on.
        reference_batch: Of its networks, or None.
    """

    folder: Directory
    config: Config
    checkpoint: Checkpoint
    unusable: list[Unusable]
    changed: list[str]
    own: bool
    reference_batch: np.ndarray | None


def prepare_resume(
    path: Path, overrides: Sequence[str] = (), config: Config | None = None, trust: bool = False
) -> Resumed:
    """Locks a run's folder and reads what the run goes on with; writes nothing.

    Args:
        path: The folder.
        overrides: Changes to the run's own configuration, such as "training.generations=9".
        config: A configuration to use instead of the run's own with `overrides`.
        trust: Whether to run code and read models that the run names, whoever made it.

    Returns:
        What the run goes on with.

    Raises:
        DiskError: The disk is broken.
        NotTrustedError: It names what is not the package's, and is not trusted.
        UserError: There is no run or no usable checkpoint, another version of neuroevo made the run, another process
            trains into the folder, a file in it is a link, or a change of the configuration would change results.
    """
    if not is_run(path):
        raise no_run(path)
    with readable(path), ExitStack() as opened:
        folder = opened.enter_context(open_locked(path))
        check_names(folder)
        refuse_other_versions(path)
        own = require_trust(path / CONFIG, overrides, trust=trust, like=config, trains=config is None)
        config = config or load_run_config(path / CONFIG, overrides, trust=trust, trains=True)
        _check_changes(path / CONFIG, config, trust)
        changed = changed_modules(config, path)
        checkpoint, unusable = _newest_checkpoint(path, config, trust)
        made = Resumed(folder, config, checkpoint, unusable, changed, own, reference_file.load(path, config))
        opened.pop_all()
    return made


def _check_changes(file: Path, after: Config, trust: bool) -> None:
    """UserError: what a run is to go on with differs from the configuration in `file` in what results depend on.

    What a file of the environment held when the run began is not known here: Checkpoints.check_file() knows.
    """
    before = _before(file, after, trust)
    free = before.environment.free_options
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


def _newest_checkpoint(path: Path, config: Config, trust: bool) -> tuple[Checkpoint, list[Unusable]]:
    """Load the newest checkpoint that can be used, and list the newer ones, which cannot.

    DiskError: There are some, and the disk gives none of them.
    UserError: There is none, or a file of the environment has another content.
    """
    checkpoints = Checkpoints(path / CHECKPOINTS, config.checkpoints, trust)
    checkpoints.check_file(config)

    def check(checkpoint: Checkpoint) -> None:
        _check_state(checkpoint, config)
        check_files(path, checkpoint)

    checkpoint, unusable = checkpoints.newest(config.algorithm.state_type, config.origin(), check)
    if checkpoint is None:
        unread = [each.unread for each in unusable if each.unread is not None]
        if unread and len(unread) == len(unusable):
            raise cannot_read(f"checkpoint {unusable[0].path}", unread[0])
        found = "".join(f"\n  {each}" for each in unusable) or f" ({checkpoints.folder} has none)"
        raise UserError(f"{path} has no checkpoint to go on from:{found}")
    return checkpoint, unusable


def _check_state(checkpoint: Checkpoint, config: Config) -> None:
    """Check a state against the configuration. ValueError: it was made with another one."""
    config.algorithm.check_state(checkpoint.state.algorithm)
    tests = config.training.test_episodes
    for each in checkpoint.state.pending:
        if len(each.steps) != tests:
            raise ValueError(f"does not fit this run: {len(each.steps)} test episodes are pending, expected {tests}")


def check_files(path: Path, checkpoint: Checkpoint) -> None:
    """Check that a run's metrics files are those that a checkpoint remembers.

    Args:
        path: The run's folder.
        checkpoint: One of its checkpoints.

    Raises:
        OSError: They cannot be read.
        ValueError: They are not, or are damaged.
    """
    state = checkpoint.state
    try:
        check(path, checkpoint.lengths, state.generation - len(state.pending))
    except (ValueError, KeyError) as error:
        raise ValueError(f"remembers other files: {error}") from None


def _before(file: Path, after: Config, trust: bool) -> Config:
    """Load the configuration in `file`; if a file of its environment is gone, with the one of `after`."""
    try:
        return load_run_config(file, trust=trust, like=after)
    except UserError:
        moved = after.environment.file
        if moved is None:
            raise
        return load_run_config(file, [f"env.options.{moved.option}={inline(str(moved.path))}"], trust=trust, like=after)
