"""Storage of the members of every generation of a run: parents, fitness, steps and behaviors.

This file is long because it contains both writing and reading, which share the format of the rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes, read_steps
from neuroevo.runs.values import DamagedError, Number, array_of, checksum

_BEHAVIORS = (np.uint8, np.float32, np.float64)  # the smallest lossless one is used
_STORED = ("|u1", "<f4", "<f8")
_MOST_BYTES = 1 << 28  # limit of a generation's behaviors; SQLite limits only the compressed size
_MEMBERS = tuple[int, int | None, Number, int, Number | None]
_KEPT = """
SELECT generation FROM populations AS each WHERE EXISTS (
  SELECT 1 FROM members WHERE members.generation = each.generation AND genome IS NOT NULL
) ORDER BY generation"""


@dataclass(frozen=True, eq=False)
class Members:
    """The N members of a generation.

    Attributes:
        generation: Number of the generation, from 0.
        parents: Parent of each member, int64 [N, 2]: the generation and index in which the parent first was a member.
            (-1, -1) without such a parent, as for initial genomes and the offspring of a center.
        seeds: Seed of each member's last mutation, int64 [N]; without a mutation, the seed of the initial weights, or 0
            for a center.
        scales: Scale of each member's last mutation, float32 [N]; 0 without a mutation.
        fitness: Fitness of each member, float64 [N].
        steps: Total steps of each member's episodes, int64 [N].
        centers: Names of the centers that members are derived from.
        behaviors: uint8, float32 or float64 [N, B], NaN where all episodes of a member failed; None if not stored.
        novelty: float64 [N], NaN where the behavior is unknown; None if the algorithm does not measure novelty.
        networks: Text of each member's own network, [N]; None if all members use a configured network.
    """

    generation: int
    parents: np.ndarray
    seeds: np.ndarray
    scales: np.ndarray
    fitness: np.ndarray
    steps: np.ndarray
    centers: Sequence[str] = ()
    behaviors: np.ndarray | None = None
    novelty: np.ndarray | None = None
    networks: Sequence[str] | None = None

    def __len__(self) -> int:
        """N."""
        return len(self.fitness)

    @property
    def played_behaviors(self) -> np.ndarray | None:
        """The behaviors as algorithms receive them: uint8 converted to float32, other dtypes to float64."""
        if self.behaviors is None:
            return None
        return self.behaviors.astype(np.float32 if self.behaviors.dtype == np.uint8 else np.float64)


class MembersReader:
    """Read-only access to the members of a run, which another process may be training at the same time.

    Args:
        folder: The run folder.

    Attributes:
        path: The database file.

    Example:
        >>> from neuroevo.runs.members import MembersReader
        >>> members = MembersReader("runs/frostbite")
        >>> members.read(12).fitness.max(), members.lineage(12, 3)
    """

    def __init__(self, folder: Path | str):
        self.path = Path(folder) / DATABASE

    @property
    def generations(self) -> int:
        """One more than the last generation whose genomes are stored; 0 if no genomes are stored."""
        with Database(self.path) as database:
            return _count(database)

    def kept(self) -> list[int]:
        """Return the generations whose genomes are stored."""
        with Database(self.path) as database:
            return [generation for (generation,) in database.rows(tuple[int], f"{_KEPT} ASC")]

    def read(self, generation: int, behaviors: bool = True) -> Members:
        """Read a generation's members.

        Args:
            generation: Number of the generation.
            behaviors: Whether to read behaviors, if they are stored.

        Raises:
            UserError: The members are not stored, or the file is damaged.
        """
        found = self.find(generation, behaviors)
        if found is None:
            raise self._not_kept(generation)
        return found

    def find(self, generation: int, behaviors: bool = True) -> Members | None:
        """Read a generation's members as read() does, but return None if they are not stored."""
        with Database(self.path) as database:
            return _members(database, generation, behaviors)

    def each(self, first: int = 0) -> Iterator[Members | None]:
        """Yield find() of each generation, starting with `first`."""
        with Database(self.path) as database:
            for generation in range(first, _count(database)):
                yield _members(database, generation, True)

    def genomes(self, generation: int, indices: Iterable[int] | None = None) -> list[Genome]:
        """Read the genomes of members, with the weights of centers that are still stored.

        Args:
            generation: The members' generation.
            indices: Indices of the members; None selects all.

        Raises:
            UserError: There is no such member, its genome is not stored, or the file is damaged.
        """
        with Database(self.path) as database:
            chosen = self._numbers(database, generation, indices)
            found = read_genomes(database, chosen)
        return [found[number] for number in chosen]

    def genome(self, generation: int, index: int) -> Genome:
        """Read the genome of one member, as genomes() does."""
        return self.genomes(generation, [index])[0]

    def lineage(self, generation: int, index: int) -> list[tuple[int, int]]:
        """Return a member and its ancestors, starting with the member, as pairs (generation, index).

        Args:
            generation: The member's generation.
            index: Index of the member.

        Raises:
            UserError: There is no such member, its genome is not stored, or the file is damaged.
        """
        born: dict[Genome, tuple[int, int] | None] = {}
        with Database(self.path) as database:
            (number,) = self._numbers(database, generation, [index])
            genome = read_genomes(database, [number], born)[number]
        line = [(generation, index)]
        for ancestor in list(genome.line())[1:]:
            first = born[ancestor]
            if first is None:
                break
            line.append(first)
        return line

    def elite(self, generation: int) -> tuple[int, int] | None:
        """Return the generation and index of the member that a generation's elite is; None if it never was a member.

        Args:
            generation: Number of a finished generation.
        """
        query = (
            "SELECT g.generation, g.place FROM generations e JOIN genomes g ON g.id = e.elite WHERE e.generation = ?"
        )
        with Database(self.path) as database:
            found = database.rows(tuple[int | None, int | None], query, (generation,))
        return found[0] if found and None not in found[0] else None

    def _numbers(self, database: Database, generation: int, indices: Iterable[int] | None) -> list[int]:
        """Read the row numbers of members' genomes. UserError: no such member exists, or they are not stored."""
        rows = _read(database, generation)
        numbers = None if rows is None else _genomes(rows[0])
        if numbers is None:
            raise self._not_kept(generation)
        chosen = list(range(len(numbers)) if indices is None else indices)
        for index in chosen:
            if not 0 <= index < len(numbers):
                raise UserError(
                    f"member {index} of generation {generation} is out of range [0, {len(numbers)}) ({self.path})"
                )
        return [numbers[index] for index in chosen]

    def _not_kept(self, generation: int) -> UserError:
        return UserError(f"the members of generation {generation} are not stored in {self.path}")


def write_members(
    database: Database,
    generation: int,
    played: EvaluatedPopulation,
    steps: np.ndarray,
    novelties: np.ndarray | None,
    genomes: GenomeWriter | None,
    behaviors: bool,
) -> int:
    """Store a generation's members.

    Args:
        database: The run's database, in a transaction that has stored the generation's row.
        generation: Number of the generation.
        played: The members' genomes, fitness and behaviors.
        steps: Total steps of each member's episodes, int64 [N].
        novelties: float64 [N], NaN where unknown; None if not measured.
        genomes: Writer of genomes; None to store none.
        behaviors: Whether to store behaviors, if they were recorded.

    Returns:
        The size of the stored behaviors in bytes.
    """
    count = len(played.genomes)
    numbers: Sequence[int | None] = [None] * count
    if genomes is not None:
        numbers = genomes.members(played.genomes, generation)
    novelty = [None] * count if novelties is None else [None if np.isnan(each) else float(each) for each in novelties]
    rows = list(zip(range(count), numbers, played.fitness.tolist(), steps.tolist(), novelty, strict=True))
    names = ("generation", "place", "genome", "fitness", "steps", "novelty")
    database.insert_many("members", names, ((generation, *row) for row in rows))
    dtype, packed = None, None
    if behaviors and played.behaviors is not None:
        small = _smallest(played.behaviors)
        dtype, packed = small.dtype.newbyteorder("<").str, zlib.compress(np.ascontiguousarray(small).tobytes(), 1)
    row: dict[str, Any] = {"generation": generation, "members": count, "fitness": fitness_sum(played.fitness)}
    row |= {"dtype": dtype, "behaviors": packed}
    database.insert("populations", {**row, "checksum": checksum(*row.values(), rows_sum(rows))})
    return len(packed or b"")


def _smallest(behaviors: np.ndarray) -> np.ndarray:
    """Convert behaviors to the smallest lossless dtype: uint8, such as for Atari's RAM, float32 or float64."""
    for dtype in _BEHAVIORS[:-1]:
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = behaviors.astype(dtype)
        if np.array_equal(smaller, behaviors, equal_nan=True):
            return smaller
    return behaviors.astype(np.float64)


def fitness_of(database: Database, first: int, end: int) -> list[np.ndarray]:
    """Read the fitness of all members of generations.

    Args:
        database: The run's database.
        first: First generation.
        end: One past the last generation.

    Returns:
        The fitness of each generation, float64 [N].

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
        if fitness_sum(values) != total:
            raise database.damaged(f"the members of generation {number} have been changed")
    return found


def fitness_sum(fitness: np.ndarray) -> int:
    """Return the checksum of members' fitness, float64 [N]."""
    return zlib.crc32((np.asarray(fitness, "<f8") + 0.0).tobytes())  # SQLite has no -0.0


def rows_sum(rows: Sequence[Sequence[Any]]) -> int:
    """Return the checksum of members' rows: place, genome, fitness, steps and novelty of each."""
    return zlib.crc32((np.array(rows, np.float64) + 0.0).tobytes())  # None becomes NaN


def _count(database: Database) -> int:
    """Return one more than the last generation whose genomes are stored."""
    last = database.row(tuple[int], f"{_KEPT} DESC LIMIT 1")
    return 0 if last is None else last[0] + 1


def _read(database: Database, generation: int) -> tuple[list[Any], str | None, bytes | None] | None:
    """Read members' rows, and their behaviors in stored form; None if there is no such generation."""
    query = "SELECT place, genome, fitness, steps, novelty FROM members WHERE generation = ? ORDER BY place"
    about = database.row(
        tuple[int, int, int, str | None, bytes | None, int],
        "SELECT generation, members, fitness, dtype, behaviors, checksum FROM populations WHERE generation = ?",
        [generation],
    )
    if about is None:
        return None
    rows = database.rows(_MEMBERS, query, [generation])
    if len(rows) != about[1] or checksum(*about[:-1], rows_sum(rows)) != about[-1]:
        raise database.damaged(f"the members of generation {generation} have been changed")
    return rows, about[3], about[4]


def _genomes(rows: Sequence[Sequence[Any]]) -> list[int] | None:
    """Return the row numbers of members' genomes; None if they are not stored."""
    numbers = [row[1] for row in rows]
    return None if None in numbers else numbers


def _members(database: Database, generation: int, behaviors: bool) -> Members | None:
    """Read a generation's members; None if they are not stored."""
    found = _read(database, generation)
    numbers = None if found is None else _genomes(found[0])
    if found is None or numbers is None:
        return None
    rows, dtype, packed = found
    recorded = None
    if behaviors and dtype is not None:
        try:
            recorded = _unpacked(dtype, packed, len(rows))
        except (TypeError, zlib.error, DamagedError) as error:
            raise database.damaged(f"the behaviors of generation {generation} are invalid: {error}") from None
    novelty = np.array([row[4] for row in rows], np.float64)  # None becomes NaN
    steps = read_steps(database, numbers)
    networks = [each.network for each in steps if isinstance(each.network, str)]
    return Members(
        generation,
        np.array([each.born or (-1, -1) for each in steps], np.int64).reshape(-1, 2),
        np.array([each.seed for each in steps], np.int64),
        np.array([each.scale for each in steps], np.float32),
        np.array([row[2] for row in rows], np.float64),
        np.array([row[3] for row in rows], np.int64),
        tuple(dict.fromkeys(name for each in steps for name in each.centers)),
        recorded,
        None if np.isnan(novelty).all() else novelty,
        networks if len(networks) == len(rows) and networks else None,
    )


def _unpacked(dtype: str, packed: Any, members: int) -> np.ndarray:
    """Return behaviors [N, B]. DamagedError, TypeError, zlib.error: they are damaged."""
    if dtype not in _STORED:
        raise DamagedError(f"they have dtype {dtype[:20]!r}, expected one of {', '.join(_STORED)}")
    stream = zlib.decompressobj()
    data = stream.decompress(packed, _MOST_BYTES)
    if not stream.eof:
        raise DamagedError(f"they are truncated, or larger than {_MOST_BYTES:,} bytes")
    return array_of(dtype, [members, len(data) // max(np.dtype(dtype).itemsize * members, 1)], data)
