"""A fork: a new run that goes on from another's checkpoint with other values of keys.

Its folder begins with the other run's history: the rows, the elites and the checkpoint up to where they part. What its
next generations are made from, the state, has to fit: environment, network, algorithm and the shape of its state stay.
Elites whose tests are not over play them anew where the fork has another seed or another number of them.
A snapshot is a fork without changes: a copy of a run as it is now, which nothing that the run deletes later can harm.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Algorithm
from neuroevo.config.load import load_run_config
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import BUDGETS, Config
from neuroevo.config.signature import SIGNATURE
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, refuse, shown
from neuroevo.core.user_module import KEPT
from neuroevo.runs.checkpoint import Checkpoint, CheckpointError, save
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.info_file import read_info, write_info
from neuroevo.runs.members import kept_bytes
from neuroevo.runs.new_folder import check_free
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, ELITES, MEMBERS, METRICS, REFERENCE
from neuroevo.runs.reader import RunReader
from neuroevo.runs.resume import check_files
from neuroevo.runs.state_codec import encode
from neuroevo.system.directory import Directory, make_folder, write_all
from neuroevo.training.elite_evaluation import PendingEvaluation
from neuroevo.training.state import TrainState

FORKED, SNAPSHOT = "forked_from", "snapshot_of"  # keys of info.json
_SECTIONS = ("hardware", "checkpoints", "cluster")  # results do not depend on them
_FREE_TRAINING = ("seed", "episodes", "max_episode_steps", "validation_episodes", "test_episodes", *BUDGETS)


@dataclass(frozen=True)
class Fork:
    """What a fork begins with.

    Attributes:
        source: The folder of the run that it comes from.
        config: Its own configuration.
        state: What its next generation starts from.
        lengths: Bytes of the source's files that are its history, by name.
        reference_batch: Of the source's networks, or None.
        provenance: For info.json: the source, its generation, the changes, and what the source was forked from.
    """

    source: Path
    config: Config
    state: TrainState
    lengths: Mapping[str, int]
    reference_batch: np.ndarray | None
    provenance: Mapping[str, Any]


def prepare(
    path: Path,
    source: Path | str,
    overrides: Sequence[str] = (),
    config: Config | None = None,
    generation: int | None = None,
    trust: bool = False,
) -> Fork:
    """Read what a fork starts with; write nothing.

    Args:
        path: The fork's folder; what is there of a fork that was killed while it was made is deleted.
        source: The folder of a run, which may be going on, or of a snapshot.
        overrides: Changes to its configuration, such as "algorithm.sigma=0.01".
        config: A configuration to use instead of the source's own with `overrides`.
        generation: After how many of its generations they part, of which there has to be a checkpoint; None: the
            newest usable checkpoint's.
        trust: Whether to run code and read models that the source names, whoever made it.

    Returns:
        The fork.

    Raises:
        ConfigError: A key has another value that the state does not allow.
        UserError: The folder holds a run, or there is no such run or checkpoint, or it cannot be used.
    """
    _clear_unfinished(path)
    check_free(path)
    reader = RunReader(source, trust=trust, like=config)
    before = reader.config
    after = config or load_run_config(reader.path / CONFIG, overrides, trust=trust, trains=True)
    check_fork(before, after)
    reader.check_file()
    checkpoint = _checkpoint(reader, generation, trust)
    info = read_info(reader.path)
    came_from = {FORKED: info[FORKED]} if FORKED in info else {}
    provenance = {
        "path": info.get(SNAPSHOT, str(reader.path.absolute())),
        "generation": checkpoint.state.generation,
        "changes": _changes(before, after),
        **came_from,
    }
    state = _adapted(checkpoint.state, before, after)
    return Fork(reader.path, after, state, checkpoint.lengths, reader.reference_batch(), provenance)


def check_fork(before: Config, after: Config) -> None:
    """Check that a run may continue with another configuration as a fork.

    Args:
        before: The run's.
        after: The fork's.

    Raises:
        ConfigError: A key has another value that the state does not allow; it names all such keys.
    """
    old, new = before.origin(), after.origin()
    problems = []
    for section in ("env", "network"):
        for key in dict.fromkeys([*old[section], *new[section]]):
            there, here = old[section].get(key), new[section].get(key)
            if there != here:
                problems.append(_problem(f"{section}.{key}", there, here))
    if before.algorithm_name != after.algorithm_name:
        problems.append(_problem("algorithm.name", before.algorithm_name, after.algorithm_name))
    else:
        problems += [
            _problem(f"algorithm.{key}", old["algorithm"].get(key), new["algorithm"].get(key))
            for key in _shaping_keys(before.algorithm, after.algorithm)
        ]
    for key in dict.fromkeys([*old["training"], *new["training"]]):
        there, here = old["training"].get(key), new["training"].get(key)
        if there != here and key not in _FREE_TRAINING:
            problems.append(_problem(f"training.{key}", there, here))
    refuse(problems)


def write_history(fork: Fork, folder: Directory) -> Mapping[str, int]:
    """Copy the history into the fork's folder, which holds no run: rows, elites, without the checkpoint.

    Args:
        fork: The fork.
        folder: Its folder.

    Returns:
        How long the files are, by name.

    Raises:
        OSError: It cannot be written.
    """
    for name, length in fork.lengths.items():
        _copy_beginning(fork.source / name, folder, length)
    _copy_members(fork.source, folder, fork.state.generation)
    return fork.lengths


def _clear_unfinished(path: Path) -> None:
    """Delete what a fork left that was killed before its folder was a run, so that it can be made again."""
    if (path / CONFIG).exists() or FORKED not in read_info(path):
        return
    for name in (METRICS, ELITES, MEMBERS):
        (path / name).unlink(missing_ok=True)
    shutil.rmtree(path / CHECKPOINTS, ignore_errors=True)


def write_snapshot(source: Path, checkpoint: Checkpoint, into: Path) -> None:
    """Copy a run in its current state.

    Args:
        source: The run's folder.
        checkpoint: Of its state now, whose lengths its files have at least.
        into: A folder without a run.

    Raises:
        OSError: It cannot be written.
    """
    make_folder(into)
    with Directory(into) as folder:
        for name, length in checkpoint.lengths.items():
            _copy_beginning(source / name, folder, length)
        _copy_members(source, folder, checkpoint.state.generation)
        for name in (REFERENCE, SIGNATURE):
            if (source / name).is_file():
                folder.write(name, (source / name).read_bytes())
        for file in sorted((source / KEPT).rglob("*.py")):
            folder.write_below(file.relative_to(source), file.read_bytes())
        with folder.below(CHECKPOINTS, make=True) as checkpoints:
            save(checkpoints, f"generation-{checkpoint.state.generation:06d}.ckpt", checkpoint)
        write_info(folder, {**read_info(source), SNAPSHOT: str(source.absolute())})
        folder.write(CONFIG, (source / CONFIG).read_bytes())  # last: with it the folder is a run


def _copy_members(source: Path, folder: Directory, generation: int) -> None:
    """Copy the members of the generations before this one, if they are kept."""
    if (source / MEMBERS).is_file():
        _copy_beginning(source / MEMBERS, folder, kept_bytes(source, generation))


def _copy_beginning(source: Path, folder: Directory, length: int) -> None:
    """Copy the first bytes of a file that may be growing into a folder."""
    folder.remove(source.name)
    new = folder.open_file(source.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with source.open("rb") as old:
            left = length
            while left and (block := old.read(min(left, 1 << 20))):
                write_all(new, block)
                left -= len(block)
        os.fsync(new)
    finally:
        os.close(new)
    if left:
        raise OSError(f"{source} is {left:,} bytes shorter than its checkpoint says")


def _checkpoint(reader: RunReader, generation: int | None, trust: bool) -> Checkpoint:
    """Load the checkpoint to fork at. UserError: there is none that can be used."""
    checkpoints = Checkpoints(reader.path / CHECKPOINTS, reader.config.checkpoints, trust)
    kind, origin = reader.config.algorithm.state_type, reader.config.origin()
    if generation is None:
        found, unusable = checkpoints.newest(kind, origin, lambda checkpoint: check_files(reader.path, checkpoint))
        if found is None:
            raise UserError(f"{reader.path} has no checkpoint to fork" + "".join(f"\n  {each}" for each in unusable))
        return found
    path = checkpoints.path(generation)
    try:
        checkpoint = checkpoints.load(generation, kind, origin)
    except CheckpointError as error:
        there = ", ".join(map(str, checkpoints.generations())) or "none"
        raise UserError(f"{path} {error} (generations with a checkpoint: {there})") from None
    try:
        check_files(reader.path, checkpoint)
    except ValueError as error:
        raise UserError(f"{path} {error}") from None
    return checkpoint


def _problem(key: str, before: Any, after: Any) -> Problem:
    was = "not set" if before is None else shown(before)
    return Problem(key, f"cannot change in a fork, whose state was made with {was}", after)


def _changes(before: Config, after: Config) -> dict[str, list[Any]]:
    """Return the keys that differ, each with its values before and after; None where it is not set."""
    old, new = before.tables(), after.tables()
    found = {}
    for section in dict.fromkeys([*old, *new]):
        there, here = old.get(section, {}), new.get(section, {})
        for key in dict.fromkeys([*there, *here]):
            if there.get(key) != here.get(key) and section not in _SECTIONS:
                found[f"{section}.{key}"] = [there.get(key), here.get(key)]
    return found


def _adapted(state: TrainState, before: Config, after: Config) -> TrainState:
    """Return the state with the fork's seed, cut-off and number of test episodes."""
    algorithm = replace(state.algorithm, seed=after.training.seed)
    steps = state.max_episode_steps
    if before.training.max_episode_steps != after.training.max_episode_steps:
        steps = parse_max_episode_steps(after.training.max_episode_steps).start
    old, new = before.training, after.training
    pending = state.pending
    if (old.seed, old.test_episodes) != (new.seed, new.test_episodes):  # other test episodes: all are played anew
        count = new.test_episodes
        pending = tuple(
            PendingEvaluation(each.record, np.zeros(count), np.zeros(count, np.int64)) for each in state.pending
        )
    return replace(state, algorithm=algorithm, max_episode_steps=steps, pending=pending)


def _shaping_keys(before: Any, after: Any) -> list[str]:
    """Find the keys of two algorithms of one class whose values change the layout of states."""
    names = [
        field.name for field in dataclasses.fields(before) if getattr(before, field.name) != getattr(after, field.name)
    ]
    if not names or _shape(before) == _shape(after):
        return []
    alone = []
    for name in names:
        try:
            changed = replace(before, **{name: getattr(after, name)})
        except (ConfigError, ValueError):  # it makes sense with the other changes only
            continue
        if _shape(changed) != _shape(before):
            alone.append(name)
    return alone or names


def _shape(algorithm: Algorithm) -> Any:
    """Return what of an algorithm shapes its state: recorded behaviors, its own layout, and the first state's."""
    encoded = encode(algorithm.init(0))
    built = [_outline(value) for value in encoded.values], [array.shape for array in encoded.arrays]
    return algorithm.behavior, algorithm.state_layout, built


def _outline(value: Any) -> Any:
    """Return a state's JSON without its numbers and texts."""
    if isinstance(value, Mapping):
        return {key: _outline(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_outline(each) for each in value]
    return None
