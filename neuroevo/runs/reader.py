"""Read-only access to a run, its configuration, generations, elites and states, or to the elite of a genome file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.base import State
from neuroevo.config.load import load_run_config
from neuroevo.config.own_runs import is_own
from neuroevo.config.schema import Config
from neuroevo.config.trust import Recorded
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.tree import centers_of
from neuroevo.runs.about import About, draw_reference, read_about, read_reference
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import last_generation, read_elite, rows_of
from neuroevo.runs.genome_file import SUFFIX, check_network, read_genome_file
from neuroevo.runs.paths import CONFIG, check_run, readable
from neuroevo.runs.rebuilt import state_after, weights_of
from neuroevo.runs.state_rows import generations_of_states, read_state_of
from neuroevo.training.state import TrainState


@dataclass(frozen=True, repr=False)
class Elite:
    """The best genome of a generation.

    Attributes:
        genome: The genome.
        normalizer: Normalizer of the network's observations; None if they are not normalized.
    """

    genome: Genome
    normalizer: Normalizer | None = None

    def __repr__(self) -> str:
        normalized = "" if self.normalizer is None else ", normalized observations"
        return f"Elite({self.genome!r}{normalized})"


class RunReader:
    """Read-only view of a run, which another process may be training at the same time.

    A genome file (runs/genome_file.py) is read like a run of which only the elite of one generation is known.

    Args:
        path: The run folder, or a genome file.
        trust: Allow external code and models referenced by the run even if this user did not create the run on this
            machine; see docs/security.md.
        like: A configuration of the user; the external code and models that it references are trusted, too.

    Attributes:
        path: The run folder, or the genome file.
        folder: The run folder, or the folder of the genome file.
        config: The run's configuration.

    Raises:
        NotTrustedError: The run references external code or models and is not trusted.
        UserError: The folder contains no run, another version of neuroevo created it, or it cannot be read; or the file
            is not a genome file.
    """

    def __init__(self, path: Path | str, *, trust: bool = False, like: Config | None = None):
        self.path = self.folder = Path(path)
        self._file = None
        with readable(self.path):
            is_file = self.path.suffix == SUFFIX and self.path.name != CONFIG and self.path.is_file()
        if is_file:
            self._file, self.folder = read_genome_file(self.path), self.path.parent
            file, recorded = self.path, Recorded(self._file.config)
        else:
            check_run(self.path)
            file, recorded = self.path / CONFIG, self.about().recorded
        self._trust = trust or is_own(self.path / DATABASE)
        self.config: Config = load_run_config(file, recorded=recorded, trust=trust, like=like)
        if self._file is not None:
            check_network(self.path, self._file.genome, self.config)

    def about(self) -> About:
        """Return the run's metadata."""
        with self._database() as database:
            return read_about(database)

    def rows(self, fitness: bool = True) -> list[dict[str, Any]]:
        """Read the rows of finished generations whose elite has been tested.

        Args:
            fitness: Whether to include the list of all members' fitness in each row.

        Returns:
            The rows; index i is generation i.

        Raises:
            UserError: The database is damaged or cannot be read.
        """
        with self._database() as database:
            return rows_of(database, fitness=fitness)

    def elite(self, generation: int | None = None) -> tuple[int, Elite]:
        """Read the elite of a finished generation, including the weights of its center, if any.

        Args:
            generation: The generation; None selects the last generation or, if the weights of its elite are not stored
                yet because of `every` of [checkpoints], the last generation with a state.

        Returns:
            The generation and its elite.

        Raises:
            UserError: There is no such generation, the weights are not stored, or check_file() raised it.
        """
        self.check_file()
        number = self.finished(generation)
        if self._file is not None:
            return number, Elite(self._file.genome, self._file.normalizer)
        with self._database() as database:
            genome, normalizer = read_elite(database, number)
        try:
            return number, Elite(self._with_weights(genome, number), normalizer)
        except UserError:
            there = [known - 1 for known in self.checkpoints()]
            before = [known for known in there if 0 <= known < number]
            if generation is not None or not before or number in there:  # never skip a damaged state silently
                raise
            return self.elite(before[-1])

    def finished(self, generation: int | None = None) -> int:
        """Check that a generation is finished and tested, and return its number.

        Args:
            generation: The generation; None selects the last one.

        Raises:
            UserError: There is no such generation.
        """
        if self._file is not None:
            if generation not in (None, self._file.generation):
                raise UserError(f"generation {generation} is not in {self.path}: expected {self._file.generation}")
            return self._file.generation
        with self._database() as database:
            last = last_generation(database)
        if last < 0:
            raise UserError(f"no generation of the run in {self.path} is finished yet")
        if generation is not None and not 0 <= generation <= last:
            raise UserError(f"generation {generation} is not in {self.path}: expected one in [0, {last}]")
        return last if generation is None else generation

    def normalizer(self, generation: int) -> Normalizer | None:
        """Read the observation normalizer of a generation; None if observations are not normalized.

        Args:
            generation: The generation.

        Raises:
            UserError: There is no such generation, or the database is damaged.
        """
        with self._database() as database:
            return read_elite(database, self.finished(generation))[1]

    def checkpoints(self) -> list[int]:
        """Return the stored states, each as its number of finished generations, in ascending order."""
        with self._database() as database:
            return generations_of_states(database)

    def check_file(self) -> None:
        """Check that the user file of the environment, if any, is unchanged.

        Raises:
            UserError: The file's contents have changed since the run began.
        """
        if self.config.environment.file is not None and self._file is None:
            self.config.environment.check_file(self.about().origin["env"].get("file"), self.path)

    def reference_batch(self) -> np.ndarray | None:
        """Read the reference batch of the run's network.

        Returns:
            Observations [128, ...]; None if the network needs no reference batch.

        Raises:
            UserError: The batch is missing or damaged.
        """
        if self._file is not None:
            return draw_reference(self.config) if self.config.needs_reference else None
        with self._database() as database:
            return read_reference(database, self.config)

    def state(self, finished: int | None = None) -> TrainState:
        """Read a state.

        Args:
            finished: Number of finished generations; None selects the newest usable state.

        Returns:
            The state.

        Raises:
            UserError: There is no such state, or it is unusable.
        """
        with self._database() as database:
            return read_state_of(database, self.config, finished, self._trust).state

    def algorithm_state(self, generation: int) -> State:
        """Return the algorithm's state before a generation, recomputing it if it is no longer stored.

        The computation starts from the newest stored state before the generation or, without one, from the initial
        state.

        Args:
            generation: The number of finished generations.

        Raises:
            UserError: The state cannot be recomputed.
        """
        number, state = self._state_up_to(generation)
        if number == generation:
            return state
        weights = weights_of(self.config, self.reference_batch())
        return state_after(self.config, weights, state, self.path, number, generation)

    def _state_up_to(self, generation: int) -> tuple[int, State]:
        """Return the newest usable state up to a generation, as its number and the algorithm's state."""
        for number in reversed(self.checkpoints()):
            if number <= generation:
                try:
                    return number, self.state(number).algorithm
                except UserError:
                    continue
        training = self.config.training
        if training.start_from is not None:
            reason = f"started from genomes of another run and has no state up to generation {generation}"
            raise UserError(f"the run in {self.path} {reason}")
        return 0, self.config.algorithm.init(training.seed)

    def _with_weights(self, genome: Genome, generation: int) -> Genome:
        """Return a generation's elite with the weights of its center, if any. UserError: they are not available."""
        if all(center.has_weights for center in centers_of([genome]).values()):
            return genome
        try:
            elite = self.config.algorithm.elite(self.algorithm_state(generation + 1))
            if elite == genome:
                return elite
        except UserError:
            pass
        known = ", ".join(str(number - 1) for number in self.checkpoints() if number > 0) or "none"
        raise UserError(
            f"the weights of generation {generation}'s elite are no longer available, since the state after it was "
            f"deleted; expected one of these generations: {known} (keep_last and keep_every of [checkpoints] control "
            "how many states are kept)"
        )

    def _database(self) -> Database:
        if self._file is not None:
            raise UserError(f"{self.path} is a genome file, which has only an elite; expected a run's folder")
        return Database(self.path / DATABASE)
