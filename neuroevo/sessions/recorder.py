"""Write the generations, members and states of a run in training to its database."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.schema import Config
from neuroevo.core.genome import Genome
from neuroevo.runs.generation_rows import write_generation
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.members import write_members
from neuroevo.runs.state_rows import delete_states, generations_of_states, write_state
from neuroevo.runs.writer import Writer
from neuroevo.training.record import GenerationRecord, Record
from neuroevo.training.state import TrainState

log = logging.getLogger("neuroevo")
_FOR_BEHAVIORS = 0.75  # share of logging.members_megabytes up to which behaviors are stored
_MEMBER_BYTES = 90  # approximate size of the rows of a member and its genome; independent of the file's size


class Recorder:
    """Writer of the rows of a run in training.

    Args:
        database: The run's database.
        config: The run's configuration.
        generation: The first generation to be played.
        known: Row ids of the genomes in the state.
    """

    def __init__(self, database: Writer, config: Config, generation: int, known: Mapping[Genome, int]):
        self._database, self._settings = database, config.checkpoints
        self._budget = config.logging.members_megabytes * 1_000_000
        self._genomes = GenomeWriter(database, known)
        self._played: dict[int, tuple[EvaluatedPopulation, np.ndarray, np.ndarray | None]] = {}
        self._members: Sequence[Genome] = ()  # of the last generation
        self._next = generation  # the first generation without a row
        self._full = False
        (self._bytes,) = database.row(
            tuple[int],
            "SELECT coalesce(sum(coalesce(length(behaviors), 0) + members * ?), 0) FROM populations",
            [_MEMBER_BYTES],
        )

    @contextmanager
    def transaction(self, last: bool = False) -> Iterator[None]:
        """Run the block in a durable transaction; see Writer.transaction()."""
        known = self._genomes.known
        try:
            with self._database.transaction(durable=True, last=last):
                yield
        except BaseException:  # the rows of genomes added in the block are rolled back
            self._genomes = GenomeWriter(self._database, known)
            raise

    def population(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:
        """Keep a population until add() stores it; see Callback.population()."""
        self._played[generation] = played, steps, novelties

    def add(self, state: TrainState, records: Sequence[Record]) -> None:
        """Store generations and their members, in a transaction.

        Args:
            state: The state after a generation.
            records: Records that became complete, oldest first.
        """
        new: list[GenerationRecord] = [*records, *(each.record for each in state.pending)]
        for record in new:
            if isinstance(record, Record) or record.generation >= self._next:
                write_generation(self._database, record, self._genomes)
        for generation in sorted(self._played):
            self._add_members(generation, *self._played.pop(generation))
        self._next = state.generation

    def save(self, state: TrainState) -> None:
        """Store a state and delete outdated states, in a transaction.

        Args:
            state: The state.
        """
        self._genomes.keep([*write_state(self._database, state, self._genomes), *self._members])
        # Only states up to the last generation with a complete record count towards keep_last.
        complete, settings = state.generation - len(state.pending), self._settings
        so_far = [each for each in generations_of_states(self._database) if each <= complete]
        old = so_far[: -settings.keep_last]
        delete_states(
            self._database, [each for each in old if not (settings.keep_every and each % settings.keep_every == 0)]
        )

    def _add_members(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:
        used = self._bytes / self._budget if self._budget else 2.0
        if used > 1 and not self._full:
            self._full = True
            log.info(
                "%s: genomes of members are not kept from generation %d on (limit: logging.members_megabytes = %g)",
                self._database.file,
                generation,
                self._budget / 1e6,
            )
        genomes = None if self._full else self._genomes
        packed = write_members(
            self._database, generation, played, steps, novelties, genomes, behaviors=used <= _FOR_BEHAVIORS
        )
        self._bytes += packed + _MEMBER_BYTES * len(steps)
        self._members = played.genomes
