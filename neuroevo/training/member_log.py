"""Where the members of every generation are kept, for whoever looks into a population later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuroevo.core.genome import Genome


@dataclass(frozen=True, eq=False)
class PlayedMembers:
    """The N members of a generation that has played.

    Attributes:
        generation: Its number, from 0.
        genomes: Of the members, [N].
        fitness: Of the members, float64 [N].
        steps: Of all episodes of each member together, int64 [N].
        behaviors: Of the members, floats [N, B], NaN where all episodes of a member failed; None if not recorded.
        novelties: Of the members, float64 [N], NaN where the behavior is unknown; None where novelty is not measured.
    """

    generation: int
    genomes: Sequence[Genome]
    fitness: np.ndarray
    steps: np.ndarray
    behaviors: np.ndarray | None = None
    novelties: np.ndarray | None = None


class MemberLog(Protocol):
    """Keeps the members of generations."""

    def add(self, members: PlayedMembers) -> None:
        """Keeps a generation, of which the log has nothing yet, nor of a later one."""
