"""States of a run as rows of run.db: what the generation after so many finished ones starts from."""

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
    """A state cannot be used; the message says why, as the end of a sentence that begins with its number."""


@dataclass(frozen=True)
class StoredState:
    """A state that has been read.

    Attributes:
        state: The state.
        known: The numbers of the rows of its genomes and of their ancestors.
        last: The number of the last row of genomes that is not later than the state.
    """

    state: TrainState
    known: Mapping[Genome, int]
    last: int


@dataclass(frozen=True)
class Unusable:
    """A state that was passed over.

    Attributes:
        generation: The number of finished generations.
        file: The database.
        reason: Why it cannot be used.
    """

    generation: int
    file: Path
    reason: str

    def __str__(self) -> str:
        return f"the state after generation {self.generation} in {self.file}: it {self.reason}"


def write_state(database: Database, state: TrainState, genomes: GenomeWriter) -> list[Genome]:
    """Store a state, in a transaction; one of the same generation is replaced.

    Args:
        database: The run's.
        state: The state.
        genomes: Writes the genomes that the state consists of.

    Returns:
        These genomes.

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
    """Delete states, in a transaction, and the weights of centers that no state needs any more."""
    for generation in generations:
        for table, column in (("arrays", "state"), ("state_centers", "state"), ("states", "generation")):
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", [generation])
    if generations:
        database.execute(
            "UPDATE centers SET weights = NULL "
            "WHERE weights IS NOT NULL AND id NOT IN (SELECT center FROM state_centers)"
        )


def generations_of_states(database: Database) -> list[int]:
    """Return the numbers of finished generations of which there is a state, in order."""
    return [number for (number,) in database.rows(tuple[int], "SELECT generation FROM states ORDER BY generation")]


def read_state(database: Database, generation: int, state_type: type, trust: bool = False) -> StoredState:
    """Read a state.

    Args:
        database: The run's.
        generation: The number of finished generations.
        state_type: The class of the algorithm's states.
        trust: Whether to use a pickle in it, whoever wrote it.

    Raises:
        StateError: There is none, or it is damaged or does not fit the class.
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
            raise ValueError("its checksum is another one")
        value = parse_json(row[3])
        if not isinstance(value, dict) or value.keys() - {"stopped"} != _KEYS:  # which came after the others
            raise ValueError(f"its value is {str(value)[:80]}, expected {', '.join(sorted(_KEYS))}")
        found = _decode(database, row, value, state_type)
        check_fields(found.state, "the state")
    except ValueError as error:
        raise StateError(f"is damaged: {error}") from None
    if found.state.algorithm.pickle() is not None and not trust:
        raise StateError(
            "holds a pickle, which can run any code, and the run was not begun on this machine; if you trust whoever "
            "made it, say so with --trust (in Python: trust=True)"
        )
    return found


def newest_state(database: Database, config: Config, trust: bool = False) -> tuple[StoredState, list[Unusable]]:
    """Read the newest state that a run can continue from, and which newer ones cannot be used.

    Args:
        database: The run's.
        config: Its configuration.
        trust: As read_state() takes it.

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
    """Read a state of a run; log newer ones that cannot be used.

    Args:
        database: The run's.
        config: Its configuration.
        generation: The number of finished generations; None: the newest state that can be used.
        trust: As read_state() takes it.

    Raises:
        UserError: There is no such state, or it cannot be used.
    """
    if generation is None:
        found, unusable = newest_state(database, config, trust)
        for each in unusable:
            log.warning("neuroevo: passed over %s", each)
        return found
    try:
        return read_state(database, generation, config.algorithm.state_type, trust)
    except StateError as error:
        there = ", ".join(map(str, generations_of_states(database))) or "none"
        raise UserError(
            f"the state after generation {generation} in {database.file} {error} (generations with a state: {there})"
        ) from None


def _check_state(state: TrainState, config: Config) -> None:
    """Check a state against the configuration. ValueError: it was made with another one."""
    config.algorithm.check_state(state.algorithm)
    tests = config.training.test_episodes
    for each in state.pending:
        if len(each.steps) != tests:
            raise ValueError(f"{len(each.steps)} test episodes are pending, expected {tests}")


def _decode(database: Database, row: Sequence[Any], value: dict[str, Any], state_type: type) -> StoredState:
    """ValueError: it does not fit."""
    generation, steps, seconds, _, last_genome, _ = row
    numbers = value["genomes"]
    if not isinstance(numbers, list) or not all(type(each) is int and 0 < each <= last_genome for each in numbers):
        raise ValueError(f"its genomes are {str(numbers)[:80]}, expected numbers of rows up to {last_genome}")
    genomes = read_genomes(database, numbers)
    query = "SELECT id, checksum FROM arrays WHERE state = ? ORDER BY id"
    arrays = database.rows(tuple[int, int], query, [generation])
    if [total for _, total in arrays] != value["arrays"]:
        raise ValueError(f"its {len(arrays)} arrays are not those that it was stored with")
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
