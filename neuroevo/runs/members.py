"""The members of every generation of a run: who came from whom, what each achieved, and where its episode ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.genome_rows import read_births, read_genomes, read_steps
from neuroevo.runs.member_rows import MemberRows, read_members

_KEPT = """
SELECT generation FROM populations AS each WHERE EXISTS (
  SELECT 1 FROM members WHERE members.generation = each.generation AND genome IS NOT NULL
) ORDER BY generation"""


@dataclass(frozen=True, eq=False)
class Members:
    """The N members of a generation.

    Attributes:
        generation: Its number, from 0.
        parents: The parent of each, int64 [N, 2]: the generation and the index in which it was a member first.
            (-1, -1): none that was a member, such as of a first genome, or of an offspring of a center.
        seeds: Of the last mutation, int64 [N]; of the initial weights where there is none; 0 for a center.
        scales: Of the last mutation, float32 [N]; 0 where there is none.
        fitness: float64 [N].
        steps: Of all episodes of each together, int64 [N].
        centers: The names of centers that members are made from.
        behaviors: uint8, float32 or float64 [N, B], NaN where all episodes of a member failed; None if they are not
            kept.
        novelty: float64 [N], NaN where the behavior is unknown; None where the algorithm does not measure it.
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

    def __len__(self) -> int:
        """N."""
        return len(self.fitness)

    @property
    def played_behaviors(self) -> np.ndarray | None:
        """The behaviors as algorithms are told them: those that are bytes as float32, others as float64."""
        if self.behaviors is None:
            return None
        return self.behaviors.astype(np.float32 if self.behaviors.dtype == np.uint8 else np.float64)


class MembersReader:
    """The members of a run, which another process may be training meanwhile; nothing is written.

    Args:
        folder: The run's.

    Attributes:
        path: The run's database.

    Example:
        >>> from neuroevo.runs.members import MembersReader
        >>> members = MembersReader("runs/frostbite")
        >>> members.read(12).fitness.max(), members.lineage(12, 3)
    """

    def __init__(self, folder: Path | str):
        self.path = Path(folder) / DATABASE

    @property
    def generations(self) -> int:
        """One more than the last generation whose members' genomes are kept, 0 if none are."""
        with Database(self.path) as database:
            return _count(database)

    def kept(self) -> list[int]:
        """Return the generations whose members' genomes are kept."""
        with Database(self.path) as database:
            return [generation for (generation,) in database.rows(tuple[int], f"{_KEPT} ASC")]

    def read(self, generation: int, behaviors: bool = True) -> Members:
        """Read a generation's members.

        Args:
            generation: Its number.
            behaviors: Whether to read behaviors, where they are kept.

        Raises:
            UserError: Its members are not kept, or the file is damaged.
        """
        found = self.find(generation, behaviors)
        if found is None:
            raise self._not_kept(generation)
        return found

    def find(self, generation: int, behaviors: bool = True) -> Members | None:
        """As read(); None where the members are not kept."""
        with Database(self.path) as database:
            return _members(database, generation, behaviors)

    def each(self, first: int = 0) -> Iterator[Members | None]:
        """Read the members of one generation after another, as find() does."""
        with Database(self.path) as database:
            for generation in range(first, _count(database)):
                yield _members(database, generation, True)

    def genomes(self, generation: int, indices: Iterable[int] | None = None) -> list[Genome]:
        """Read the genomes of members, with the weights of centers as far as the run has them.

        Args:
            generation: Their generation.
            indices: Their indices there; None: all.

        Raises:
            UserError: There is no such member, or its genome is not kept, or the file is damaged.
        """
        with Database(self.path) as database:
            numbers = self._numbers(database, generation)
            chosen = numbers if indices is None else [self._member(numbers, generation, index) for index in indices]
            found = read_genomes(database, chosen)
        return [found[number] for number in chosen]

    def genome(self, generation: int, index: int) -> Genome:
        """Read the genome of one member, as genomes() does."""
        return self.genomes(generation, [index])[0]

    def lineage(self, generation: int, index: int) -> list[tuple[int, int]]:
        """Return a member and those it comes from, each the parent of the one before it, as generations and indices.

        Args:
            generation: The member's generation.
            index: Its index there.

        Raises:
            UserError: There is no such member, or its genome is not kept, or the file is damaged.
        """
        with Database(self.path) as database:
            numbers = self._numbers(database, generation)
            number = self._member(numbers, generation, index)
            known = read_genomes(database, [number])
            born = read_births(database, known)
        of, line = {genome: each for each, genome in reversed(known.items())}, [(generation, index)]
        for ancestor in list(known[number].line())[1:]:
            first = born[of[ancestor]]
            if first is None:
                break
            line.append(first)
        return line

    def _numbers(self, database: Database, generation: int) -> list[int]:
        """Read the numbers of the rows of members' genomes. UserError: they are not kept."""
        rows = read_members(database, generation, behaviors=False)
        numbers = None if rows is None else _kept(rows)
        if numbers is None:
            raise self._not_kept(generation)
        return numbers

    def _not_kept(self, generation: int) -> UserError:
        return UserError(f"the members of generation {generation} are not kept in {self.path}")

    def _member(self, numbers: Sequence[int], generation: int, index: int) -> int:
        if not 0 <= index < len(numbers):
            raise UserError(
                f"member {index} of generation {generation} is out of range [0, {len(numbers)}) ({self.path})"
            )
        return numbers[index]


def _count(database: Database) -> int:
    """Return one more than the last generation whose members' genomes are kept."""
    last = database.row(tuple[int], f"{_KEPT} DESC LIMIT 1")
    return 0 if last is None else last[0] + 1


def _members(database: Database, generation: int, behaviors: bool) -> Members | None:
    """Read a generation's members; None where they are not kept."""
    rows = read_members(database, generation, behaviors)
    numbers = None if rows is None else _kept(rows)
    if rows is None or numbers is None:
        return None
    steps = read_steps(database, numbers)
    return Members(
        generation,
        np.array([each.born or (-1, -1) for each in steps], np.int64).reshape(-1, 2),
        np.array([each.seed for each in steps], np.int64),
        np.array([each.scale for each in steps], np.float32),
        rows.fitness,
        rows.steps,
        tuple(dict.fromkeys(name for each in steps for name in each.centers)),
        rows.behaviors,
        None if np.isnan(rows.novelty).all() else rows.novelty,
    )


def _kept(rows: MemberRows) -> list[int] | None:
    """Return the numbers of the rows of genomes; None where these are not kept."""
    numbers = [number for number in rows.genomes if number is not None]
    return numbers if len(numbers) == len(rows.genomes) else None
