"""Base classes of algorithms and their states. Algorithms are pure functions of states and use genomes, not weights.

One generation is

    genomes = ask(state)                  the population, which plays its episodes
    state = tell(state, ...)              the algorithm receives the population's fitness
    genomes = candidates(state)           genomes that play validation episodes, none by default
    state = tell_validation(state, ...)   the algorithm receives their fitness; this is the next generation's state

neuroevo.core.randomness derives all random numbers from (seed, generation, purpose), so a state holds no generator.
A population may also consist of dense vectors, as genomes whose root is a Center: see experiments/examples/cma_es.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from neuroevo.core.archive import Archive
from neuroevo.core.arrays import Checked, check_counts
from neuroevo.core.behavior import Behavior, Measure
from neuroevo.core.evaluator import OwnNetworkLimits, Weights
from neuroevo.core.genome import GAUSSIAN, Genome, Kind


@dataclass(frozen=True, eq=False)
class EvaluatedPopulation:
    """N genomes with the results of their episodes.

    Attributes:
        genomes: The N genomes.
        fitness: Mean return of each genome's episodes, float64 [N]; it is maximized.
        steps: Total steps of all episodes.
        behaviors: Mean behavior of each genome's episodes that did not fail, floats [N, B], NaN where all of them
            failed; None if the algorithm's `behavior` is None.
    """

    genomes: Sequence[Genome]
    fitness: np.ndarray
    steps: int = 0
    behaviors: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class State(Checked):
    """Base class of states. A state holds everything that an algorithm's next generation depends on.

    A state is a frozen dataclass of plain values, tuples, arrays, Genomes and Archives, whose values must have the
    types that its fields declare. Checkpoints store it. Subclasses with further constraints override check_state().

    Attributes:
        seed: The run's seed.
        generation: Number of the next generation, from 0.
        steps: Training steps so far.
    """

    seed: int
    _: KW_ONLY
    generation: int = 0
    steps: int = 0

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: a count is below 0."""
        check_counts(seed=self.seed, generation=self.generation, steps=self.steps)

    def pickle(self) -> bytes | None:
        """Return the pickle that the state holds, which is loaded only if the run is trusted; None without a pickle."""
        return None


class Algorithm(ABC):
    """Base class of search algorithms. The fields of a subclass, decorated with `settings`, are its settings.

    N is the size of the population, C the number of candidates for the elite.

    Attributes:
        state_type: The class of the algorithm's states, derived from State.
    """

    state_type: ClassVar[type[State]] = State

    @property
    def behavior(self) -> Behavior | None:
        """The behavior to record in each episode; None to record only the return."""
        return None

    @property
    def mutation_kind(self) -> Kind:
        """The kind of the mutations of a population's genomes."""
        return GAUSSIAN

    @property
    def own_networks(self) -> OwnNetworkLimits | None:
        """Return the limits of genomes' own networks; None (the default) if all genomes use the configured network."""
        return None

    @property
    def needs_reference(self) -> bool:
        """Return whether ask() needs a reference batch, for Weights.output_change()."""
        return False

    @property
    def validates(self) -> bool:
        """Whether some genomes play validation episodes: those of candidates()."""
        return type(self).candidates is not Algorithm.candidates

    @property
    def state_layout(self) -> Hashable:
        """Value that, with `behavior` and the initial state, determines the layout of states; equal in all forks."""
        return None

    def on_measures(self, measures: Sequence[Measure]) -> Algorithm:
        """Return the algorithm with its settings completed for an environment; by default the algorithm itself.

        Args:
            measures: Descriptions of the numbers in one sample of that environment's behavior.

        Raises:
            ConfigError: The settings do not fit these behaviors.
        """
        return self

    @abstractmethod
    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Make the state before generation 0.

        Args:
            seed: The run's seed, in [0, 2**63).
            genomes: The best genomes of another run to start from, best first.

        Returns:
            An instance of state_type.
        """

    @abstractmethod
    def ask(self, state: Any, weights: Weights) -> list[Genome]:
        """Return the N genomes of this generation; repeated calls return the same genomes.

        Args:
            state: The state before the generation.
            weights: The weights of genomes, for algorithms that compute with them.
        """

    @abstractmethod
    def tell(self, state: Any, population: EvaluatedPopulation, weights: Weights) -> Any:
        """Return the state after the population's episodes.

        Without candidates, this is the state before the next generation, with updated generation and steps.

        Args:
            state: The state before the generation.
            population: The genomes that ask() returned, with their results.
            weights: The weights of genomes, for algorithms that compute with them.

        Raises:
            ValueError: A fitness is not finite; the message names the genome's index.
        """

    @abstractmethod
    def elite(self, state: Any) -> Genome:
        """Return the best genome known.

        Raises:
            ValueError: The first generation is not finished.
        """

    def candidates(self, state: Any) -> list[Genome]:
        """Return the C genomes that play validation episodes, all on the same seeds; empty by default.

        Args:
            state: The state that tell() returned.
        """
        return []

    def tell_validation(self, state: Any, validation: EvaluatedPopulation) -> Any:
        """Return the state before the next generation; by default the state that tell() returned.

        Args:
            state: The state that tell() returned.
            validation: The genomes that candidates() returned with their results; may be empty.

        Raises:
            ValueError: A fitness is not finite; the message names the candidate's index.
        """
        return state

    def best(self, state: Any) -> list[Genome]:
        """Return the genomes that another run may start from, best first; by default only the elite."""
        return [self.elite(state)]

    def novelties(self, state: Any, population: EvaluatedPopulation) -> np.ndarray | None:
        """Return the novelty of each member of a population.

        Args:
            state: The state before the generation.
            population: The members, with behaviors.

        Returns:
            float64 [N], NaN where a behavior is unknown; None (the default) if the algorithm does not measure novelty.
        """
        return None

    def archive(self, state: Any) -> Archive | None:
        """Return the archive of behaviors that a state holds; None (the default) if the algorithm has no archive.

        The metrics include its size as "archive", and the inspector plots it.
        """
        return None

    def metrics(self, before: Any, after: Any) -> Mapping[str, float | None]:
        """Return numbers about one generation, such as sigma, for the metrics file; empty by default.

        Args:
            before: The state before the generation.
            after: The state after it.

        Returns:
            Finite numbers by name, or None for an unknown number. A name must not be that of a column that every run
            has, such as "generation".
        """
        return {}

    def check_state(self, state: Any) -> None:
        """Check a state that was read from a file against the settings.

        Args:
            state: An instance of state_type that has passed its own check_state().

        Raises:
            ValueError: The state was made with other settings.
        """
        return None
