"""Cumulative step-size adaptation and the default population size of CMA-ES and its variants.

Hansen and Ostermeier 2001 (https://doi.org/10.1162/106365601750190398). An evolution path accumulates the steps of
successive generations, normalized to the length of standard normal noise. While steps point in similar directions, the
path is longer than such noise, and the standard deviation of the noise increases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import CenterState
from neuroevo.core.arrays import check_array, norm
from neuroevo.core.genome import Center
from neuroevo.core.settings import Count

Offspring = Annotated[Count, Field(ge=4)]
"""The type of the setting population."""


def population_size(chosen: int | None, dimension: int) -> int:
    """Return the setting population or, if it is not set, 4 + 3 ln D."""
    return chosen or 4 + int(3 * math.log(dimension))


@dataclass(frozen=True, eq=False)
class StepSizeState(CenterState):
    """The state of an algorithm with cumulative step-size adaptation.

    Attributes:
        sigma: The step size; None in generation 0, when it is the setting sigma.
        path: The evolution path of the step size, floats [D]; None before the first step, and without adaptation.
    """

    sigma: float | None = None
    path: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: sigma is not positive, or the path has another D than the center."""
        super().check_state()
        if self.sigma is not None and not 0 < self.sigma < math.inf:
            raise ValueError(f"sigma is {self.sigma}, expected a positive number")
        if self.path is not None:
            root = self.center.root
            shape = root.vector.shape if isinstance(root, Center) else [None]
            check_array("the path", self.path, shape, np.float32, np.float64)

    def step_size(self, first: float) -> float:
        """Return the step size rounded to float32; `first` is the step size of generation 0."""
        return float(np.float32(first if self.sigma is None else self.sigma))


@dataclass(frozen=True)
class StepSize:
    """Rule of cumulative step-size adaptation for given numbers of weights and parents.

    Attributes:
        dimension: Number of weights, D.
        mass: Variance-effective number of parents, mu_eff.
        rate: Learning rate of the path, c_sigma.
    """

    dimension: int
    mass: float
    rate: float

    @property
    def expected(self) -> float:
        """The expected length of standard normal noise."""
        n = self.dimension
        return math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))

    def path(self, before: np.ndarray | None, mean: np.ndarray) -> np.ndarray:
        """Return the path after a step.

        Args:
            before: The path before the step, [D]; None before the first step.
            mean: The weighted mean of the parents' standard normal noise, [D], in the path's dtype.
        """
        number = mean.dtype.type
        kept = np.zeros_like(mean) if before is None else number(1 - self.rate) * before
        return kept + number(math.sqrt(self.rate * (2 - self.rate) * self.mass)) * mean

    def factor(self, path: np.ndarray) -> float:
        """Return the factor by which the standard deviation is multiplied."""
        damping = 1 + self.rate + 2 * max(0.0, math.sqrt((self.mass - 1) / (self.dimension + 1)) - 1)
        return math.exp(self.rate / damping * (norm(path) / self.expected - 1))

    def is_long(self, path: np.ndarray, generation: int) -> bool:
        """Return whether the path after this generation is so long that sigma grows fast (the inverse of h_sigma)."""
        settled = math.sqrt(1 - (1 - self.rate) ** (2 * (generation + 2)))
        return norm(path) / settled >= (1.4 + 2 / (self.dimension + 1)) * self.expected
