"""Mean, standard error and confidence interval of returns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Of n numbers: mean, standard error of the mean, and the bounds of the mean's confidence interval.

    None is what n is too small for: everything of no numbers, all but the mean of one.
    """

    n: int
    mean: float | None
    standard_error: float | None
    low: float | None
    high: float | None


def summarize(values: np.ndarray, confidence: float = 0.95) -> Summary:
    """The summary of values, float64 [n], with Student's t interval of the level `confidence`, in (0, 1)."""
    n = len(values)
    mean = float(np.mean(values)) if n else None
    if n < 2:
        return Summary(n, mean, None, None, None)
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    from scipy.special import stdtrit  # a quarter of a second, which most commands need not spend

    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * error
    return Summary(n, mean, error, mean - half, mean + half)
