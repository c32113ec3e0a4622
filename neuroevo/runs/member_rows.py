"""The members of a generation as rows of run.db."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Played
from neuroevo.runs.database import Database
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.values import DamagedError, Number, array_of, checksum

_BEHAVIORS = (np.uint8, np.float32, np.float64)  # the smallest that has the numbers is chosen
_STORED = ("|u1", "<f4", "<f8")
_MOST_BYTES = 1 << 28  # of a generation's behaviors; SQLite's limit is of what is compressed
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
