"""An external optimizer in ten lines: CMA-ES of the package cmaes with the base class neuroevo.AskTell.

    .venv/bin/pip install cmaes==0.13.1
    .venv/bin/neuroevo train experiments/examples/ask_tell.toml

cma_es.py is the same algorithm without the base class.
"""

from __future__ import annotations

import numpy as np
from cmaes import CMA

from neuroevo import AskTell
from neuroevo.algorithms.ask_tell import Sampler
from neuroevo.core.settings import Count, Positive, settings


class CMASampler(Sampler):
    """CMA-ES with the methods of a Sampler."""

    def __init__(self, optimizer: CMA):
        self.optimizer = optimizer

    def ask(self) -> np.ndarray:
        """Return the next vectors, [N, D]."""
        self.asked = [self.optimizer.ask() for _ in range(self.optimizer.population_size)]
        return np.stack(self.asked)

    def tell(self, fitness: np.ndarray, behaviors: np.ndarray | None) -> None:
        """Receive their fitness, [N]; the library minimizes."""
        self.optimizer.tell(list(zip(self.asked, -fitness, strict=True)))

    def mean(self) -> np.ndarray:
        """Return the vector to test, [D]: the best of a generation may only have been lucky in its episodes."""
        return self.optimizer.mean


@settings
class CMAES(AskTell):
    """CMA-ES, for small networks."""

    population: Count = 16
    """Genomes per generation."""
    sigma: Positive = 0.5
    """Standard deviation of each weight in generation 0, around random initial weights."""

    def start(self, theta: np.ndarray, seed: int) -> CMASampler:
        """Make the optimizer before generation 0."""
        return CMASampler(CMA(theta, self.sigma, population_size=self.population, seed=seed % 2**32))
