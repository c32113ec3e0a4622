"""An algorithm of one's own: CMA-ES (Hansen 2016, https://arxiv.org/abs/1604.00772). It needs the package cmaes.

    .venv/bin/pip install cmaes==0.13.1
    .venv/bin/neuroevo train experiments/examples/cma_es.toml

That file names it, as module:class; it is found from the folder where the command is given, or where Python finds
modules. CMA-ES keeps a matrix [D, D] of covariances, so it is for networks of up to some hundred weights.

A checkpoint holds numbers, text, arrays and genomes, but no objects. So the state is what the optimizer was told, and
whoever needs the optimizer makes it anew and tells it all of that again: it draws no random numbers meanwhile, and ends
up with the same bits. From about 100 weights on these depend on how many threads NumPy's linear algebra has, which is
as many as there are cores; OPENBLAS_NUM_THREADS=1 settles it.

This works with any such library, but a generation takes longer by about a millisecond for each one before it (at 25
weights); for thousands of generations the state would rather hold the mean and the covariances.
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

SAMPLES = 1000  # what random numbers are drawn for; numbers from 1000 on are for algorithms of one's own


@dataclass(frozen=True, eq=False)
class CMAESState(State):
    """Between generations: where the search starts, the results of each generation, and its mean since the last.

    Attributes:
        vectors: Of each generation, float32 [N, D].
        fitness: Of each generation, float64 [N].
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
    """Standard deviation of each weight in generation 0, around freshly made weights."""

    state_type = CMAESState

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> CMAESState:
        """Return the state before generation 0; the search starts at the first genome, or else at fresh weights."""
        return CMAESState(seed, genomes[0] if genomes else Genome(*draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)))

    def ask(self, state: CMAESState, weights: Weights) -> list[Genome]:
        """Return vectors that the optimizer samples, which depend on the run's seed and the generation alone."""
        optimizer = self._optimizer(state, weights)
        (seed,) = draw_seeds(1, state.seed, state.generation, SAMPLES)
        optimizer.reseed_rng(seed % 2**32)
        return [Genome(Center(optimizer.ask())) for _ in range(self.population)]

    def tell(self, state: CMAESState, population: EvaluatedPopulation, weights: Weights) -> CMAESState:
        """Add the vectors as they were played, rounded to 32 bits, and their fitness."""
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
        """Return the optimizer after all that it was told; it minimizes, so it is told minus the fitness."""
        mean = weights.theta(state.start).astype(np.float64)
        optimizer = CMA(mean, self.sigma, population_size=self.population)
        for vectors, fitness in zip(state.vectors, state.fitness, strict=True):
            optimizer.tell(list(zip(vectors.astype(np.float64), -fitness, strict=True)))
        return optimizer
