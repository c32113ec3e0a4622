"""The protocol between the training loop and an algorithm: state in, state out, and genomes instead of weights.

One generation is

    genomes = ask(state)                  the population, which plays its episodes
    state = tell(state, ...)              the algorithm receives the population's fitness
    genomes = candidates(state)           genomes that play validation episodes, possibly none
    state = tell_validation(state, ...)   the algorithm receives their fitness; this is the next generation's state

The state is a frozen dataclass of plain values (ints, floats, tuples, arrays, Genomes) that a checkpoint can hold, and
that are of the types that its fields say, which a checkpoint checks. A state that knows more, such as shapes, has a
method check_state(), and an algorithm whose settings know more has check_state(state); both raise ValueError.
All random numbers follow from (seed, generation, purpose) by neuroevo.core.randomness, so the state holds no generator.
A population may also consist of dense vectors, as genomes whose base is a Center: see experiments/examples/cma_es.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import GAUSSIAN, Genome, Kind


@dataclass(frozen=True, eq=False)
class Played:
    """N genomes with the results of their episodes.

    Attributes:
        genomes: The N genomes.
        fitness: Mean return of each genome's episodes, float64 [N]; it is maximized.
        steps: Steps of all episodes together.
        behaviors: Mean behavior of each genome's episodes that did not fail, floats [N, B], NaN where all of them
            failed; None if the algorithm's `behavior` is None.
    """

    genomes: Sequence[Genome]
    fitness: np.ndarray
    steps: int = 0
    behaviors: np.ndarray | None = None


class Algorithm(Protocol):
    """One search algorithm with its settings.

    N is the size of the population, C the number of candidates for the elite.

    Attributes:
        state_type: The frozen dataclass of the algorithm's states.
    """

    state_type: ClassVar[type]

    @property
    def behavior(self) -> Behavior | None:
        """What is recorded of an episode besides its return; None: nothing."""

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Makes the state before generation 0.

        Args:
            seed: The run's seed, in [0, 2**63).
            genomes: The best genomes of another run to start from, best first.

        Returns:
            A state_type.
        """

    def ask(self, state: Any, weights: Weights) -> list[Genome]:
        """Returns the N genomes of this generation; asking twice gives the same genomes.

        Args:
            state: The state before the generation.
            weights: The weights of genomes, for algorithms that compute with them.
        """

    def tell(self, state: Any, population: Played, weights: Weights) -> Any:
        """Returns the state after the population's episodes.

        Args:
            state: The state before the generation.
            population: The genomes that ask() returned, with their results.
            weights: The weights of genomes, for algorithms that compute with them.

        Raises:
            ValueError: A fitness is not finite; the message names the genome's index.
        """

    def candidates(self, state: Any) -> list[Genome]:
        """Returns the C genomes that play validation episodes, all on the same seeds; there may be none.

        Args:
            state: The state that tell() returned.
        """

    def tell_validation(self, state: Any, validation: Played) -> Any:
        """Returns the state before the next generation.

        Args:
            state: The state that tell() returned.
            validation: The genomes that candidates() returned, possibly none, with their results.

        Raises:
            ValueError: A fitness is not finite; the message names the candidate's index.
        """

    def elite(self, state: Any) -> Genome:
        """Returns the best genome known.

        Raises:
            ValueError: The first generation is not finished.
        """

    def best(self, state: Any) -> list[Genome]:
        """Returns the genomes that another run may start from, best first: the elite and others that the state has."""

    def metrics(self, before: Any, after: Any) -> Mapping[str, float | None]:
        """Returns numbers about one generation, such as sigma, for the metrics file.

        Args:
            before: The state before the generation.
            after: The state after it.

        Returns:
            Finite numbers by name, or None where one is not known. No name may be that of a column that every run has,
            such as "generation".
        """


class Unvalidated:
    """Base class of algorithms whose generations have no validation episodes."""

    def candidates(self, state: Any) -> list[Genome]:
        """Returns no genomes."""
        return []

    def tell_validation(self, state: Any, validation: Played) -> Any:
        """Returns the state that tell() returned."""
        return state


def novelties(algorithm: Any, state: Any, population: Played) -> np.ndarray | None:
    """How novel each member of a population is.

    Args:
        algorithm: An Algorithm. One that measures novelty says so by a method novelties(state, population).
        state: The state before the generation.
        population: The members, with behaviors.

    Returns:
        float64 [N], NaN where a behavior is unknown; None where novelty is not measured.
    """
    measure = getattr(algorithm, "novelties", None)
    return measure(state, population) if callable(measure) else None


def mutation_kind(algorithm: Any) -> Kind:
    """Return the kind of the mutations of an algorithm's populations: its attribute mutation_kind, or Gaussian."""
    kind: Kind = getattr(algorithm, "mutation_kind", GAUSSIAN)
    return kind
