"""Finished generations as rows of run.db: their numbers, elites and members."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Played
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.problems import inline
from neuroevo.runs.database import DamagedError, Database, Number, array_of, checksum
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes
from neuroevo.system.reading import parse_json
from neuroevo.training.record import COLUMNS, NOT_EVALUATED, RETRIES, GenerationRecord, Record, checked_metrics

_COLUMNS = tuple(name for name in COLUMNS if name not in ("generation", "fitness"))
_WHOLE = ("max_episode_steps", "steps_", "frames_", "failures_")  # beginnings of the names of whole numbers
_MAYBE = ("validation_mean", "test_mean", "test_standard_error")
_NAMES = ("generation", "tested", "elite", *_COLUMNS, "metrics", "normalizer_mean", "normalizer_std")
_BEHAVIORS = (np.uint8, np.float32, np.float64)  # the smallest that has the numbers is chosen
_STORED = ("|u1", "<f4", "<f8")
_MOST_BYTES = 1 << 28  # of a generation's behaviors; SQLite's limit is of what is compressed


def _kind(name: str) -> Any:
    if name.startswith(_WHOLE) and name != "steps_per_s":
        return int
    return Number | None if name in _MAYBE else Number


_KINDS = (int, int, int, *map(_kind, _COLUMNS), str, bytes | None, bytes | None, int)
_ROW: Any = tuple[_KINDS]  # type: ignore[valid-type]
_MEMBERS = tuple[int, int | None, Number, int, Number | None]


@dataclass(frozen=True)
class PlayedMembers:
    """The members of a generation that is not stored yet.

    Attributes:
        played: The genomes, their fitness and their behaviors.
        steps: Of all episodes of each genome, int64 [N].
        novelties: float64 [N], NaN where unknown; None if not measured.
    """

    played: Played
    steps: np.ndarray
    novelties: np.ndarray | None


def write_generation(database: Database, record: GenerationRecord | Record, genomes: GenomeWriter) -> None:
    """Store a generation's numbers and elite, or replace those that are stored.

    Args:
        database: The run's, in a transaction.
        record: The generation; a Record's elite has been tested.
        genomes: Writes the elite.
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
    row["checksum"] = checksum(*row.values())
    marks, changes = ", ".join("?" * len(row)), ", ".join(f"{name} = excluded.{name}" for name in row)
    database.execute(
        f"INSERT INTO generations ({', '.join(row)}) VALUES ({marks}) ON CONFLICT (generation) DO UPDATE SET {changes}",
        list(row.values()),
    )


def write_members(
    database: Database, generation: int, members: PlayedMembers, genomes: GenomeWriter | None, behaviors: bool
) -> int:
    """Store a generation's members.

    Args:
        database: The run's, in a transaction, with the generation's row.
        generation: Its number.
        members: The members.
        genomes: Writes their genomes; None: these are not stored.
        behaviors: Whether to store where episodes ended, if it was recorded.

    Returns:
        The number of bytes that the behaviors take.
    """
    played, count = members.played, len(members.played.genomes)
    numbers: Sequence[int | None] = [None] * count
    if genomes is not None:
        numbers = genomes.members(played.genomes, generation)
    novelties = np.full(count, np.nan) if members.novelties is None else members.novelties
    novelty = [None if np.isnan(each) else float(each) for each in novelties]
    fitness, steps = played.fitness.tolist(), members.steps.tolist()
    rows = list(zip(range(count), numbers, fitness, steps, novelty, strict=True))
    names = ("generation", "place", "genome", "fitness", "steps", "novelty")
    database.insert_many("members", names, ((generation, *row) for row in rows))
    dtype, packed = None, None
    if behaviors and played.behaviors is not None:
        small = _smallest(played.behaviors)
        dtype, packed = small.dtype.newbyteorder("<").str, zlib.compress(np.ascontiguousarray(small).tobytes(), 1)
    row: dict[str, Any] = {"generation": generation, "members": count, "fitness": _fitness_sum(played.fitness)}
    row |= {"dtype": dtype, "behaviors": packed}
    database.insert("populations", {**row, "checksum": checksum(*row.values(), _sum(rows))})
    return len(packed or b"")


def rows_of(database: Database, first: int = 0, fitness: bool = True) -> list[dict[str, Any]]:
    """Read the rows of generations whose elite has been tested.

    Args:
        database: The run's.
        first: The first generation.
        fitness: Whether the rows have the list of every member's fitness.

    Returns:
        The rows as Record.row() made them, from the first one on.

    Raises:
        DamagedError: A row is damaged, or one is missing.
    """
    last = last_generation(database)
    query = f"SELECT {', '.join(_NAMES)}, checksum FROM generations WHERE generation >= ? AND generation <= ?"
    found: list[dict[str, Any]] = []
    for row in database.rows(_ROW, f"{query} ORDER BY generation", [first, last]):
        if row[0] != first + len(found) or not row[1]:
            raise database.damaged(f"generation {first + len(found)} is missing")
        found.append(_row(database, row))
    if len(found) != max(last + 1 - first, 0):
        raise database.damaged(f"generation {first + len(found)} is missing")
    if fitness and found:
        every = fitness_of(database, first, first + len(found))
        for row, values in zip(found, every, strict=True):
            row["fitness"] = values.tolist()
    return found


def fitness_of(database: Database, first: int, end: int) -> list[np.ndarray]:
    """Read the fitness of all members of generations.

    Args:
        database: The run's.
        first: The first generation.
        end: The one after the last.

    Returns:
        Of each generation float64 [N].

    Raises:
        DamagedError: Members are missing or damaged.
    """
    about = "SELECT members, fitness FROM populations WHERE generation >= ? AND generation < ? ORDER BY generation"
    query = "SELECT fitness FROM members WHERE generation >= ? AND generation < ? ORDER BY generation, place"
    known = database.rows(tuple[int, int], about, [first, end])
    ends = np.cumsum([count for count, _ in known])
    fitness = np.array(database.rows(tuple[Number], query, [first, end]), np.float64).reshape(-1)
    if len(ends) != end - first or (len(ends) and ends[-1] != len(fitness)):
        raise database.damaged(f"members of generations {first} to {end - 1} are missing")
    found = np.split(fitness, ends[:-1]) if len(ends) else []
    for number, (values, (_, total)) in enumerate(zip(found, known, strict=True), start=first):
        if _fitness_sum(values) != total:
            raise database.damaged(f"the members of generation {number} have been changed")
    return found


def last_generation(database: Database) -> int:
    """Return the last generation whose elite has been tested, -1 before there is one.

    Raises:
        DamagedError: A row is damaged, or one is missing.
    """
    (count,) = database.row(tuple[int], "SELECT count(*) FROM generations")
    (members,) = database.row(tuple[int], "SELECT count(*) FROM populations")
    if count != members:
        raise database.damaged(f"it has {count:,} generations, but the members of {members:,}")
    for generation in reversed(range(count)):
        if _checked(database, generation)[1]:
            return generation
    return -1


def read_elite(database: Database, generation: int) -> tuple[Genome, Normalizer | None]:
    """Read the elite of a generation, and what its networks saw observations through.

    Raises:
        DamagedError: Its row is missing or damaged.
    """
    row = _checked(database, generation)
    try:
        normalizer = _normalizer(generation, *row[-3:-1])
    except ValueError as error:  # DamagedError is one
        raise database.damaged(f"the normalizer of generation {generation} is invalid: {error}") from None
    return read_genomes(database, [row[2]])[row[2]], normalizer


def _checked(database: Database, generation: int) -> Sequence[Any]:
    """Return the values of a generation's row. DamagedError: it is missing or damaged."""
    query = f"SELECT {', '.join(_NAMES)}, checksum FROM generations WHERE generation = ?"
    row: Sequence[Any] | None = database.row(_ROW, query, [generation])
    if row is None:
        raise database.damaged(f"generation {generation} is missing")
    _row(database, row)
    return row


def _normalizer(generation: int, mean: bytes | None, std: bytes | None) -> Normalizer | None:
    """ValueError: it is not one."""
    if mean is None and std is None:
        return None
    mean, std = mean or b"", std or b""
    normalizer = Normalizer(generation, array_of("<f8", [len(mean) // 8], mean), array_of("<f8", [len(std) // 8], std))
    normalizer.check_state()
    return normalizer


def _row(database: Database, row: Sequence[Any]) -> dict[str, Any]:
    """Return a row as Record.row() makes it, without fitness. DamagedError: it was changed."""
    if checksum(*row[:-1]) != row[-1]:
        raise database.damaged(f"generation {row[0]} has been changed")
    values = dict(zip(_NAMES, row, strict=False))
    try:
        metrics = parse_json(values["metrics"])
    except ValueError as error:
        raise database.damaged(f"the metrics of generation {row[0]} are invalid: {error}") from None
    if not isinstance(metrics, dict):
        raise database.damaged(f"the metrics of generation {row[0]} are {str(metrics)[:80]}, expected a table")
    try:
        checked_metrics("it", {name: value for name, value in metrics.items() if name != RETRIES})
    except ValueError as error:
        raise database.damaged(f"the metrics of generation {row[0]} are invalid: {inline(str(error))}") from None
    if type(metrics.get(RETRIES, 0)) is not int:
        raise database.damaged(f"the metrics of generation {row[0]} have {RETRIES} that are not a whole number")
    return {"generation": row[0], **metrics, **{name: values[name] for name in _COLUMNS}}


def _stored(name: str, value: Any) -> Any:
    return value if value is None or _kind(name) is int else float(value)


def _smallest(behaviors: np.ndarray) -> np.ndarray:
    """Return the same numbers in the smallest dtype that has them: bytes, such as the RAM of a console, or floats."""
    for dtype in _BEHAVIORS[:-1]:
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = behaviors.astype(dtype)
        if np.array_equal(smaller, behaviors, equal_nan=True):
            return smaller
    return behaviors.astype(np.float64)


def _fitness_sum(fitness: np.ndarray) -> int:
    return zlib.crc32((np.asarray(fitness, "<f8") + 0.0).tobytes())  # SQLite has no -0.0


def _sum(rows: Sequence[Sequence[Any]]) -> int:
    """Return the checksum of members' rows."""
    return zlib.crc32((np.array(rows, np.float64) + 0.0).tobytes())  # None becomes NaN


@dataclass(frozen=True)
class MemberRows:
    """The rows of a generation's members.

    Attributes:
        genomes: The numbers of the rows of their genomes, [N]; None where these were not stored.
        fitness: float64 [N].
        steps: int64 [N].
        novelty: float64 [N], NaN where unknown.
        behaviors: uint8, float32 or float64 [N, B]; None if not stored or not asked for.
    """

    genomes: list[int | None]
    fitness: np.ndarray
    steps: np.ndarray
    novelty: np.ndarray
    behaviors: np.ndarray | None


def read_members(database: Database, generation: int, behaviors: bool = True) -> MemberRows | None:
    """Read the rows of a generation's members; None if there is no such generation.

    Raises:
        DamagedError: They are damaged.
    """
    query = "SELECT place, genome, fitness, steps, novelty FROM members WHERE generation = ? ORDER BY place"
    about = database.row(
        tuple[int, int, int, str | None, bytes | None, int],
        "SELECT generation, members, fitness, dtype, behaviors, checksum FROM populations WHERE generation = ?",
        [generation],
    )
    if about is None:
        return None
    rows = database.rows(_MEMBERS, query, [generation])
    if len(rows) != about[1] or checksum(*about[:-1], _sum(rows)) != about[-1]:
        raise database.damaged(f"the members of generation {generation} have been changed")
    _, genomes, fitness, steps, novelty = zip(*rows, strict=True) if rows else ((),) * 5
    recorded = None
    if behaviors and about[3] is not None:
        try:
            if about[3] not in _STORED:
                raise DamagedError(f"they have dtype {about[3][:20]!r}, expected one of {', '.join(_STORED)}")
            packed = zlib.decompressobj()
            data = packed.decompress(about[4], _MOST_BYTES)
            if not packed.eof:
                raise DamagedError(f"they are cut off, or have more than {_MOST_BYTES:,} bytes")
            recorded = array_of(
                about[3], [len(rows), len(data) // max(np.dtype(about[3]).itemsize * len(rows), 1)], data
            )
        except (TypeError, zlib.error, DamagedError) as error:
            raise database.damaged(f"the behaviors of generation {generation} are invalid: {error}") from None
    return MemberRows(
        list(genomes),
        np.array(fitness, np.float64),
        np.array(steps, np.int64),
        np.array([np.nan if each is None else each for each in novelty], np.float64),
        recorded,
    )
