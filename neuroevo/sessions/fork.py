"""Fork a run: start a new run that continues from another run's state with a changed configuration.

The fork's database starts with a copy of the source run's history. The state must remain valid, so the environment, the
network, the algorithm and the layout of its state cannot change. If the fork has another seed or another number of test
episodes, the test episodes of elites whose tests are unfinished are played again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Algorithm
from neuroevo.config.load import load_run_config
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.own_runs import is_own
from neuroevo.config.schema import BUDGETS, Config
from neuroevo.core.problems import ConfigError, Problem, refuse, shown
from neuroevo.core.state_codec import encode
from neuroevo.runs.about import FORKED, About, read_about, write_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.episode_rows import forget_episodes
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.paths import CONFIG, check_free
from neuroevo.runs.reader import RunReader
from neuroevo.runs.state_rows import (
    StoredState,
    delete_states,
    generations_of_states,
    read_state_of,
    write_state,
)
from neuroevo.sessions.resume import cut_back, differences
from neuroevo.sessions.warm_start import reference_of
from neuroevo.training.elite_evaluation import PendingEvaluation
from neuroevo.training.state import TrainState

_SECTIONS = ("hardware", "checkpoints", "cluster")  # results do not depend on them
_FREE_TRAINING = ("seed", "episodes", "max_episode_steps", "validation_episodes", "test_episodes", *BUDGETS)


@dataclass(frozen=True)
class Fork:
    """Initial content of a fork.

    Attributes:
        source: The folder of the source run.
        config: The fork's configuration.
        stored: The state that the next generation starts from, with the ids of its rows in the source's database.
        reference_batch: Reference batch of the networks, [128, ...], or None.
        provenance: Recorded in the fork's info: source, generation, changes, and the provenance of a forked source.
    """

    source: Path
    config: Config
    stored: StoredState
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
    """Read the initial content of a fork; write nothing. The arguments are those of RunFolder.fork().

    Raises:
        ConfigError: The state does not allow a change of the configuration.
        UserError: The folder holds a run, or the source run or state does not exist or cannot be used.
    """
    check_free(path)
    trust = trust or is_own(Path(source) / DATABASE)
    reader = RunReader(source, trust=trust, like=config)
    before = reader.config
    about = reader.about()
    after = config or load_run_config(
        reader.path / CONFIG, overrides, recorded=about.recorded, trust=trust, trains=True
    )
    check_fork(before, after)
    reader.check_file()
    with Database(reader.path / DATABASE) as database:
        found = read_state_of(database, before, generation, trust)
    info = about.info
    came_from = {FORKED: info[FORKED]} if FORKED in info else {}
    provenance = {
        "path": str(reader.path.absolute()),
        "generation": found.state.generation,
        "changes": {
            f"{section}.{key}": [there, here]
            for section, key, there, here in differences(before.tables(), after.tables())
            if section not in _SECTIONS
        },
        **came_from,
    }
    stored = replace(found, state=_adapted(found.state, before, after))
    return Fork(reader.path, after, stored, reference_of(after, reader), provenance)


def check_fork(before: Config, after: Config) -> None:
    """Check that a run may continue with another configuration as a fork.

    Args:
        before: The source run's configuration.
        after: The fork's configuration.

    Raises:
        ConfigError: The state does not allow a change of the configuration; the error lists all such keys.
    """
    same_class = before.algorithm_name == after.algorithm_name
    shaping = _shaping_keys(before.algorithm, after.algorithm) if same_class else ["name"]
    problems = []
    for section, key, there, here in differences(before.origin(), after.origin()):
        free = key in _FREE_TRAINING if section == "training" else section == "algorithm" and key not in shaping
        if not free:
            was = "not set" if there is None else shown(there)
            reason = f"cannot change in a fork, whose state was made with {was}"
            problems.append(Problem(f"{section}.{key}", reason, here))
    refuse(problems)


def write_fork(database: Database, fork: Fork, info: Mapping[str, Any]) -> GenomeWriter:
    """Convert a copy of the source's database to a fork's, in a transaction; return the writer of further genomes.

    Args:
        database: The copy of the source's database.
        fork: The fork.
        info: Provenance of the fork: command, versions and machine.
    """
    genomes, reference = cut_back(database, fork.stored), read_about(database).reference
    if reference is None and fork.reference_batch is not None:
        reference = database.add_array(fork.reference_batch)
    delete_states(database, generations_of_states(database))  # since the source may have deleted this state meanwhile
    write_state(database, fork.stored.state, genomes)
    forget_episodes(database)
    database.execute("DELETE FROM sessions")
    write_about(
        database,
        About(
            fork.config.toml(),
            fork.config.origin(),
            {FORKED: fork.provenance, **info},
            reference,
        ),
    )
    return genomes


def _adapted(state: TrainState, before: Config, after: Config) -> TrainState:
    """Return the state with the fork's seed, cut-off and number of test episodes."""
    algorithm = replace(state.algorithm, seed=after.training.seed)
    steps = state.max_episode_steps
    if before.training.max_episode_steps != after.training.max_episode_steps:
        steps = parse_max_episode_steps(after.training.max_episode_steps).start
    old, new = before.training, after.training
    pending = state.pending
    if (old.seed, old.test_episodes) != (new.seed, new.test_episodes):  # test episodes differ: play all again
        count = new.test_episodes
        pending = tuple(
            PendingEvaluation(each.record, np.zeros(count), np.zeros(count, np.int64)) for each in state.pending
        )
    return replace(state, algorithm=algorithm, max_episode_steps=steps, pending=pending, stopped="")


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
        except (ConfigError, ValueError):  # valid only together with the other changes
            continue
        if _shape(changed) != _shape(before):
            alone.append(name)
    return alone or names


def _shape(algorithm: Algorithm) -> Any:
    """Return what determines the layout of an algorithm's state: behavior, declared layout, and the initial state."""
    encoded = encode(algorithm.init(0))
    built = [_outline(value) for value in encoded.values], [array.shape for array in encoded.arrays]
    return algorithm.behavior, algorithm.state_layout, built


def _outline(value: Any) -> Any:
    """Return the structure of a state's JSON without numbers and strings."""
    if isinstance(value, Mapping):
        return {key: _outline(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_outline(each) for each in value]
    return None
