"""A base class around any optimizer of vectors from elsewhere: one that can ask for vectors and be told their fitness.

    class CMASampler(Sampler):
        ...  # ask(), tell(fitness, behaviors)

    @settings
    class CMAES(AskTell):
        population: Count = 16
        sigma: Positive = 0.5

        def start(self, theta, seed):
            return CMASampler(CMA(theta, self.sigma, population_size=self.population, seed=seed % 2**32))

A checkpoint holds no objects, but the fitness and behavior of every vector: a resumed run starts the optimizer again
and repeats all its calls, which must give identical vectors, so an optimizer takes its random numbers from `seed`
alone. One that cannot do so, or whose asking takes long, may be kept by pickle: `pickled: ClassVar[bool] = True`.
Unpickling runs whatever the file says: see docs/security.md for whose file it may be.
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

_SEED = 1001  # what the optimizer's seed is drawn for
_UNKNOWN = 1e308  # in place of NaN in a state, which holds finite numbers


class Sampler(ABC):
    """An optimizer from elsewhere, as start() returns it."""

    @abstractmethod
    def ask(self) -> np.ndarray:
        """Return the next vectors, floats [N, D]; N may change from time to time."""

    @abstractmethod
    def tell(self, fitness: np.ndarray, behaviors: np.ndarray | None) -> None:
        """Take what the vectors that were asked for last have achieved.

        Args:
            fitness: Of each vector, float64 [N], which is maximized.
            behaviors: Likewise, float64 [N, B], NaN where none is known; None if the algorithm's `behavior` is None.
        """

    def mean(self) -> np.ndarray | None:
        """Return the vector that is tested after each generation, [D]; None: the best of its population."""
        return None

    def metrics(self) -> Mapping[str, float]:
        """Return numbers for the metrics file; by default none."""
        return {}


@dataclass(frozen=True, eq=False)
class AskTellState(State):
    """The state before a generation.

    Attributes:
        start: The genome whose weights the optimizer starts from.
        fitness: What it was told, for each generation, float64 [N]; empty where it is pickled.
        behaviors: Likewise, float64 [N, B], huge where none is known; empty, too, where behaviors are not recorded.
        check: A checksum of all vectors that it has given.
        best_genome: The genome that is tested; None before the first generation.
        pickled: The optimizer, uint8 [bytes]; None where it is started again.
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
            raise ValueError("there are not as many behaviors as there is fitness of each generation")
        if self.pickled is not None:
            check_array("the pickled optimizer", self.pickled, [None], np.uint8)
        elif len(self.fitness) != self.generation:
            raise ValueError(f"fitness of {len(self.fitness)} generations is stored, expected {self.generation}")

    def pickle(self) -> bytes | None:
        """Return the pickled optimizer, if there is one."""
        return None if self.pickled is None else self.pickled.tobytes()


@dataclass
class _Live:
    """An optimizer as it is after a state, and the vectors that it has given since, float64 [N, D]."""

    optimizer: Sampler
    vectors: np.ndarray | None = None
    check: int = 0


_live: WeakKeyDictionary[AskTellState, _Live] = WeakKeyDictionary()  # an optimizer moves on from state to state


class AskTell(Algorithm):
    """An algorithm that asks an optimizer and tells it; a subclass, decorated with settings, has start().

    One whose optimizer wants behaviors, such as those of quality diversity, overrides `behavior`, too.
    """

    state_type = AskTellState
    pickled: ClassVar[bool] = False

    @abstractmethod
    def start(self, theta: np.ndarray, seed: int) -> Sampler:
        """Make the optimizer before generation 0.

        Args:
            theta: Initial weights of the network, or those of another run's best genome, float64 [D].
            seed: In [0, 2**64); everything random in the optimizer is to follow from it.
        """

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> AskTellState:
        """Return the state before generation 0; the search starts at the first of `genomes`, or at fresh weights."""
        (fresh,) = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)
        return AskTellState(seed, genomes[0] if genomes else Genome(fresh))

    def ask(self, state: AskTellState, weights: Weights) -> list[Genome]:
        """Return the vectors that the optimizer gives, as float32."""
        live = self._asked(state, weights)
        assert live.vectors is not None
        return [Genome(Center(np.asarray(vector))) for vector in live.vectors.astype(np.float32)]

    def tell(self, state: AskTellState, population: EvaluatedPopulation, weights: Weights) -> AskTellState:
        """Tell the optimizer and return the state after it.

        Raises:
            ValueError: A fitness is not finite.
            UserError: The optimizer gives no vectors of weights, or others than when it was first asked.
        """
        live = self._asked(state, weights)
        assert live.vectors is not None
        fitness, behaviors = finite(population.fitness, len(live.vectors)), None
        if self.behavior is not None:
            behaviors = np.nan_to_num(
                validate_behaviors(population.behaviors, len(fitness)).astype(np.float64), nan=_UNKNOWN
            )
        _live.pop(state, None)  # it moves on
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
        """Return the optimizer's mean, or else the best vector of the last generation."""
        return known_elite(state.best_genome)

    def metrics(self, before: AskTellState, after: AskTellState) -> Mapping[str, float | None]:
        """Return the numbers of the optimizer."""
        live = _live.get(after)
        return {} if live is None else {name: float(value) for name, value in live.optimizer.metrics().items()}

    def check_state(self, state: AskTellState) -> None:
        """Check that behaviors are stored exactly if they are recorded. ValueError: They are not."""
        stored, recorded = (len(state.fitness) if each else 0 for each in (state.behaviors, self.behavior))
        if stored != recorded:
            raise ValueError(f"behaviors of {stored} generations are stored, expected {recorded}")

    def _asked(self, state: AskTellState, weights: Weights) -> _Live:
        """Return the optimizer after a state, asked once."""
        live = _live.get(state)
        if live is None:
            live = _live[state] = self._again(state, weights)
        if live.vectors is None:
            live.vectors = _vectors(live.optimizer.ask(), weights)
            live.check = zlib.crc32(live.vectors.tobytes(), live.check)
        return live

    def _again(self, state: AskTellState, weights: Weights) -> _Live:
        """Return the optimizer as it was after a state that no optimizer is at any more, as in a resumed run."""
        if state.pickled is not None and not self.pickled:
            raise UserError(f"the state holds a pickle, which {type(self).__name__} does not ask for")
        if state.pickled is not None:  # of a run that is trusted: read_state() has checked it
            return _Live(pickle.loads(state.pickled.tobytes()), check=state.check)  # noqa: S301 - as the class asks for
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
                f"{type(self).__name__} gives other vectors than when it was asked first: expected all that is random "
                "to follow from the seed that start() gets, or `pickled: ClassVar[bool] = True`"
            )
        return live


def _told(behaviors: np.ndarray | None) -> np.ndarray | None:
    """Return behaviors of a state as an optimizer is told them, with NaN where none is known."""
    return None if behaviors is None else np.where(known(behaviors)[:, None], behaviors, np.nan)


def _vectors(asked: Any, weights: Weights) -> np.ndarray:
    """Return vectors as float64 [N, D]. UserError: they are not finite vectors of weights."""
    vectors = np.array(asked, np.float64)
    if vectors.ndim != 2 or not len(vectors) or vectors.shape[1] != weights.dimension(0):
        expected = f"[N, {weights.dimension(0)}], a vector of weights each"
        raise UserError(f"the optimizer gives an array of shape {list(vectors.shape)}, expected {expected}")
    if not np.isfinite(vectors).all():
        raise UserError("the optimizer gives weights that are not finite, expected numbers")
    return vectors
