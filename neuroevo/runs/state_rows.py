"""Storage of training states in run.db, each named by its number of finished generations."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import State
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.state_codec import Encoded, check_fields, decode, encode
from neuroevo.runs.database import Database
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes
from neuroevo.runs.values import Number, array_row, checksum
from neuroevo.system.reading import parse_json
from neuroevo.training.elite_evaluation import PendingEvaluation
from neuroevo.training.state import TrainState

log = logging.getLogger("neuroevo")
_KEYS = {"max_episode_steps", "confirmed_mean", "values", "genomes", "arrays"}


class StateError(ValueError):
    """Error: a state is unusable. The message is a predicate whose subject is the state, such as "is missing"."""


@dataclass(frozen=True)
class StoredState:
    """State that has been read from the database.

    Attributes:
        state: The state.
        known: Row numbers of the state's genomes and their ancestors.
        last: Row number of the last genome that was stored before the state.
    """

    state: TrainState
    known: Mapping[Genome, int]
    last: int


@dataclass(frozen=True)
class Unusable:
    """State that was skipped.

    Attributes:
        generation: Number of finished generations.
        file: The database file.
        reason: Why the state is unusable, as a predicate.
    """

    generation: int
    file: Path
    reason: str

    def __str__(self) -> str:
        return f"the state after generation {self.generation} in {self.file}: it {self.reason}"


def write_state(database: Database, state: TrainState, genomes: GenomeWriter) -> list[Genome]:
    """Store a state, in a transaction; a state of the same generation is replaced.

    Args:
        database: The run's database.
        state: The state.
        genomes: Writer of the state's genomes.

    Returns:
        The state's genomes.

    Raises:
        ValueError: The state has a value that cannot be stored.
    """
    encoded = encode(state.algorithm, state.pending, state.observation_statistics)
    rows = genomes.rows_of(encoded.genomes)
    arrays = [array_row(array, state.generation) for array in encoded.arrays]
    value = {
        "max_episode_steps": state.max_episode_steps,
        "confirmed_mean": state.confirmed_mean,
        "stopped": state.stopped,
        "values": encoded.values,
        "genomes": rows,
        "arrays": [row["checksum"] for row in arrays],
    }
    text = json.dumps(value, allow_nan=False)
    last = database.execute("SELECT max(id) FROM genomes").fetchone()[0] or 0
    row: dict[str, Any] = {"generation": state.generation, "steps": state.steps, "seconds": float(state.seconds)}
    row |= {"value": text, "last_genome": last}
    delete_states(database, [state.generation])
    database.insert("states", {**row, "checksum": checksum(*row.values())})
    for each in arrays:
        database.insert("arrays", each)
    for center in encoded.centers:
        number = genomes.center(center)
        weights = center.vector.astype("<f4", copy=False).tobytes()
        database.execute("UPDATE centers SET weights = ? WHERE id = ? AND weights IS NULL", [weights, number])
        database.insert("state_centers", {"state": state.generation, "center": number})
    return encoded.genomes


def delete_states(database: Database, generations: Sequence[int]) -> None:
    """Delete states, in a transaction, and the weights of centers that no remaining state needs."""
    for generation in generations:
        for table, column in (("arrays", "state"), ("state_centers", "state"), ("states", "generation")):
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", [generation])
    if generations:
        database.execute(
            "UPDATE centers SET weights = NULL "
            "WHERE weights IS NOT NULL AND id NOT IN (SELECT center FROM state_centers)"
        )


def generations_of_states(database: Database) -> list[int]:
    """Return the stored states, each as its number of finished generations, in ascending order."""
    return [number for (number,) in database.rows(tuple[int], "SELECT generation FROM states ORDER BY generation")]


def read_state(database: Database, generation: int, state_type: type, trust: bool = False) -> StoredState:
    """Read a state.

    Args:
        database: The run's database.
        generation: Number of finished generations.
        state_type: Class of the algorithm's states.
        trust: Whether to load a pickle in the state even if its origin is not trusted.

    Raises:
        StateError: The state is missing, is damaged, or does not match the class.
    """
    row: Any = database.row(
        tuple[int, int, Number, str, int, int],
        "SELECT generation, steps, seconds, value, last_genome, checksum FROM states WHERE generation = ?",
        [generation],
    )
    if row is None:
        raise StateError("is missing")
    try:
        if checksum(*row[:-1]) != row[-1]:
            raise ValueError("its checksum does not match")
        value = parse_json(row[3])
        if not isinstance(value, dict) or value.keys() - {"stopped"} != _KEYS:  # older runs lack "stopped"
            raise ValueError(f"its value is {str(value)[:80]}, expected {', '.join(sorted(_KEYS))}")
        found = _decode(database, row, value, state_type)
        check_fields(found.state, "the state")
    except ValueError as error:
        raise StateError(f"is damaged: {error}") from None
    if found.state.algorithm.pickle() is not None and not trust:
        raise StateError(
            "contains a pickle, which can run any code, and the run was not begun on this machine; if you trust its "
            "origin, pass --trust (in Python: trust=True)"
        )
    return found


def newest_state(database: Database, config: Config, trust: bool = False) -> tuple[StoredState, list[Unusable]]:
    """Return the newest state that a run can continue from, and the unusable newer states.

    Args:
        database: The run's database.
        config: The run's configuration.
        trust: See read_state().

    Raises:
        UserError: There is no such state.
    """
    unusable: list[Unusable] = []
    (count,) = database.row(tuple[int], "SELECT count(*) FROM generations")
    for generation in reversed(generations_of_states(database)):
        try:
            found = read_state(database, generation, config.algorithm.state_type, trust)
            _check_state(found.state, config)
            if generation > count:
                raise StateError(f"is later than the database's {count} generations")
            return found, unusable
        except ValueError as error:  # StateError is one
            reason = str(error) if isinstance(error, StateError) else f"cannot be used: {error}"
            unusable.append(Unusable(generation, database.file, reason))
    reasons = ":" + "".join(f"\n  {each}" for each in unusable) if unusable else f" ({database.file} has none)"
    raise UserError(f"{database.file.parent} has no state to continue from{reasons}")


def read_state_of(
    database: Database, config: Config, generation: int | None = None, trust: bool = False
) -> StoredState:
    """Read a state of a run; log unusable newer states.

    Args:
        database: The run's database.
        config: The run's configuration.
        generation: Number of finished generations; None selects the newest usable state.
        trust: See read_state().

    Raises:
        UserError: There is no such state, or it is unusable.
    """
    if generation is None:
        found, unusable = newest_state(database, config, trust)
        for each in unusable:
            log.warning("neuroevo: skipped %s", each)
        return found
    try:
        return read_state(database, generation, config.algorithm.state_type, trust)
    except StateError as error:
        there = ", ".join(map(str, generations_of_states(database))) or "none"
        raise UserError(
            f"the state after generation {generation} in {database.file} {error} (generations with a state: {there})"
        ) from None


def _check_state(state: TrainState, config: Config) -> None:
    """Check a state against the configuration. ValueError: it belongs to another configuration."""
    config.algorithm.check_state(state.algorithm)
    tests = config.training.test_episodes
    for each in state.pending:
        if len(each.steps) != tests:
            raise ValueError(f"{len(each.steps)} test episodes are pending, expected {tests}")


def _decode(database: Database, row: Sequence[Any], value: dict[str, Any], state_type: type) -> StoredState:
    """Decode a state. ValueError: its values are invalid."""
    generation, steps, seconds, _, last_genome, _ = row
    numbers = value["genomes"]
    if not isinstance(numbers, list) or not all(type(each) is int and 0 < each <= last_genome for each in numbers):
        raise ValueError(f"its genomes are {str(numbers)[:80]}, expected row numbers up to {last_genome}")
    genomes = read_genomes(database, numbers)
    query = "SELECT id, checksum FROM arrays WHERE state = ? ORDER BY id"
    arrays = database.rows(tuple[int, int], query, [generation])
    if [total for _, total in arrays] != value["arrays"]:
        raise ValueError(f"its {len(arrays)} arrays differ from the arrays that it was stored with")
    loaded: list[np.ndarray] = [database.array(number, generation) for number, _ in arrays]
    algorithm, pending, statistics = decode(
        Encoded(value["values"], [genomes[number] for number in numbers], loaded),
        state_type,
        tuple[PendingEvaluation, ...],
        ObservationStatistics | None,
    )
    assert isinstance(algorithm, State)
    state = TrainState(
        algorithm=algorithm,
        generation=generation,
        max_episode_steps=value["max_episode_steps"],
        steps=steps,
        seconds=seconds,
        pending=pending,
        observation_statistics=statistics,
        confirmed_mean=value["confirmed_mean"],
        stopped=value.get("stopped", ""),
    )
    return StoredState(state, {genome: number for number, genome in genomes.items()}, last_genome)
