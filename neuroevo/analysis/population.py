"""The members of a finished generation, asked again from the checkpoint before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.analysis.replay import Replay
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.reader import RunReader


@dataclass(frozen=True)
class Population:
    """The N members of a generation.

    Attributes:
        generation: Its number, from 0.
        genomes: Of the members, [N].
        fitness: Of the members, float64 [N].
    """

    generation: int
    genomes: Sequence[Genome]
    fitness: np.ndarray

    @property
    def parents(self) -> list[Genome | None]:
        """Whose offspring each member is, [N]: the genome without its last mutation; None for one without mutations."""
        return [replace(each, chain=each.chain[:-1]) if each.chain else None for each in self.genomes]

    @property
    def ranking(self) -> np.ndarray:
        """The members' indices, the best first, int64 [N]; equals stay in their order."""
        return np.argsort(-self.fitness, kind="stable")


def read_population(reader: RunReader, generation: int | None = None) -> Population:
    """Reads a generation's members and their fitness.

    Args:
        reader: The run.
        generation: Which, counted from 0; None: the last finished one.

    Returns:
        The members in the order in which the algorithm asked for them.

    Raises:
        UserError: There is no such generation, or the checkpoint that remembers its members is gone.
    """
    generation, elite = reader.elite(generation)
    rows = reader.rows()
    there = Checkpoints(reader.path / "checkpoints", reader.config.checkpoints).generations()
    if generation not in there:
        known = ", ".join(str(finished) for finished in there if finished < len(rows)) or "none"
        raise UserError(
            f"the members of generation {generation} are not known any more, since the checkpoint before it is gone; "
            f"expected one of these generations: {known} (keep_last and keep_every of [checkpoints] say how many stay)"
        )
    weights = Replay(reader.config, [elite.genome], reference_batch=reader.reference_batch()).weights
    genomes = reader.config.algorithm.ask(reader.state(generation).algorithm, weights)
    return Population(generation, genomes, np.array(rows[generation]["fitness"], np.float64))
