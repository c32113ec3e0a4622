"""Mean, standard error and confidence interval of returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Summary statistics of n numbers; None where n is too small: the mean needs 1 number, all others need 2.

    Attributes:
        n: How many numbers there are.
        mean: Their mean.
        standard_error: Standard error of the mean.
        low: Lower bound of the confidence interval of the mean.
        high: Upper bound of that interval.
    """

    n: int
    mean: float | None
    standard_error: float | None
    low: float | None
    high: float | None


def summarize(values: np.ndarray, confidence: float = 0.95) -> Summary:
    """Computes summary statistics with Student's t interval for the mean.

    Args:
        values: Numbers, float64 [n].
        confidence: Level of the interval, in (0, 1).

    Returns:
        The summary.
    """
    n = len(values)
    if n == 0:
        return Summary(0, None, None, None, None)
    mean = float(np.mean(values))
    if n == 1:
        return Summary(1, mean, None, None, None)
    return interval(n, mean, float(np.std(values, ddof=1)) / math.sqrt(n), confidence)


def interval(n: int, mean: float, standard_error: float | None, confidence: float = 0.95) -> Summary:
    """Computes Student's t interval of a mean whose standard error is known.

    Args:
        n: How many numbers the mean is of.
        mean: Their mean.
        standard_error: Its standard error; None if it is not known.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The summary, without an interval where there is no standard error.
    """
    if standard_error is None or n < 2:
        return Summary(n, mean, standard_error, None, None)
    from scipy.special import stdtrit  # imported here: it takes a quarter of a second, and most commands do not need it

    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * standard_error
    return Summary(n, mean, standard_error, mean - half, mean + half)
