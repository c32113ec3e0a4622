"""Storage of finished generations in run.db: their metrics and elites."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.problems import inline
from neuroevo.runs.database import Database
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes
from neuroevo.runs.members import fitness_of
from neuroevo.runs.values import Number, array_of, checksum
from neuroevo.system.reading import parse_json
from neuroevo.training.record import COLUMNS, NOT_EVALUATED, RETRIES, GenerationRecord, Record, checked_metrics

_COLUMNS = tuple(name for name in COLUMNS if name not in ("generation", "fitness"))
_WHOLE = ("max_episode_steps", "steps_", "frames_", "failures_")  # prefixes of integer columns
_MAYBE = ("validation_mean", "test_mean", "test_standard_error")
_NAMES = ("generation", "tested", "elite", *_COLUMNS, "metrics", "normalizer_mean", "normalizer_std")


def _kind(name: str) -> Any:
    if name.startswith(_WHOLE) and name != "steps_per_s":
        return int
    return Number | None if name in _MAYBE else Number


_KINDS = (int, int, int, *map(_kind, _COLUMNS), str, bytes | None, bytes | None, int)
_ROW: Any = tuple[_KINDS]  # type: ignore[valid-type]


def write_generation(database: Database, record: GenerationRecord | Record, genomes: GenomeWriter) -> None:
    """Store a generation's metrics and elite, replacing a stored row.

    Args:
        database: The run's database, in a transaction.
        record: The generation; a Record if its elite has been tested.
        genomes: Writer of the elite's genome.
    """
    tested = isinstance(record, Record)
    values = (record if isinstance(record, Record) else record.evaluated(NOT_EVALUATED)).row()
    seen = record.normalizer
    row: dict[str, Any] = {"generation": record.generation, "tested": int(tested)}
    row["elite"] = genomes.rows_of([record.elite])[0]
    row |= {name: _stored(name, values[name]) for name in _COLUMNS}
    row["metrics"] = json.dumps(dict(record.extra_metrics), allow_nan=False)
    row["normalizer_mean"] = None if seen is None else seen.mean.astype("<f8").tobytes()
    row["normalizer_std"] = None if seen is None else seen.std.astype("<f8").tobytes()
    database.insert("generations", {**row, "checksum": checksum(*row.values())}, replace=True)


def rows_of(database: Database, first: int = 0, fitness: bool = True) -> list[dict[str, Any]]:
    """Read the rows of generations whose elite has been tested.

    Args:
        database: The run's database.
        first: First generation.
        fitness: Whether to include the list of all members' fitness in each row.

    Returns:
        The rows in the format of Record.row(), starting with generation `first`.

    Raises:
        DamagedError: A row is damaged or missing.
    """
    last = last_generation(database)
    found: list[dict[str, Any]] = []
    for row in _checked(database, first, last + 1):
        if not row[1]:
            raise database.damaged(f"generation {row[0]} is missing")
        found.append(_row(database, row))
    if fitness and found:
        every = fitness_of(database, first, first + len(found))
        for each, values in zip(found, every, strict=True):
            each["fitness"] = values.tolist()
    return found


def last_generation(database: Database) -> int:
    """Return the last generation whose elite has been tested; -1 before the first.

    Raises:
        DamagedError: A row is damaged or missing.
    """
    (count,) = database.row(tuple[int], "SELECT count(*) FROM generations")
    (members,) = database.row(tuple[int], "SELECT count(*) FROM populations")
    if count != members:
        raise database.damaged(f"it contains {count:,} generations, but members of {members:,} generations")
    for generation in reversed(range(count)):
        if _checked(database, generation, generation + 1)[0][1]:
            return generation
    return -1


def read_elite(database: Database, generation: int) -> tuple[Genome, Normalizer | None]:
    """Read the elite of a generation and its observation normalizer, if any.

    Raises:
        DamagedError: The row is missing or damaged.
    """
    (row,) = _checked(database, generation, generation + 1)
    try:
        normalizer = _normalizer(generation, *row[-3:-1])
    except ValueError as error:  # DamagedError is one
        raise database.damaged(f"the normalizer of generation {generation} is invalid: {error}") from None
    return read_genomes(database, [row[2]])[row[2]], normalizer


def _checked(database: Database, first: int, end: int) -> list[Sequence[Any]]:
    """Read the rows of generations. DamagedError: a row is missing or damaged."""
    query = f"SELECT {', '.join(_NAMES)}, checksum FROM generations WHERE generation >= ? AND generation < ?"
    rows: list[Sequence[Any]] = database.rows(_ROW, f"{query} ORDER BY generation", [first, end])
    for number, row in zip_longest(range(first, end), rows):
        if row is None or row[0] != number:
            raise database.damaged(f"generation {number} is missing")
        if checksum(*row[:-1]) != row[-1]:
            raise database.damaged(f"generation {number} has been changed")
    return rows


def _normalizer(generation: int, mean: bytes | None, std: bytes | None) -> Normalizer | None:
    """Decode a normalizer. ValueError: its values are invalid."""
    if mean is None and std is None:
        return None
    mean, std = mean or b"", std or b""
    normalizer = Normalizer(generation, array_of("<f8", [len(mean) // 8], mean), array_of("<f8", [len(std) // 8], std))
    normalizer.check_state()
    return normalizer


def _row(database: Database, row: Sequence[Any]) -> dict[str, Any]:
    """Return a row in the format of Record.row(), without fitness. DamagedError: its metrics are invalid."""
    values = dict(zip(_NAMES, row, strict=False))
    try:
        metrics = parse_json(values["metrics"])
        if not isinstance(metrics, dict):
            raise ValueError(f"{str(metrics)[:80]} is not a table")
        checked_metrics("it", {name: value for name, value in metrics.items() if name != RETRIES})
        if type(metrics.get(RETRIES, 0)) is not int:
            raise ValueError(f"{RETRIES} is {str(metrics[RETRIES])[:80]}, expected an integer")
    except ValueError as error:
        raise database.damaged(f"the metrics of generation {row[0]} are invalid: {inline(str(error))}") from None
    return {"generation": row[0], **metrics, **{name: values[name] for name in _COLUMNS}}


def _stored(name: str, value: Any) -> Any:
    return value if value is None or _kind(name) is int else float(value)
