"""What the train loop wants from an algorithm: state in, state out, and genomes instead of weights.

The state is a frozen dataclass of plain values (ints, floats, tuples, Genomes) that a checkpoint can hold. Everything
random follows from (seed, generation, purpose) by neuroevo.randomness, so the state needs no generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from neuroevo.genome import Genome


class Algorithm(Protocol):
    """One search algorithm with its settings; N is the population's size, C the number of candidates."""

    state_type: ClassVar[type]  # the dataclass of its states

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """The state before generation 0; seed in [0, 2**63). genomes: another run's best, best first, to start from."""

    def ask(self, state: Any) -> list[Genome]:
        """The N genomes of this generation. Asking twice gives the same genomes."""

    def candidates(self, state: Any, genomes: Sequence[Genome], fitness: np.ndarray) -> list[Genome]:
        """The C genomes to play validation episodes, from the population's fitness, float64 [N]; may be none.

        ValueError: a fitness is not finite; it names the genome's index.
        """

    def tell(
        self,
        state: Any,
        genomes: Sequence[Genome],
        fitness: np.ndarray,
        candidates: Sequence[Genome],
        validation: np.ndarray,
        steps: int,
    ) -> Any:
        """The next generation's state.

        fitness: float64 [N], maximised. validation: mean fitness of each candidate, float64 [C]. steps: taken by the
        generation's population and validation episodes. ValueError: a fitness is not finite.
        """

    def elite(self, state: Any) -> Genome:
        """The best genome known. ValueError before the first tell."""

    def best(self, state: Any) -> list[Genome]:
        """The genomes that another run may start from, best first: the elite and whatever else the state keeps."""

    def metrics(self, state: Any) -> Mapping[str, float]:
        """Numbers about the generation that `ask` would make now, such as sigma, for the metrics file."""
