"""A run that is looked at: its configuration, records, elites and checkpoints, without writing anything."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.load import load_run_config
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.tree import centers_of, with_centers
from neuroevo.runs.checkpoint import CheckpointError
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.elites import Elite, newest_elite
from neuroevo.runs.json_lines import DamagedLine
from neuroevo.runs.metrics_rows import rows
from neuroevo.runs.other_versions import refuse_other_versions
from neuroevo.runs.paths import CONFIG, ELITES, METRICS, no_run
from neuroevo.runs.rebuilt import state_before
from neuroevo.runs.reference_file import load
from neuroevo.runs.state_codec import encode
from neuroevo.training.state import TrainState

log = logging.getLogger("neuroevo")


class RunReader:
    """A run in a folder, which another process may be training meanwhile.

    Attributes:
        path: The folder.
        config: The run's configuration.
    """

    def __init__(self, path: Path | str, *, trust: bool = False, like: Config | None = None):
        """Reads the configuration.

        Args:
            path: The run's folder.
            trust: Whether to run code and read models that the run names, whoever made it; without it only those of
                runs that this user has made here: docs/security.md.
            like: A configuration of the user's own: what that names, too, needs no trust.

        Raises:
            NotTrustedError: The run names what is not the package's, and is not trusted.
            UserError: There is no run, another version of neuroevo made it, or it cannot be read.
        """
        self.path = Path(path)
        if not (self.path / CONFIG).is_file():
            raise no_run(self.path)
        self._trust = trust
        refuse_other_versions(self.path)
        self.config: Config = load_run_config(self.path / CONFIG, trust=trust, like=like)

    def rows(self, fitness: bool = True) -> list[dict[str, Any]]:
        """Reads metrics.jsonl.

        Args:
            fitness: Whether the rows have the list of every genome's fitness.

        Returns:
            The rows; the one at index g is generation g's.

        Raises:
            UserError: The file is damaged or cannot be read.
        """
        with self._readable(METRICS):
            return list(rows(self.path, fitness))

    def elite(self, generation: int | None = None) -> tuple[int, Elite]:
        """Reads the elite of a finished generation, with the weights of its center if it has one.

        Args:
            generation: The generation; None is the last one or, if no checkpoint has its elite's weights yet because
                of `every` of [checkpoints], the last one with a checkpoint.

        Returns:
            The generation and its elite.

        Raises:
            UserError: There is no such generation, no checkpoint has the weights, or `check_file` refuses.
        """
        self.check_file()
        with self._readable(ELITES):
            last, wanted = newest_elite(self.path, generation)
        number = self._among(generation, last)
        assert wanted is not None  # since there is such a generation
        try:
            return number, replace(wanted, genome=self._with_weights(wanted.genome, number))
        except UserError:
            there = self._with_checkpoints()
            before = [known for known in there if known < last]
            if generation is not None or not before or last in there:  # a damaged one is not passed over in silence
                raise
            return self.elite(before[-1])

    def finished(self, generation: int | None = None) -> int:
        """The number of a generation that is finished.

        Args:
            generation: The generation; None is the last one.

        Raises:
            UserError: There is no such generation.
        """
        with self._readable(ELITES):
            last, _ = newest_elite(self.path)
        return self._among(generation, last)

    def normalizer(self, generation: int) -> Normalizer | None:
        """Read what the networks of a generation saw observations through; None: they saw them as they are.

        Args:
            generation: The generation.

        Raises:
            UserError: The file cannot be read or is damaged.
        """
        with self._readable(ELITES):
            elite = newest_elite(self.path, generation)[1]
        return None if elite is None else elite.normalizer

    def checkpoints(self) -> list[int]:
        """The numbers of finished generations after which there is a checkpoint, in order."""
        return self._checkpoints().generations()

    def check_file(self) -> None:
        """Checks a file of the user's own that the environment is made from.

        Raises:
            UserError: Its content is not what it was when the run began.
        """
        self._checkpoints().check_file(self.config)

    def reference_batch(self) -> np.ndarray | None:
        """Reads the reference batch of the run's network.

        Returns:
            The batch as reference_file keeps it; None if the network needs none.

        Raises:
            UserError: It is missing, or not what the run began with.
        """
        return load(self.path, self.config)

    def state(self, finished: int | None = None) -> TrainState:
        """Reads a checkpoint's state.

        Args:
            finished: Number of finished generations; None takes the newest checkpoint that can be used.

        Returns:
            The state.

        Raises:
            UserError: There is no such checkpoint, or it cannot be used.
        """
        checkpoints = self._checkpoints()
        kind, origin = self.config.algorithm.state_type, self.config.origin()
        if finished is None:
            checkpoint, unusable = checkpoints.newest(kind, origin)
            if checkpoint is None:
                reasons = "".join(f"\n  {each}" for each in unusable)
                raise UserError(f"{self.path} has no checkpoint that can be used{reasons}")
            for each in unusable:
                log.warning("neuroevo: passed over %s", each)
            return checkpoint.state
        try:
            return checkpoints.load(finished, kind, origin).state
        except CheckpointError as error:
            there = ", ".join(map(str, checkpoints.generations())) or "none"
            path = checkpoints.path(finished)
            raise UserError(f"{path} {error} (generations with a checkpoint: {there})") from None

    def _among(self, generation: int | None, last: int) -> int:
        """A generation's number, or the last one's. UserError: there is none."""
        if last < 0:
            raise UserError(f"no generation of the run in {self.path} is finished yet")
        if generation is not None and not 0 <= generation <= last:
            raise UserError(f"generation {generation} is not in {self.path}: expected one in [0, {last}]")
        return last if generation is None else generation

    def algorithm_state(self, generation: int) -> Any:
        """The algorithm's state before a generation, also where its checkpoint is gone: see runs.rebuilt.

        Args:
            generation: The number of finished generations.

        Raises:
            UserError: It cannot be known.
        """
        return state_before(
            self.path, self.config, generation, self.checkpoints(), lambda number: self.state(number).algorithm
        )

    def _with_weights(self, genome: Genome, generation: int) -> Genome:
        """A generation's elite with the weights of its center, if any. UserError: no checkpoint holds them."""
        needed = {name for name, center in centers_of([genome]).items() if not center.has_weights}
        if not needed:
            return genome
        kind, origin = self.config.algorithm.state_type, self.config.origin()
        checkpoints, why = self._checkpoints(), "the checkpoint after it is gone"
        usable: list[int] = []
        for number in sorted(checkpoints.generations(), key=lambda number: abs(number - (generation + 1))):
            try:  # its own comes first
                state = checkpoints.load(number, kind, origin).state
            except CheckpointError as error:
                if number == generation + 1:
                    why = f"{checkpoints.path(number)} {error}"
                continue
            # Of whatever it holds: parents of another run may have centers each, one of which the elite was made from.
            held = encode(state.algorithm, state.pending)
            if needed <= held.centers.keys():
                return with_centers(genome, {name: Center(held.arrays[held.centers[name]]) for name in needed})
            usable.append(number)
        if (again := self._told_anew(genome, generation)) is not None:
            return again
        known = ", ".join(str(number - 1) for number in sorted(usable) if number > 0) or "none"
        raise UserError(
            f"the weights of generation {generation}'s elite are not known any more, since {why}; expected one of "
            f"these generations: {known} (keep_last and keep_every of [checkpoints] say how many stay)"
        )

    def _told_anew(self, genome: Genome, generation: int) -> Genome | None:
        """A generation's elite with the weights of its center, as members.bin has it; None: that has too little."""
        try:
            elite = self.config.algorithm.elite(self.algorithm_state(generation + 1))
        except UserError:
            return None
        return elite if elite == genome else None

    def _with_checkpoints(self) -> list[int]:
        """The generations after which there is a checkpoint, in order."""
        return [number - 1 for number in self._checkpoints().generations() if number > 0]

    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints", self.config.checkpoints, self._trust)

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        try:
            yield
        except UserError:
            raise
        except OSError as error:
            raise UserError(f"cannot read {self.path / name}: {error.strerror}") from None
        except DamagedLine as error:
            raise UserError(
                f"{error}; put the file back from a copy, or go on from a checkpoint before that line, which plays the "
                f"generations after it again: neuroevo train --resume {self.path}"
            ) from None
