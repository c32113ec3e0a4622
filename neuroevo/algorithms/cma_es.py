"""CMA-ES, evolution strategies with covariance matrix adaptation, for small networks.

Hansen 2016, "The CMA evolution strategy: a tutorial" (https://arxiv.org/abs/1604.00772), with its step sizes and with
negative weights for the worst half. A population is drawn from a normal distribution with a full covariance matrix,
which follows the directions in which fitness increases.

Genomes are vectors, since noise multiplied by a matrix cannot be reproduced from a seed alone; the standard normal
noise itself comes from seeds. The matrix takes D**2 numbers and its decomposition D**3 operations, which limits D.
NumPy's linear algebra computes both in float64. Its rounding depends on the processor and, from about a hundred weights
on, on the number of threads (OPENBLAS_NUM_THREADS): a run resumed on another machine is not bit-identical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neuroevo.algorithms.ascent import CenterSearch
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.cumulation import Offspring, StepSize, StepSizeState, population_size
from neuroevo.algorithms.fitness_shaping import by_rank
from neuroevo.algorithms.selection import finite
from neuroevo.core.arrays import check_array
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Positive32, settings

MAX_DIMENSION = 5000  # two matrices of 200 MB each in every state


@dataclass(frozen=True, eq=False)
class CMAESState(StepSizeState):
    """The state before a generation. In generation 0, all arrays are None and stand for a standard normal distribution.

    Attributes:
        covariance_path: The evolution path of the covariance matrix, float64 [D].
        covariance: The covariance matrix, float64 [D, D].
        factor: Factor by which standard normal noise is multiplied, from the latest decomposition, float64 [D, D].
        lengths: Lengths of the factor's columns, float64 [D].
        decomposed: Generation of the latest decomposition.
    """

    covariance_path: np.ndarray | None = None
    covariance: np.ndarray | None = None
    factor: np.ndarray | None = None
    lengths: np.ndarray | None = None
    decomposed: int = 0

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: sigma or a length is not positive, or an array has another D."""
        super().check_state()
        arrays = {name: getattr(self, name) for name in ("path", "covariance_path", "covariance", "factor", "lengths")}
        if len({value is None for value in (self.sigma, *arrays.values())}) > 1 or self.decomposed < 0:
            raise ValueError("some of sigma, paths and matrices are missing")
        if self.lengths is None:
            return
        for name, array in arrays.items():
            shape = [len(self.lengths)] * (2 if name in ("covariance", "factor") else 1)
            check_array(f"the {name}", array, shape, np.float64)
        if (self.lengths <= 0).any():
            raise ValueError("the lengths have numbers that are not above 0")


@settings
class CMAES(CenterSearch):
    """Covariance matrix adaptation, for small networks."""

    population: Offspring | None = None
    """Genomes per generation; by default 4 + 3 ln D, which is too small for very noisy returns."""
    sigma: Positive32 = 0.1
    """Initial step size: the standard deviation of every weight."""

    state_type = CMAESState

    def ask(self, state: CMAESState, weights: Weights) -> list[Genome]:
        """Sample vectors from the search distribution.

        Raises:
            UserError: The network has too many weights.
        """
        n = weights.dimension(state.center.network)
        if n > MAX_DIMENSION:
            reason = (
                f"the network has {n:,} weights, expected at most {MAX_DIMENSION:,} for cma_es, which keeps a matrix"
            )
            raise UserError(f"{reason} [D, D] of covariances; sep_cma_es keeps its diagonal")
        steps = self._noise(state, weights, population_size(self.population, n))
        if state.factor is not None:
            steps = steps @ state.factor.T
        theta, sigma = weights.theta(state.center).astype(np.float64), state.step_size(self.sigma)
        return [Genome(Center(theta + sigma * step), network=state.center.network) for step in steps]

    def tell(self, state: CMAESState, population: EvaluatedPopulation, weights: Weights) -> CMAESState:
        """Move the center to the weighted mean of the best half; adapt the covariance matrix and the step size.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        count, n = len(population.genomes), weights.dimension(state.center.network)
        fitness = finite(population.fitness, count)
        noise, sigma = self._noise(state, weights, count), state.step_size(self.sigma)
        logarithms = math.log((count + 1) / 2) - np.log(np.arange(1, count + 1))
        best, worst = np.maximum(logarithms, 0.0), np.maximum(-logarithms, 0.0)
        mass, worst_mass = (float(part.sum() ** 2 / np.square(part).sum()) for part in (best, worst))
        of_path = 2 / ((n + 1.3) ** 2 + mass)
        of_all = min(1 - of_path - 1e-8, 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass))
        least = min(1 + of_path / of_all, 1 + 2 * worst_mass / (mass + 2), (1 - of_path - of_all) / (n * of_all))
        steps = noise if state.factor is None else noise @ state.factor.T

        shares = by_rank(fitness, best / best.sum())
        mean = shares @ noise
        theta = weights.theta(state.center) + sigma * (shares @ steps)
        rule = StepSize(n, mass, (mass + 2) / (n + mass + 5))
        path = rule.path(state.path, mean if state.factor is None else (state.factor / state.lengths) @ mean)
        rate = (4 + mass / n) / (n + 4 + 2 * mass / n)
        missing = rate * (2 - rate) if rule.is_long(path, state.generation) else 0.0
        along = (1 - rate) * (np.zeros(n) if state.covariance_path is None else state.covariance_path)
        if not missing:
            along = along + math.sqrt(rate * (2 - rate) * mass) * (shares @ steps)

        of_each = by_rank(fitness, best / best.sum() - least * worst / worst.sum())
        scaled = np.where(of_each < 0, n / (np.square(noise).sum(1) + 1e-8), 1.0) * of_each
        covariance = np.eye(n) if state.covariance is None else state.covariance
        covariance = (1 + of_path * missing - of_path - of_all * of_each.sum()) * covariance
        covariance = covariance + of_path * np.outer(along, along) + of_all * (steps.T @ (scaled[:, None] * steps))
        covariance = (covariance + covariance.T) / 2
        moved = {"path": path, "covariance_path": along, "covariance": covariance, "decomposed": state.decomposed}
        moved |= {"factor": state.factor, "lengths": state.lengths}
        # Tutorial, B.2: decompose rarely enough that decompositions do not dominate the computing time.
        if state.factor is None or state.generation + 1 - state.decomposed > 1 / (10 * n * (of_path + of_all)):
            moved |= self._decomposed(covariance) | {"decomposed": state.generation + 1}
        return state.moved(
            theta.astype(np.float32), population, sigma=float(np.float32(sigma * rule.factor(path))), **moved
        )

    def metrics(self, before: CMAESState, after: CMAESState) -> dict[str, float]:
        """Return the step size, and the ratio of the distribution's longest axis to its shortest one."""
        lengths = np.ones(1) if before.lengths is None else before.lengths
        return {"sigma": before.step_size(self.sigma), "axis_ratio": float(lengths.max() / lengths.min())}

    def _noise(self, state: CMAESState, weights: Weights, count: int) -> np.ndarray:
        """Return standard normal noise, float64 [N, D]."""
        seeds = draw_seeds(count, state.seed, state.generation, Purpose.MUTATIONS)
        network = state.center.network
        return np.stack([weights.noise_sum([seed], [1.0], network) for seed in seeds]).astype(np.float64)

    @staticmethod
    def _decomposed(covariance: np.ndarray) -> dict[str, np.ndarray]:
        squares, basis = np.linalg.eigh(covariance)
        lengths = np.sqrt(np.maximum(squares, 1e-16 * max(float(squares[-1]), 1e-300)))
        return {"factor": basis * lengths, "lengths": lengths}
