"""The members of every generation of a run: who came from whom, what each achieved, and where its episode ended.

members.bin keeps a record of each generation, as members_format has them, within a budget that the configuration's
logging.members_megabytes sets. A genome is found by going from parent to parent, so that a member costs a few dozen
bytes, whatever its chain.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Mutation, grow
from neuroevo.core.tree import centers_of, decode_kind
from neuroevo.runs.members_format import IS_ROOT, IS_SEED, Place, Record, places, unpack
from neuroevo.runs.paths import MEMBERS
from neuroevo.system.reading import open_regular

_HELD_MEMBERS = 1_000_000  # in memory, without behaviors: 33 MB


@dataclass(frozen=True, eq=False)
class Members:
    """The N members of a generation.

    Attributes:
        generation: Its number, from 0.
        parents: Of whom each is an offspring, int64 [N, 2]: generation and index of the member. (-1, -1): of nobody
            that is kept, such as a first genome, or an offspring of a center of evolution strategies.
        seeds: Of the last mutation, int64 [N]; of the initial weights where there is none.
        scales: Of the last mutation, float32 [N]; 0 where there is none.
        fitness: float64 [N].
        steps: Of all episodes of each together, int64 [N].
        centers: The names of centers that members are made from, without their weights.
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

    Example:
        >>> from neuroevo.runs.members import MembersReader
        >>> members = MembersReader("runs/frostbite")
        >>> members.read(12).fitness.max(), members.lineage(12, 3)
    """

    def __init__(self, folder: Path | str):
        """Finds what there is.

        Args:
            folder: The run's folder; a run of which members are not kept has none.

        Raises:
            UserError: The file cannot be read.
        """
        self.path = Path(folder) / MEMBERS
        self._places: dict[int, Place] = {}
        self._end, self._last = 0, -1
        self._held: OrderedDict[int, Record] = OrderedDict()
        self._held_members = 0
        self._file_id: tuple[int, int] | None = None
        self.refresh()

    @property
    def generations(self) -> int:
        """One more than the last generation that is kept, 0 if none is. Some before it may be missing."""
        return self._last + 1

    def kept(self, generation: int) -> bool:
        """Whether a generation's members are kept."""
        return generation in self._places

    def refresh(self) -> None:
        """Finds what was added since, or all anew where the run went back to a checkpoint. UserError: as __init__()."""
        if not self.path.is_file():
            self._forget()
            return
        with self._open() as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != self._file_id or status.st_size < self._end:
                self._forget()
            self._file_id = status.st_dev, status.st_ino
            for place in places(file, self._end, self._last):
                self._places[place.generation] = place
                self._end, self._last = place.end, place.generation

    def read(self, generation: int, behaviors: bool = True) -> Members:
        """Reads a generation's members.

        Args:
            generation: Its number.
            behaviors: Whether to read behaviors, where they are kept.

        Raises:
            UserError: Its members are not kept, or the file is damaged.
        """
        record = self._record(generation, behaviors)
        parents = record.parents.astype(np.int64)
        parents[parents[:, 0] < 0] = -1
        centers = centers_of(record.roots)
        return Members(
            generation,
            parents,
            record.seeds,
            record.scales,
            record.fitness,
            record.steps,
            tuple(dict.fromkeys([*centers, *record.spreads])),
            record.behaviors,
            record.novelty,
        )

    def genome(self, generation: int, index: int) -> Genome:
        """The genome of a member. Of one that comes from a center the center's name alone is known.

        Args:
            generation: Its generation.
            index: Its index there.

        Raises:
            UserError: There is no such member, or one that it comes from is not kept, or the file is damaged.
        """
        mutations: list[Mutation] = []
        for number, which in self.lineage(generation, index):
            record = self._record(number, False)
            where = int(record.parents[which, 0])
            if where not in (IS_ROOT, IS_SEED):
                spreads = [Center.named(name) for name in record.spreads]
                kind = decode_kind(int(record.kinds[which]), spreads)
                mutations.append(Mutation(int(record.seeds[which]), float(record.scales[which]), kind))
        root = Genome(int(record.seeds[which])) if where == IS_SEED else record.roots[record.parents[which, 1]]
        try:
            return grow(root, reversed(mutations))
        except ValueError as error:
            raise UserError(f"{self.path} is damaged: {error}") from None

    def lineage(self, generation: int, index: int) -> list[tuple[int, int]]:
        """A member and those it comes from, each the parent of the one before it, as generations and indices.

        Args:
            generation: The member's generation.
            index: Its index there.

        Raises:
            UserError: There is no such member, or one that it comes from is not kept, or the file is damaged.
        """
        line = [(generation, index)]
        while True:
            record = self._record(generation, False)
            if not 0 <= index < len(record.fitness):
                raise UserError(
                    f"member {index} of generation {generation} is out of range [0, {len(record.fitness)}) "
                    f"({self.path})"
                )
            generation, index = map(int, record.parents[index])
            if generation < 0:
                return line
            line.append((generation, index))

    def find(self, genome: Genome, before: int | None = None) -> tuple[int, int] | None:
        """Finds the member that has a genome; None if none of those has that are kept and not damaged.

        Args:
            genome: Whose generation and index are wanted.
            before: Only generations before this one; None: all.
        """
        seed, scale = (genome.root, 0.0) if genome.mutation is None else genome.mutation[:2]
        if isinstance(seed, Center):
            return None
        for number in sorted(self._places, reverse=True):
            if before is None or number < before:
                with suppress(UserError):  # damaged by a power cut, for example
                    record = self._record(number, False)
                    for index in np.flatnonzero((record.seeds == seed) & (record.scales == np.float32(scale))):
                        with suppress(UserError):  # it comes from members that are not kept
                            if self.genome(number, int(index)) == genome:
                                return number, int(index)
        return None

    def _record(self, generation: int, behaviors: bool) -> Record:
        if not behaviors and generation in self._held:
            self._held.move_to_end(generation)
            return self._held[generation]
        place = self._places.get(generation)
        if place is None:
            known = f"those of {len(self._places)} generations up to {self._last} are" if self._places else "none are"
            raise UserError(f"the members of generation {generation} are not kept in {self.path}; {known}")
        try:
            with self._open() as file:
                record = unpack(file, place, behaviors)
            if record.generation != generation:
                raise ValueError(f"it is of generation {record.generation}")
        except ValueError as error:
            raise UserError(f"{self.path} is damaged in the record of generation {generation}: {error}") from None
        if generation not in self._held:
            self._held[generation] = replace(record, behaviors=None)
            self._held_members += place.members
            while self._held_members > _HELD_MEMBERS and len(self._held) > 1:
                self._held_members -= len(self._held.popitem(last=False)[1].fitness)
        return record

    def _open(self) -> BinaryIO:
        try:
            return open_regular(self.path)
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from None

    def _forget(self) -> None:
        self._places.clear()
        self._held.clear()
        self._held_members = 0
        self._end, self._last = 0, -1
        self._file_id = None


def kept_bytes(folder: Path, generation: int) -> int:
    """How many bytes at the beginning of a run's file are whole records of generations before one.

    Args:
        folder: The run's.
        generation: The number.

    Raises:
        OSError: The file cannot be read.
    """
    path = folder / MEMBERS
    if not path.exists():
        return 0
    with open_regular(path) as file:
        return max((place.end for place in places(file) if place.generation < generation), default=0)
