"""Base class of algorithms that wrap an external optimizer with an ask-tell interface.

    class CMASampler(Sampler):
        ...  # ask(), tell(fitness, behaviors)

    @settings
    class CMAES(AskTell):
        population: Count = 16
        sigma: Positive = 0.5

        def start(self, theta, seed):
            return CMASampler(CMA(theta, self.sigma, population_size=self.population, seed=seed % 2**32))

A checkpoint does not contain the optimizer itself, but the fitness and behavior of every vector. A resumed run creates
the optimizer again and repeats all its calls, which must return identical vectors, so all random numbers of an
optimizer must follow from `seed`. If that is impossible, or if ask() is slow, the optimizer can be stored by pickle:
`pickled: ClassVar[bool] = True`. Unpickling can run arbitrary code: see docs/security.md for which files are trusted.
"""

from __future__ import annotations

import pickle
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.novelty import known, validate_behaviors
from neuroevo.algorithms.selection import finite, known_elite
from neuroevo.core.arrays import check_array, check_counts
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds

_SEED = 1001  # purpose of the optimizer's seed
_UNKNOWN = 1e308  # replaces NaN in a state, which may only hold finite numbers


class Sampler(ABC):
    """Base class of external optimizers, as start() returns them."""

    @abstractmethod
    def ask(self) -> np.ndarray:
        """Return the next vectors, floats [N, D]; N may differ between generations."""

    @abstractmethod
    def tell(self, fitness: np.ndarray, behaviors: np.ndarray | None) -> None:
        """Update the optimizer with the results of the vectors that ask() returned last.

        Args:
            fitness: Fitness of each vector, float64 [N]; it is maximized.
            behaviors: Behavior of each vector, float64 [N, B], NaN where it is unknown; None if the algorithm's
                `behavior` is None.
        """

    def mean(self) -> np.ndarray | None:
        """Return the vector to test after each generation, [D]; None selects the best of the population."""
        return None

    def metrics(self) -> Mapping[str, float]:
        """Return numbers for the metrics file; empty by default."""
        return {}


@dataclass(frozen=True, eq=False)
class AskTellState(State):
    """The state before a generation.

    Attributes:
        start: The genome whose weights the optimizer starts from.
        fitness: Fitness of each generation, float64 [N] each; empty if the optimizer is pickled.
        behaviors: Behaviors of each generation, float64 [N, B] each, 1e308 where unknown; empty if the optimizer is
            pickled or behaviors are not recorded.
        check: Checksum of all vectors that the optimizer has returned.
        best_genome: The genome to test; None before the first generation.
        pickled: The pickled optimizer, uint8 [bytes]; None if a resumed run repeats the optimizer's calls.
    """

    start: Genome
    fitness: tuple[np.ndarray, ...] = ()
    behaviors: tuple[np.ndarray, ...] = ()
    check: int = 0
    best_genome: Genome | None = None
    pickled: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the number of stored generations differs from the finished ones."""
        super().check_state()
        check_counts(check=self.check)
        for told in self.fitness:
            check_array("fitness", told, [None], np.float64)
        for told in self.behaviors:
            check_array("behaviors", told, [None, None], np.float64)
        if self.behaviors and [len(told) for told in self.behaviors] != [len(told) for told in self.fitness]:
            raise ValueError("behaviors and fitness have different lengths, expected both for each vector")
        if self.pickled is not None:
            check_array("the pickled optimizer", self.pickled, [None], np.uint8)
        elif len(self.fitness) != self.generation:
            raise ValueError(f"fitness of {len(self.fitness)} generations is stored, expected {self.generation}")

    def pickle(self) -> bytes | None:
        """Return the pickled optimizer; None if the optimizer is not pickled."""
        return None if self.pickled is None else self.pickled.tobytes()


@dataclass
class _Live:
    """Optimizer that corresponds to a state, with the vectors it has returned since then, float64 [N, D]."""

    optimizer: Sampler
    vectors: np.ndarray | None = None
    check: int = 0


_live: WeakKeyDictionary[AskTellState, _Live] = WeakKeyDictionary()  # an optimizer belongs to its latest state


class AskTell(Algorithm):
    """Base class of algorithms that wrap an external optimizer.

    Subclasses are decorated with `settings` and implement start(). For quality diversity, they override `behavior`.
    """

    state_type = AskTellState
    pickled: ClassVar[bool] = False

    @abstractmethod
    def start(self, theta: np.ndarray, seed: int) -> Sampler:
        """Make the optimizer before generation 0.

        Args:
            theta: Initial weights of the network, or those of another run's best genome, float64 [D].
            seed: Seed in [0, 2**64) that must determine all random numbers of the optimizer.
        """

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> AskTellState:
        """Return the state before generation 0; the search starts at the first of `genomes`, or at fresh weights."""
        (fresh,) = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)
        return AskTellState(seed, genomes[0] if genomes else Genome(fresh))

    def ask(self, state: AskTellState, weights: Weights) -> list[Genome]:
        """Return the optimizer's vectors as genomes, in float32."""
        live = self._asked(state, weights)
        assert live.vectors is not None
        return [Genome(Center(np.asarray(vector))) for vector in live.vectors.astype(np.float32)]

    def tell(self, state: AskTellState, population: EvaluatedPopulation, weights: Weights) -> AskTellState:
        """Pass the results to the optimizer and return the next state.

        Raises:
            ValueError: A fitness is not finite.
            UserError: The optimizer returns invalid vectors, or a resumed run's optimizer returns different vectors.
        """
        live = self._asked(state, weights)
        assert live.vectors is not None
        fitness, behaviors = finite(population.fitness, len(live.vectors)), None
        if self.behavior is not None:
            behaviors = np.nan_to_num(
                validate_behaviors(population.behaviors, len(fitness)).astype(np.float64), nan=_UNKNOWN
            )
        _live.pop(state, None)  # tell() changes the optimizer, so that it no longer belongs to this state
        live.optimizer.tell(fitness, _told(behaviors))
        mean = live.optimizer.mean()
        chosen = live.vectors[int(np.argmax(fitness))] if mean is None else _vectors([mean], weights)[0]
        after = AskTellState(
            state.seed,
            state.start,
            () if self.pickled else (*state.fitness, fitness),
            () if self.pickled or behaviors is None else (*state.behaviors, behaviors),
            live.check,
            Genome(Center(chosen.astype(np.float32))),
            np.frombuffer(pickle.dumps(live.optimizer), np.uint8) if self.pickled else None,
            generation=state.generation + 1,
            steps=state.steps + population.steps,
        )
        _live[after] = _Live(live.optimizer, check=live.check)
        return after

    def elite(self, state: AskTellState) -> Genome:
        """Return the optimizer's mean or, if it has no mean, the best vector of the last generation."""
        return known_elite(state.best_genome)

    def metrics(self, before: AskTellState, after: AskTellState) -> Mapping[str, float | None]:
        """Return the optimizer's metrics."""
        live = _live.get(after)
        return {} if live is None else {name: float(value) for name, value in live.optimizer.metrics().items()}

    def check_state(self, state: AskTellState) -> None:
        """Check that behaviors are stored if, and only if, they are recorded. ValueError: the numbers differ."""
        stored, recorded = (len(state.fitness) if each else 0 for each in (state.behaviors, self.behavior))
        if stored != recorded:
            raise ValueError(f"behaviors of {stored} generations are stored, expected {recorded}")

    def _asked(self, state: AskTellState, weights: Weights) -> _Live:
        """Return the optimizer of a state after calling its ask() once."""
        live = _live.get(state)
        if live is None:
            live = _live[state] = self._again(state, weights)
        if live.vectors is None:
            live.vectors = _vectors(live.optimizer.ask(), weights)
            live.check = zlib.crc32(live.vectors.tobytes(), live.check)
        return live

    def _again(self, state: AskTellState, weights: Weights) -> _Live:
        """Restore the optimizer of a state, for example in a resumed run."""
        if state.pickled is not None and not self.pickled:
            raise UserError(f"the state holds a pickled optimizer, but {type(self).__name__}.pickled is False")
        if state.pickled is not None:  # read_state() has checked that the run is trusted
            return _Live(pickle.loads(state.pickled.tobytes()), check=state.check)  # noqa: S301 - enabled by the class
        (seed,) = draw_seeds(1, state.seed, 0, _SEED)
        optimizer = self.start(weights.theta(state.start).astype(np.float64), seed)
        if not isinstance(optimizer, Sampler):
            kind, expected = type(optimizer).__name__, f"a subclass of {__name__}.Sampler"
            raise UserError(f"start() of {type(self).__name__} returns a {kind}, expected {expected}")
        live = _Live(optimizer)
        for fitness, behaviors in zip_longest(state.fitness, state.behaviors):
            vectors = _vectors(live.optimizer.ask(), weights)
            live.check = zlib.crc32(vectors.tobytes(), live.check)
            if len(vectors) == len(fitness):
                live.optimizer.tell(fitness, _told(behaviors))
        if live.check != state.check:
            raise UserError(
                f"{type(self).__name__} returns different vectors than in the original run: expected all random "
                "numbers to follow from the seed passed to start(), or `pickled: ClassVar[bool] = True`"
            )
        return live


def _told(behaviors: np.ndarray | None) -> np.ndarray | None:
    """Return behaviors of a state with NaN where they are unknown, as Sampler.tell() takes them."""
    return None if behaviors is None else np.where(known(behaviors)[:, None], behaviors, np.nan)


def _vectors(asked: Any, weights: Weights) -> np.ndarray:
    """Convert vectors to float64 [N, D]. UserError: they have another shape or are not finite."""
    vectors = np.array(asked, np.float64)
    if vectors.ndim != 2 or not len(vectors) or vectors.shape[1] != weights.dimension(0):
        expected = f"[N, {weights.dimension(0)}], one vector of weights per row"
        raise UserError(f"the optimizer returns an array of shape {list(vectors.shape)}, expected {expected}")
    if not np.isfinite(vectors).all():
        raise UserError("the optimizer returns weights that are not finite")
    return vectors
