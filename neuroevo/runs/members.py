"""The members of every generation of a run: who came from whom, what each achieved, and where its episode ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Mutation, Scaled
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import MemberRows, read_members
from neuroevo.runs.genome_rows import read_births, read_genomes


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
        """One more than the last generation that is kept, 0 if none is."""
        with Database(self.path) as database:
            found = database.row(tuple[int | None], "SELECT max(generation) FROM populations")
        return 0 if found[0] is None else found[0] + 1

    def kept(self, generation: int) -> bool:
        """Return whether the genomes of a generation's members are kept."""
        query = "SELECT count(*) FROM members WHERE generation = ? AND genome IS NOT NULL"
        with Database(self.path) as database:
            return bool(database.row(tuple[int], query, [generation])[0])

    def read(self, generation: int, behaviors: bool = True) -> Members:
        """Read a generation's members.

        Args:
            generation: Its number.
            behaviors: Whether to read behaviors, where they are kept.

        Raises:
            UserError: Its members are not kept, or the file is damaged.
        """
        with Database(self.path) as database:
            rows, numbers = self._rows(database, generation, behaviors)
            known = read_genomes(database, numbers)
            genomes = [known[number] for number in numbers]
            of = {genome: number for number, genome in reversed(known.items())}  # the first of equal ones
            parents = [None if each.parent is None else of[each.parent] for each in genomes]
            born = read_births(database, {each: known[each] for each in parents if each is not None})
        first = [None if each is None else born[each] for each in parents]
        mutations = [Mutation(0 if isinstance(each.root, Center) else each.root, 0.0) for each in genomes]
        last = [each.mutation or made for each, made in zip(genomes, mutations, strict=True)]
        return Members(
            generation,
            np.array([each or (-1, -1) for each in first], np.int64).reshape(-1, 2),
            np.array([each.seed for each in last], np.int64),
            np.array([each.scale for each in last], np.float32),
            rows.fitness,
            rows.steps,
            tuple(dict.fromkeys(center.name for each in genomes for center in _centers(each))),
            rows.behaviors,
            None if np.isnan(rows.novelty).all() else rows.novelty,
        )

    def genomes(self, generation: int, indices: Iterable[int] | None = None) -> list[Genome]:
        """Read the genomes of members, with the weights of centers as far as the run has them.

        Args:
            generation: Their generation.
            indices: Their indices there; None: all.

        Raises:
            UserError: There is no such member, or its genome is not kept, or the file is damaged.
        """
        with Database(self.path) as database:
            _, numbers = self._rows(database, generation, False)
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
            _, numbers = self._rows(database, generation, False)
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

    def _rows(self, database: Database, generation: int, behaviors: bool) -> tuple[MemberRows, list[int]]:
        """Read the rows of members, and the numbers of their genomes. UserError: they are not kept."""
        rows = read_members(database, generation, behaviors)
        if rows is None or (rows.genomes and rows.genomes[0] is None):
            raise UserError(f"the members of generation {generation} are not kept in {self.path}")
        return rows, [number for number in rows.genomes if number is not None]

    def _member(self, numbers: Sequence[int], generation: int, index: int) -> int:
        if not 0 <= index < len(numbers):
            raise UserError(
                f"member {index} of generation {generation} is out of range [0, {len(numbers)}) ({self.path})"
            )
        return numbers[index]


def _centers(genome: Genome) -> list[Center]:
    """Return the center that a genome, or its parent, is; and the one that scales the last mutation's noise."""
    found = [genome.kind.spread] if isinstance(genome.kind, Scaled) else []
    return [*found, *([genome.root] if isinstance(genome.root, Center) and genome.depth <= 1 else [])]
