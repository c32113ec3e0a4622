"""The strategies of evosax as algorithms: algorithm.name = "evosax:CR_FM_NES".

evosax (Lange 2022, https://arxiv.org/abs/2212.04180) has some forty evolution strategies and genetic algorithms in JAX.
evosax proposes vectors of weights, and this package evaluates them on games and robots. evosax computes with whole
populations of vectors, and some strategies use matrices [D, D], so they are limited to small networks of up to 20,000
weights.

A generation's random numbers follow from the run's seed and the generation, and a state consists of the strategy's
arrays, so that a run resumed on the same machine is bit-identical. A population-based strategy, such as a genetic
algorithm, starts with a population of fresh networks.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.selection import finite, known_elite
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.core.extras import require
from neuroevo.core.genome import Center, Genome
from neuroevo.core.problems import Problem, did_you_mean, refuse
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive, settings
from neuroevo.core.user_module import EVOSAX

PREFIX = f"{EVOSAX}:"
MAX_DIMENSION = 20_000


@dataclass(frozen=True, eq=False)
class EvosaxState(State):
    """The state before a generation.

    Attributes:
        start: The genome whose weights are the initial mean or, without a mean, a member of the initial population.
        arrays: Arrays of the strategy's state; empty in generation 0.
        elite: The mean or, without a mean, the best genome of the latest population; None in generation 0.
    """

    start: Genome
    arrays: tuple[np.ndarray, ...] = ()
    elite: Genome | None = None


@settings
class Evosax(Algorithm):
    """A strategy of evosax."""

    population: Count = 64
    """Genomes per generation; many strategies require an even number."""
    sigma: Positive | None = None
    """Standard deviation of the noise, or its initial value; by default the strategy's default, which may be 1."""
    learning_rate: Positive | None = None
    """Learning rate of Adam, for strategies that move a center by an optimizer; by default the strategy's default."""
    params: Annotated[dict[str, float], Field(strict=True)] = field(default_factory=dict)
    """Other parameters of the strategy, with evosax's names."""

    strategy: ClassVar[str]
    state_type = EvosaxState

    def __post_init__(self) -> None:
        strategy, params = self._made(1)
        problems = []
        for name in self.params:
            if name not in params.__dict__:
                hint = did_you_mean(name, params.__dict__)
                known = ", ".join(params.__dict__) or "none"
                problems.append(
                    Problem(f"params.{name}", f"{self.strategy} has no such parameter{hint} (it has {known})")
                )
        takes = inspect.signature(type(strategy)).parameters
        if self.learning_rate is not None and "optimizer" not in takes:
            problems.append(Problem("learning_rate", f"{self.strategy} has no optimizer", self.learning_rate))
        if self.sigma is not None and "std_schedule" not in takes and "std_init" not in params.__dict__:
            problems.append(Problem("sigma", f"{self.strategy} has no such parameter", self.sigma))
        refuse(problems)

    @property
    def state_layout(self) -> str:
        """The strategy's name."""
        return self.strategy

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> EvosaxState:
        """Make the state before generation 0; the search starts at the first given genome, or at a fresh one."""
        (fresh,) = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)
        return EvosaxState(seed, genomes[0] if genomes else Genome(fresh))

    def ask(self, state: EvosaxState, weights: Weights) -> list[Genome]:
        """Return the strategy's vectors.

        Raises:
            UserError: The network has too many weights.
        """
        dimension, network = weights.dimension(state.start.network), state.start.network
        if dimension > MAX_DIMENSION:
            reason = (
                f"the network has {dimension:,} weights, expected at most {MAX_DIMENSION:,} for a strategy of evosax"
            )
            raise UserError(f"{reason}, which computes with whole populations of vectors")
        if not state.arrays and not self._has_mean():
            bases = draw_seeds(self.population, state.seed, 1, Purpose.INITIAL_WEIGHTS)
            return [state.start, *(Genome(base, network) for base in bases[1:])]
        population, _ = self._asked(state, weights)
        return [Genome(Center(vector), network) for vector in np.asarray(population)]

    def tell(self, state: EvosaxState, population: EvaluatedPopulation, weights: Weights) -> EvosaxState:
        """Pass the vectors and their negated fitness, which evosax minimizes, to the strategy.

        Raises:
            ValueError: A fitness is not finite.
        """
        import jax

        fitness = finite(population.fitness, len(population.genomes))
        strategy, params = self._made(weights.dimension(state.start.network))
        _, key = self._keys(state)
        if not state.arrays and not self._has_mean():
            thetas = np.stack([weights.theta(genome) for genome in population.genomes])
            after = strategy.init(key, thetas, -fitness.astype(np.float32), params)
        else:
            thetas, asked = self._asked(state, weights)
            after, _ = strategy.tell(key, thetas, -fitness.astype(np.float32), asked, params)
        arrays = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(after))
        elite = population.genomes[int(np.argmax(fitness))]
        if self._has_mean():
            mean = np.asarray(after.mean, np.float32)
            elite = Genome(Center(mean.reshape(-1, mean.shape[-1])[0]), state.start.network)
        steps = state.steps + population.steps
        return EvosaxState(state.seed, state.start, arrays, elite, generation=state.generation + 1, steps=steps)

    def elite(self, state: EvosaxState) -> Genome:
        """Return the mean or, without a mean, the best genome of the latest population, possibly a lucky one."""
        return known_elite(state.elite)

    def _asked(self, state: EvosaxState, weights: Weights) -> tuple[Any, Any]:
        """Return the strategy's vectors, [N, D], and its state after sampling them."""
        import jax

        strategy, params = self._made(weights.dimension(state.start.network))
        ask, other = self._keys(state)
        if self._has_mean():
            before = strategy.init(other, weights.theta(state.start), params)
        else:
            zeros = np.zeros((self.population, weights.dimension(state.start.network)), np.float32)
            before = strategy.init(other, zeros, zeros[:, 0], params)
        if state.arrays:
            known, form = jax.tree.flatten(before)
            if [(leaf.shape, leaf.dtype) for leaf in known] != [(each.shape, each.dtype) for each in state.arrays]:
                raise ValueError(f"the arrays are not those of evosax's {self.strategy} with these settings")
            before = jax.tree.unflatten(form, state.arrays)
        return strategy.ask(ask, before, params)

    def _made(self, dimension: int) -> tuple[Any, Any]:
        """Return the strategy and its parameters."""
        chosen = tuple(sorted(self.params.items()))
        return _strategy(self.strategy, self.population, dimension, self.sigma, self.learning_rate, chosen)

    def _has_mean(self) -> bool:
        return "mean" in inspect.signature(type(self._made(1)[0]).init).parameters

    def _keys(self, state: EvosaxState) -> Any:
        import jax

        (seed,) = draw_seeds(1, state.seed, state.generation, Purpose.MUTATIONS)
        return jax.random.split(jax.random.key(seed % 2**32))


@lru_cache(maxsize=8)  # JAX compiles the functions of each strategy object once
def _strategy(
    name: str,
    population: int,
    dimension: int,
    sigma: float | None,
    learning_rate: float | None,
    params: tuple[tuple[str, float], ...],
) -> tuple[Any, Any]:
    import optax
    from evosax.algorithms import algorithms

    kind = algorithms[name]
    takes, options = inspect.signature(kind).parameters, {}
    if learning_rate is not None and "optimizer" in takes:
        options["optimizer"] = optax.adam(learning_rate)
    if sigma is not None and "std_schedule" in takes:
        options["std_schedule"] = optax.constant_schedule(sigma)
    try:
        strategy = kind(population_size=population, solution=np.zeros(dimension, np.float32), **options)
    except TypeError as error:
        refuse([Problem("name", f"evosax's {name} needs arguments beyond a configuration: {error}", f"{PREFIX}{name}")])
    except (AssertionError, ValueError) as error:
        refuse([Problem("population", f"rejected by evosax's {name}: {error}", population)])
    defaults = strategy.default_params
    own = {each: value for each, value in params if each in defaults.__dict__}
    if sigma is not None and "std_init" in defaults.__dict__:
        own["std_init"] = sigma
    return strategy, defaults.replace(**own)


def evosax_algorithm(name: str) -> type[Evosax]:
    """Return the algorithm class of a strategy.

    Args:
        name: Name of the strategy in evosax.algorithms.

    Raises:
        UserError: evosax is not installed, or has no such strategy.
    """
    require("compare", "evosax")
    from evosax.algorithms import algorithms

    if name not in algorithms:
        raise UserError(
            f"evosax has no strategy {name}{did_you_mean(name, algorithms)}; it has {', '.join(algorithms)}"
        )
    return _classes(name)


@lru_cache
def _classes(name: str) -> type[Evosax]:
    return settings(type(f"Evosax_{name}", (Evosax,), {"strategy": name, "__doc__": f"evosax's {name}."}))
