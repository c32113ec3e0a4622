"""Normalization of observations by running statistics, as in OpenAI's evolution strategies.

Salimans et al. 2017 (https://arxiv.org/abs/1703.03864): the mean is subtracted, the result is divided by the standard
deviation and clipped to [-5, 5].

A generation uses the statistics of the observations of the populations of all previous generations. Each episode sums
its observations in the order of its steps, and the sums of a population's episodes are added in the order of the
episodes, so that the result does not depend on when episodes finish.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuroevo.core.arrays import Checked, check_array, check_counts
from neuroevo.core.errors import UserError

CLIP = 5.0
_LEAST_VARIANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Normalizer(Checked):
    """Normalization of the observations of one generation: float32(clip((x - mean) / std, -CLIP, CLIP)), in float64.

    Attributes:
        number: Number of the generation.
        mean: Mean of each of the n numbers of an observation, float64 [n].
        std: Standard deviation of each number, float64 [n], positive.
    """

    number: int
    mean: np.ndarray
    std: np.ndarray

    def check_state(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: The shapes differ, or a standard deviation is not above 0.
        """
        check_counts(number=self.number)
        check_array("mean", self.mean, [None], np.float64)
        check_array("std", self.std, self.mean.shape, np.float64)
        if not (self.std > 0).all():
            raise ValueError("std has numbers that are not above 0")

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Normalize observations, [..., n], to float32 [..., n]."""
        return np.clip((observations - self.mean) / self.std, -CLIP, CLIP).astype(np.float32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Normalizer):
            return NotImplemented
        same = self.number == other.number and np.array_equal(self.mean, other.mean)
        return same and np.array_equal(self.std, other.std)

    def __hash__(self) -> int:
        return hash((self.number, len(self.mean)))  # cheap: thousands of episodes share a normalizer


def _nothing() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ObservationStatistics(Checked):
    """Running statistics of all observations so far, each of n numbers; not hashable, since equality compares arrays.

    Attributes:
        count: Number of observations.
        sums: Sum of each number, float64 [n]; [0] before the first observation.
        squares: Sum of the squares of each number, float64 [n]; [0] before the first observation.
    """

    count: int = 0
    sums: np.ndarray = field(default_factory=_nothing)
    squares: np.ndarray = field(default_factory=_nothing)

    def check_state(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: The shapes differ, or a number is not finite.
        """
        check_counts(count=self.count)
        check_array("sums", self.sums, [None] if self.count else [0], np.float64)
        check_array("squares", self.squares, self.sums.shape, np.float64)

    def after(self, more: np.ndarray | None) -> ObservationStatistics:
        """Return the statistics updated with the observations of further episodes.

        Args:
            more: Outcomes.observation_sums of the episodes, float64 [1 + 2n]: count, sums, sums of squares.

        Raises:
            ValueError: The episodes were not played with a normalizer, so they have no observation sums.
        """
        if more is None:
            raise ValueError("the episodes have no observation sums, expected episodes played with a normalizer")
        before = np.concatenate([[self.count], self.sums, self.squares]) if self.count else None
        total = summed(before, more)
        n = len(total) // 2
        return ObservationStatistics(int(total[0]), total[1 : 1 + n], total[1 + n :])

    def normalizer(self, number: int, size: int) -> Normalizer:
        """Make the normalizer of a generation, with mean 0 and std 1 before the first observation.

        Args:
            number: Number of the generation.
            size: Length of an observation.

        Raises:
            UserError: The observations so far had another length.
        """
        if self.count == 0:
            return Normalizer(number, np.zeros(size), np.ones(size))
        if len(self.sums) != size:
            raise UserError(
                f"this run's observation statistics have {len(self.sums)} numbers, expected {size}, the length of an "
                "observation"
            )
        mean = self.sums / self.count
        variance = self.squares / self.count - mean * mean
        return Normalizer(number, mean, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObservationStatistics):
            return NotImplemented
        same = self.count == other.count and np.array_equal(self.sums, other.sums)
        return same and np.array_equal(self.squares, other.squares)


def summed(sums: np.ndarray | None, more: np.ndarray) -> np.ndarray:
    """Add two observation sums.

    Args:
        sums: float64 [1 + 2n]; None counts as zeros.
        more: float64 [1 + 2n]; ignored if it would make the sum infinite or NaN.

    Returns:
        float64 [1 + 2n].
    """
    before = np.zeros_like(more) if sums is None else sums
    with np.errstate(over="ignore", invalid="ignore"):
        after = before + more
    return after if np.isfinite(after).all() else before
