"""The members of every generation of a run: who came from whom, what each achieved, and where its episode ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import MemberRows, read_members
from neuroevo.runs.genome_rows import read_genomes

_ABOUT = """
SELECT child.id, child.seed, child.scale, parent.generation, parent.place, center.name
FROM genomes AS child LEFT JOIN genomes AS parent ON parent.id = child.parent
LEFT JOIN genomes AS root ON root.id = coalesce(child.parent, child.id) AND root.parent IS NULL
LEFT JOIN centers AS center ON center.id = coalesce(child.center, root.center)
WHERE child.id IN (SELECT value FROM json_each(?))
"""
_LINE = """
WITH RECURSIVE line (id, parent, generation, place) AS (
  SELECT id, parent, generation, place FROM genomes WHERE id = ?
  UNION SELECT next.id, next.parent, next.generation, next.place FROM genomes AS next JOIN line ON next.id = line.parent
)
SELECT id, generation, place FROM line ORDER BY id DESC
"""


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
            rows, genomes = self._rows(database, generation, behaviors)
            kind = tuple[int, int | None, float | None, int | None, int | None, str | None]
            about = {row[0]: row[1:] for row in database.rows(kind, _ABOUT, [json.dumps(genomes)])}
        try:
            found = [about[number] for number in genomes]
        except KeyError as error:
            raise database.damaged(f"genome {error} is missing") from None
        parents = [(-1, -1) if each[2] is None else (each[2], each[3]) for each in found]
        return Members(
            generation,
            np.array(parents, np.int64).reshape(-1, 2),
            np.array([each[0] or 0 for each in found], np.int64),
            np.array([each[1] or 0.0 for each in found], np.float32),
            rows.fitness,
            rows.steps,
            tuple(dict.fromkeys(each[4] for each in found if each[4] is not None)),
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
            rows = database.rows(tuple[int, int | None, int | None], _LINE, [number])
        line = [(generation, index)]
        for _, born, place in rows[1:]:
            if born is None or place is None:
                break
            line.append((born, place))
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
