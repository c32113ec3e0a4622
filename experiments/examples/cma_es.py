"""A custom algorithm: CMA-ES (Hansen 2016, https://arxiv.org/abs/1604.00772). It requires the package cmaes.

    .venv/bin/pip install cmaes==0.13.1
    .venv/bin/neuroevo train experiments/examples/cma_es.toml

That file references it as module:class; the module is imported from the current folder or from Python's path. CMA-ES
keeps a covariance matrix [D, D], so it is suited to networks of up to a few hundred weights.

A checkpoint contains numbers, text, arrays and genomes, but no other objects. The state therefore consists of all past
vectors and fitness values, and the optimizer is rebuilt from them by replaying its tell() calls, which draw no random
numbers: the result is bit-identical. With more than about 100 weights it depends on the number of threads of NumPy's
linear algebra, by default the number of cores; OPENBLAS_NUM_THREADS=1 makes it reproducible.

This works with any such library, but each generation takes about a millisecond longer per previous generation (at 25
weights); for thousands of generations the state should store the mean and the covariances instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from cmaes import CMA
from pydantic import Field

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.selection import finite, known_elite
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, Positive, settings

SAMPLES = 1000  # purpose of random numbers; purposes from 1000 are reserved for custom algorithms


@dataclass(frozen=True, eq=False)
class CMAESState(State):
    """State between generations: initial mean, results of each generation, and the mean after the last one.

    Attributes:
        vectors: Vectors of each generation, float32 [N, D].
        fitness: Fitness of each generation, float64 [N].
    """

    start: Genome
    vectors: tuple[np.ndarray, ...] = ()
    fitness: tuple[np.ndarray, ...] = ()
    mean: Genome | None = None


@settings
class CMAES(Algorithm):
    """CMA-ES, for small networks."""

    population: Annotated[Count, Field(ge=4)] = 16
    """Genomes per generation."""
    sigma: Positive = 0.5
    """Standard deviation of each weight in generation 0, around random initial weights."""

    state_type = CMAESState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> CMAESState:
        """Return the state before generation 0; the search starts at the first genome, or at random initial weights."""
        return CMAESState(seed, genomes[0] if genomes else Genome(*draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)))

    def ask(self, state: CMAESState, weights: Weights) -> list[Genome]:
        """Return sampled vectors, which depend only on the state, the run's seed and the generation."""
        optimizer = self._optimizer(state, weights)
        (seed,) = draw_seeds(1, state.seed, state.generation, SAMPLES)
        optimizer.reseed_rng(seed % 2**32)
        return [Genome(Center(optimizer.ask())) for _ in range(self.population)]

    def tell(self, state: CMAESState, population: EvaluatedPopulation, weights: Weights) -> CMAESState:
        """Add the evaluated vectors, which were rounded to float32, and their fitness."""
        vectors = np.stack([genome.root.vector for genome in population.genomes])
        fitness = finite(population.fitness, len(vectors))
        told = replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + population.steps,
            vectors=(*state.vectors, vectors),
            fitness=(*state.fitness, fitness),
        )
        return replace(told, mean=Genome(Center(self._optimizer(told, weights).mean)))

    def elite(self, state: CMAESState) -> Genome:
        """Return the distribution's mean. The best vector seen may only have been lucky in its episodes."""
        return known_elite(state.mean)

    def metrics(self, before: CMAESState, after: CMAESState) -> dict[str, float]:
        """Return the standard deviation of the weights of the generation's vectors, averaged over D."""
        return {"spread": float(after.vectors[-1].std(axis=0).mean())}

    def _optimizer(self, state: CMAESState, weights: Weights) -> CMA:
        """Return the optimizer after all past tell() calls; it minimizes, so it receives the negative fitness."""
        mean = weights.theta(state.start).astype(np.float64)
        optimizer = CMA(mean, self.sigma, population_size=self.population)
        for vectors, fitness in zip(state.vectors, state.fitness, strict=True):
            optimizer.tell(list(zip(vectors.astype(np.float64), -fitness, strict=True)))
        return optimizer
