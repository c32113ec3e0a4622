"""Normalization of observations by running statistics, as in OpenAI's evolution strategies (Salimans et al. 2017,
https://arxiv.org/abs/1703.03864): less the mean, divided by the standard deviation, clipped to [-5, 5].

A generation plays with what the populations of all generations before it saw. A population's sums are taken in the
order of its episodes, each over its own observations in the order of its steps, so that they do not depend on when
episodes end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuroevo.core.errors import UserError

CLIP = 5.0
_LEAST_VARIANCE = 1e-2


@dataclass(frozen=True, eq=False)
class Normalizer:
    """What a generation sees observations through: float32(clip((x - mean) / std, -CLIP, CLIP)), in float64.

    number: the generation's. mean, std: float64 [n], of the n numbers of an observation; std above 0.
    """

    number: int
    mean: np.ndarray
    std: np.ndarray

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """float32 [..., n] of observations [..., n]."""
        return np.clip((observations - self.mean) / self.std, -CLIP, CLIP).astype(np.float32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Normalizer):
            return NotImplemented
        same = self.number == other.number and np.array_equal(self.mean, other.mean)
        return same and np.array_equal(self.std, other.std)

    def __hash__(self) -> int:
        return hash((self.number, len(self.mean)))  # thousands of episodes have the same one


def _nothing() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class ObservationStatistics:
    """What was seen so far: how many observations, and the sums and sums of squares of their n numbers.

    sums, squares: float64 [n]; [0] before anything was seen.
    """

    count: int = 0
    sums: np.ndarray = field(default_factory=_nothing)
    squares: np.ndarray = field(default_factory=_nothing)

    def after(self, more: np.ndarray | None) -> ObservationStatistics:
        """With what other episodes saw.

        Args:
            more: Their Outcomes.observation_sums, float64 [1 + 2n].

        Raises:
            ValueError: They were not played with a normalizer.
        """
        if more is None:
            raise ValueError("the episodes have no observation sums, expected some that were played with a normalizer")
        before = np.concatenate([[self.count], self.sums, self.squares]) if self.count else None
        total = summed(before, more)
        n = len(total) // 2
        return ObservationStatistics(int(total[0]), total[1 : 1 + n], total[1 + n :])

    def normalizer(self, number: int, size: int) -> Normalizer:
        """For the generation of this number and observations of `size` numbers; mean 0, std 1 if nothing was seen.

        UserError: what was seen had another size.
        """
        if self.count == 0:
            return Normalizer(number, np.zeros(size), np.ones(size))
        if len(self.sums) != size:
            raise UserError(
                f"the observations that this run's networks know have {len(self.sums)} numbers, those of its "
                f"environment {size}"
            )
        mean = self.sums / self.count
        variance = self.squares / self.count - mean * mean
        return Normalizer(number, mean, np.sqrt(np.maximum(variance, _LEAST_VARIANCE)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObservationStatistics):
            return NotImplemented
        same = self.count == other.count and np.array_equal(self.sums, other.sums)
        return same and np.array_equal(self.squares, other.squares)

    __hash__ = None


def summed(sums: np.ndarray | None, more: np.ndarray) -> np.ndarray:
    """The sum of two observation sums.

    Args:
        sums: float64 [1 + 2n]; None: nothing yet.
        more: float64 [1 + 2n], which adds nothing where it would make the sum infinite or NaN.

    Returns:
        float64 [1 + 2n].
    """
    before = np.zeros_like(more) if sums is None else sums
    with np.errstate(over="ignore", invalid="ignore"):
        after = before + more
    return after if np.isfinite(after).all() else before
