"""State of algorithms that adapt a standard deviation of noise for each weight, and the sampling of populations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuroevo.algorithms.ascent import CenterState, antithetic_pairs
from neuroevo.core.arrays import check_array
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.core.randomness import Purpose, draw_seeds


@dataclass(frozen=True, eq=False)
class SpreadState(CenterState):
    """The state of an algorithm that moves one center with a standard deviation of noise for each weight.

    Attributes:
        spread: The standard deviations, float32 [D]; None in generation 0, when all equal the setting sigma.
    """

    spread: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the spread is not positive or has another D than the center."""
        super().check_state()
        if self.spread is None:
            return
        root = self.center.root
        known = isinstance(root, Center) and root.has_weights and not self.center.depth
        check_array("the spread", self.spread, root.vector.shape if known else [None], np.float32)  # type: ignore
        if (self.spread <= 0).any():
            raise ValueError("the spread has numbers that are not above 0")

    def deviations(self, sigma: float, weights: Weights) -> np.ndarray:
        """Return the standard deviations, float32 [D].

        Args:
            sigma: Value of all standard deviations in generation 0.
            weights: The networks.
        """
        if self.spread is not None:
            return self.spread
        return np.full(weights.dimension(self.center.network), sigma, np.float32)

    def pairs(self, count: int, sigma: float, weights: Weights) -> list[Genome]:
        """Return `count` antithetic pairs around the center; the other arguments are those of deviations()."""
        kind = Scaled(Center(self.deviations(sigma, weights)))
        seeds = draw_seeds(count, self.seed, self.generation, Purpose.PAIRS)
        return antithetic_pairs(self.center, seeds, 1.0, kind)

    def mean_deviation(self, sigma: float) -> float:
        """Return the mean standard deviation; in generation 0 this is `sigma`."""
        return sigma if self.spread is None else float(np.mean(self.spread, dtype=np.float64))
