"""What the train loop wants from an algorithm: state in, state out, and genomes instead of weights.

A generation is

    genomes = ask(state)            the population; its episodes are played
    state = tell(state, ...)        with what the population achieved
    genomes = candidates(state)     who plays validation episodes, if anyone
    state = tell_validation(state, ...)   with what they achieved: the next generation's state

The state is a frozen dataclass of plain values (ints, floats, tuples, arrays, Genomes) that a checkpoint can hold.
Everything random follows from (seed, generation, purpose) by neuroevo.randomness, so the state needs no generator.
A population may be dense vectors too: genomes whose base is a Center. experiments/cma_es.py is an example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from neuroevo.behavior import Behavior
from neuroevo.genome import Genome


class Weights(Protocol):
    """What algorithms that move vectors need of the networks. dimensions: D of each network."""

    dimensions: Sequence[int]

    def theta(self, genome: Genome) -> np.ndarray:
        """The genome's weights, float32 [D]."""

    def noise_sum(self, seeds: Sequence[int], weights: Sequence[float], dimension: int) -> np.ndarray:
        """The sum of weights[i] * noise(seeds[i]), float32 [dimension]; the noise that mutations of these seeds add."""


@dataclass(frozen=True, eq=False)
class Played:
    """N genomes after their episodes.

    fitness: float64 [N], maximized; the mean return of a genome's episodes. steps: of all episodes together.
    behaviors: [N, B] of floats, the mean of those of a genome's episodes that did not fail, NaN where all failed;
    None if the algorithm's `behavior` is None.
    """

    genomes: Sequence[Genome]
    fitness: np.ndarray
    steps: int = 0
    behaviors: np.ndarray | None = None


class Algorithm(Protocol):
    """One search algorithm with its settings; N is the population's size, C the number of candidates.

    behavior: what of an episode is recorded beside its return; None: nothing.
    """

    state_type: ClassVar[type]  # the dataclass of its states
    behavior: Behavior | None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """The state before generation 0; seed in [0, 2**63). genomes: another run's best, best first, to start from."""

    def ask(self, state: Any, weights: Weights) -> list[Genome]:
        """The N genomes of this generation. Asking twice gives the same genomes."""

    def tell(self, state: Any, population: Played, weights: Weights) -> Any:
        """The state after the population's episodes; population.genomes are what ask() gave.

        ValueError: a fitness is not finite; it names the genome's index.
        """

    def candidates(self, state: Any) -> list[Genome]:
        """The C genomes to play validation episodes, all of them on the same seeds; may be none. state: from tell()."""

    def tell_validation(self, state: Any, validation: Played) -> Any:
        """The next generation's state; validation.genomes are what candidates() gave, and may be none.

        ValueError: a fitness is not finite; it names the candidate's index.
        """

    def elite(self, state: Any) -> Genome:
        """The best genome known. ValueError before the first generation is over."""

    def best(self, state: Any) -> list[Genome]:
        """The genomes that another run may start from, best first: the elite and whatever else the state keeps."""

    def metrics(self, before: Any, after: Any) -> Mapping[str, float | None]:
        """Numbers about the generation between two states, such as sigma, for the metrics file: finite, or None where
        one is not known, and of other names than the columns that every run has, such as generation."""


class Unvalidated:
    """For algorithms whose generations have no validation episodes."""

    def candidates(self, state: Any) -> list[Genome]:
        """Nobody."""
        return []

    def tell_validation(self, state: Any, validation: Played) -> Any:
        """The state that tell() returned."""
        return state
