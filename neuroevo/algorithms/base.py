"""The base classes of algorithms and their states: state in, state out, and genomes instead of weights.

One generation is

    genomes = ask(state)                  the population, which plays its episodes
    state = tell(state, ...)              the algorithm receives the population's fitness
    genomes = candidates(state)           genomes that play validation episodes, none by default
    state = tell_validation(state, ...)   the algorithm receives their fitness; this is the next generation's state

All random numbers follow from (seed, generation, purpose) by neuroevo.core.randomness, so a state holds no generator.
A population may also consist of dense vectors, as genomes whose base is a Center: see experiments/examples/cma_es.py.
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
        steps: Steps of all episodes together.
        behaviors: Mean behavior of each genome's episodes that did not fail, floats [N, B], NaN where all of them
            failed; None if the algorithm's `behavior` is None.
    """

    genomes: Sequence[Genome]
    fitness: np.ndarray
    steps: int = 0
    behaviors: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class State(Checked):
    """Base class of states: all that an algorithm's next generation depends on.

    A state is a frozen dataclass of plain values, tuples, arrays, Genomes and Archives, which a checkpoint holds, and
    which must have the types that its fields declare. One with further rules overrides check_state().

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
        """Return the pickle that the state holds, which is loaded only if the run is trusted; None: no pickle."""
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
        """What to record of an episode besides its return; None: nothing."""
        return None

    @property
    def mutation_kind(self) -> Kind:
        """The kind of the mutations of a population's genomes."""
        return GAUSSIAN

    @property
    def own_networks(self) -> OwnNetworkLimits | None:
        """Return the limits of genomes' own networks; None, as by default: all genomes have the configured network."""
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
        """What determines the layout of states besides `behavior` and the layout of the first one: a fork keeps it."""
        return None

    def on_measures(self, measures: Sequence[Measure]) -> Algorithm:
        """Return the algorithm for an environment; by default itself.

        Args:
            measures: What a sample of a behavior consists of in that environment.

        Raises:
            ConfigError: The settings are for other behaviors.
        """
        return self

    @abstractmethod
    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> Any:
        """Make the state before generation 0.

        Args:
            seed: The run's seed, in [0, 2**63).
            genomes: The best genomes of another run to start from, best first.

        Returns:
            A state_type.
        """

    @abstractmethod
    def ask(self, state: Any, weights: Weights) -> list[Genome]:
        """Return the N genomes of this generation; asking twice gives the same genomes.

        Args:
            state: The state before the generation.
            weights: The weights of genomes, for algorithms that compute with them.
        """

    @abstractmethod
    def tell(self, state: Any, population: EvaluatedPopulation, weights: Weights) -> Any:
        """Return the state after the population's episodes.

        Without candidates it is the state before the next generation, whose number and steps it has.

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
        """Return the C genomes that play validation episodes, all on the same seeds; by default none.

        Args:
            state: The state that tell() returned.
        """
        return []

    def tell_validation(self, state: Any, validation: EvaluatedPopulation) -> Any:
        """Return the state before the next generation; by default the one that tell() returned.

        Args:
            state: The state that tell() returned.
            validation: The genomes that candidates() returned, possibly none, with their results.

        Raises:
            ValueError: A fitness is not finite; the message names the candidate's index.
        """
        return state

    def best(self, state: Any) -> list[Genome]:
        """Return the genomes that another run may start from, best first; by default the elite alone."""
        return [self.elite(state)]

    def novelties(self, state: Any, population: EvaluatedPopulation) -> np.ndarray | None:
        """Return the novelty of each member of a population.

        Args:
            state: The state before the generation.
            population: The members, with behaviors.

        Returns:
            float64 [N], NaN where a behavior is unknown; None, as by default, where novelty is not measured.
        """
        return None

    def archive(self, state: Any) -> Archive | None:
        """Return the archive of behaviors that a state holds; None, as by default, if the algorithm keeps none.

        Its size is in the metrics, under the name "archive", and the inspector draws it.
        """
        return None

    def metrics(self, before: Any, after: Any) -> Mapping[str, float | None]:
        """Return numbers about one generation, such as sigma, for the metrics file; by default none.

        Args:
            before: The state before the generation.
            after: The state after it.

        Returns:
            Finite numbers by name, or None where one is not known. No name may be that of a column that every run has,
            such as "generation".
        """
        return {}

    def check_state(self, state: Any) -> None:
        """Check a state of a file against the settings.

        Args:
            state: A state_type that has passed its own check_state().

        Raises:
            ValueError: It was made with other settings.
        """
        return None
