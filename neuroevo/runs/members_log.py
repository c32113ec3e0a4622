"""Writes members.bin while a run goes on; see members."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

import numpy as np
from typing_extensions import override

from neuroevo.algorithms.base import Played
from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.tree import encode_kind
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.members import MembersReader, kept_bytes
from neuroevo.runs.members_format import IS_ROOT, IS_SEED, OF_ROOT, Record, pack
from neuroevo.runs.paths import MEMBERS
from neuroevo.system.appended_file import AppendedFile
from neuroevo.system.directory import Directory
from neuroevo.training.callback import Callback

log = logging.getLogger("neuroevo")
_FOR_BEHAVIORS = 0.75  # of the budget; parents, a tenth as large, are kept when it is used up


class MembersLog(Callback):
    """Stores every population.

    A full disk is logged and ends no run. A file that another program deletes or changes raises LostFile.
    """

    def __init__(self, folder: Directory, generation: int, budget: int):
        """Opens the file and cuts off what is to be played again.

        Args:
            folder: The run's, which stays open as long as the log.
            generation: The next that is added; those before it stay.
            budget: Bytes that the file may have.
        """
        self._path, self._budget = folder.path / MEMBERS, budget
        self._known: dict[Genome, tuple[int, int] | None] = {}  # members of the last generation, and parents of it
        self._file: AppendedFile | None = None
        self._told = False
        try:
            folder.check(MEMBERS)
            self._file = AppendedFile(folder, MEMBERS, kept_bytes(folder.path, generation))
            folder.flush()  # its name: after a power cut a checkpoint is not to be there without it
            self._reader = MembersReader(folder.path)
        except (OSError, DiskError, UserError) as error:
            self._give_up(error)

    @override
    def population(self, generation: int, played: Played, steps: np.ndarray, novelties: np.ndarray | None) -> None:
        if self._file is None:
            return
        try:
            self._file.check()
            self._reader.refresh()
            record = self._record(generation, played, steps, novelties)
            data = pack(record)
            if self._file.size + len(data) > _FOR_BEHAVIORS * self._budget and record.behaviors is not None:
                data = pack(replace(record, behaviors=None))
            if self._file.size + len(data) <= self._budget:
                self._file.append(data)
            elif not self._told:
                self._told = True
                log.warning(
                    "%s is full: members of generation %d are not kept (logging.members_megabytes is %g)",
                    self._path,
                    generation,
                    self._budget / 1e6,
                )
        except (OSError, UserError) as error:
            self._give_up(error)

    def flush(self) -> None:
        """Has what was added survive a power failure."""
        try:
            if self._file is not None:
                self._file.flush()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Closes the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _record(self, generation: int, played: Played, steps: np.ndarray, novelties: np.ndarray | None) -> Record:
        count = len(played.genomes)
        parents, seeds, scales = np.zeros((count, 2), np.int32), np.zeros(count, np.int64), np.zeros(count, np.float32)
        kinds, spreads = np.zeros(count, np.int8), dict[Center, int]()
        roots: dict[Genome, int] = {}
        used: dict[Genome, tuple[int, int] | None] = {}
        for i, genome in enumerate(played.genomes):
            parent, mutation = genome.parent, genome.mutation
            if parent is not None and mutation is not None:
                if parent not in used:
                    used[parent] = self._origin(parent, generation)
                origin = used[parent]
                seeds[i], scales[i] = mutation.seed, mutation.scale
                code = encode_kind(mutation.kind, spreads)
                if code < np.iinfo(kinds.dtype).min:
                    raise UserError(f"a population has {len(spreads)} spreads, expected at most 128")
                kinds[i] = code
                parents[i] = (OF_ROOT, roots.setdefault(parent, len(roots))) if origin is None else origin
            elif isinstance(genome.root, Center) or genome.network:
                parents[i] = IS_ROOT, roots.setdefault(genome, len(roots))
            else:
                parents[i], seeds[i] = (IS_SEED, 0), genome.root
        own = {genome: (generation, i) for i, genome in reversed(list(enumerate(played.genomes)))}
        self._known = {**own, **used}
        kept = None if played.behaviors is None else _compact(played.behaviors)
        return Record(
            generation,
            parents,
            seeds,
            scales,
            kinds,
            played.fitness,
            steps,
            tuple(roots),
            kept,
            novelties,
            tuple(center.name for center in spreads),
        )

    def _origin(self, parent: Genome, generation: int) -> tuple[int, int] | None:
        """The member that a parent was; None where it is none of those kept."""
        return self._known[parent] if parent in self._known else self._reader.find(parent, before=generation)

    def _give_up(self, error: Exception) -> None:
        log.warning("%s cannot be used (%s); members are not kept from here on", self._path, error)
        self.close()


def _compact(behaviors: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type that has them: bytes, such as the RAM of a console, or floats."""
    for dtype in (np.uint8, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = behaviors.astype(dtype)
        if np.array_equal(smaller, behaviors, equal_nan=True):
            return smaller
    return behaviors.astype(np.float64)


def open_members(folder: RunFolder) -> MembersLog | None:
    """Opens the members' file of a run.

    Args:
        folder: The run's, which is open.

    Returns:
        The log; None where logging.members_megabytes is 0.
    """
    budget = _budget(folder.config)
    return MembersLog(folder.directory, folder.state.generation, budget) if budget else None


def _budget(config: Config) -> int:
    """Bytes that the file may have."""
    return config.logging.members_megabytes * 1_000_000
