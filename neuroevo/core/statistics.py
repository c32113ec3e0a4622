"""Means and interquartile means of returns, with standard errors and confidence intervals."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_RESAMPLES = 20_000
_LARGEST = sys.float_info.max
_LARGE = 480  # exponent of two up to which a sum of 2**60 squares is finite
_DOWN = 1024 - _LARGE  # dividing by 2**_DOWN brings every finite number into that range


def without_overflow(statistic: Callable[[np.ndarray], Any], values: np.ndarray) -> Any:
    """Compute a statistic without overflow of intermediate sums.

    Args:
        statistic: A function that is proportional to its argument, such as a mean or a standard deviation.
        values: float64 [...].

    Returns:
        Exactly statistic(values) if it is finite or `values` are not. Otherwise the statistic is computed from values
        divided by a power of two, and results beyond the largest float are clipped to it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = statistic(values)
        overflown = ~np.isfinite(found)
        if overflown.any() and np.isfinite(values).all():
            smaller = np.ldexp(statistic(np.ldexp(values, -_DOWN)), _DOWN)
            found = np.where(overflown, np.clip(smaller, -_LARGEST, _LARGEST), found)
    return found


@dataclass(frozen=True)
class Summary:
    """Summary statistics of n numbers; None where n is too small: the mean needs 1 number, all others need 2.

    Attributes:
        n: Number of values.
        mean: Mean of the values.
        standard_error: Standard error of the mean.
        low: Lower bound of the confidence interval of the mean.
        high: Upper bound of the confidence interval of the mean.
    """

    n: int
    mean: float | None
    standard_error: float | None
    low: float | None
    high: float | None


def summarize(values: np.ndarray, confidence: float = 0.95) -> Summary:
    """Compute summary statistics with Student's t interval for the mean.

    Args:
        values: Numbers, float64 [n].
        confidence: Level of the interval, in (0, 1).

    Returns:
        The summary.
    """
    n = len(values)
    if n == 0:
        return Summary(0, None, None, None, None)
    mean = float(without_overflow(np.mean, values))
    if n == 1:
        return Summary(1, mean, None, None, None)
    error = without_overflow(lambda of: np.std(of, ddof=1) / math.sqrt(n), values)
    return interval(n, mean, float(error), confidence)


def interquartile_mean(samples: Sequence[np.ndarray], confidence: float = 0.95) -> Summary:
    """Compute the mean of the middle half of all pooled scores, with a stratified bootstrap interval.

    Agarwal et al. (arXiv 2108.13264) recommend it for few runs: it is more robust to a single lucky run than the mean,
    and uses more of the scores than the median. The percentile bootstrap resamples the scores of each game separately,
    with replacement and a fixed seed, so that equal scores give equal intervals.

    Args:
        samples: The scores of each game's runs, float64 [n] each; normalized where there are several games.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The summary, without a standard error; without an interval if a game has fewer than two runs.
    """
    n = sum(map(len, samples))
    if n == 0:
        return Summary(0, None, None, None, None)
    if 2.0**_LARGE < np.abs(np.concatenate(samples)).max() < math.inf:
        smaller = interquartile_mean([np.ldexp(each, -_DOWN) for each in samples], confidence)
        numbers = (smaller.mean, None, smaller.low, smaller.high)
        return Summary(n, *(None if each is None else float(np.ldexp(each, _DOWN)) for each in numbers))
    from scipy.stats import bootstrap, trim_mean  # imported here, since importing takes half a second

    def statistic(*of: np.ndarray, axis: int = -1) -> Any:
        return trim_mean(np.concatenate(of, axis=axis), 0.25, axis=axis)

    mean = float(statistic(*samples))
    if min(map(len, samples)) < 2 or np.ptp(np.concatenate(samples)) == 0:
        return Summary(n, mean, None, None, None) if min(map(len, samples)) < 2 else Summary(n, mean, None, mean, mean)
    found = bootstrap(
        tuple(samples), statistic, n_resamples=_RESAMPLES, confidence_level=confidence, method="percentile",
        vectorized=True, batch=1000, rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return Summary(n, mean, None, float(found.low), float(found.high))


def interval(n: int, mean: float, standard_error: float | None, confidence: float = 0.95) -> Summary:
    """Compute Student's t interval of a mean whose standard error is known.

    Args:
        n: Number of values.
        mean: Mean of the values.
        standard_error: Standard error of the mean; None if it is unknown.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The summary, without an interval if the standard error is unknown. Bounds beyond the largest float are clipped
        to it.
    """
    if standard_error is None or n < 2:
        return Summary(n, mean, standard_error, None, None)
    from scipy.special import stdtrit  # imported here, since it takes 0.25 s and most commands do not need it

    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * standard_error
    return Summary(n, mean, standard_error, max(mean - half, -_LARGEST), min(mean + half, _LARGEST))


def pareto_front(fitness: np.ndarray, costs: np.ndarray | Sequence[float]) -> list[int]:
    """Return the indices of the Pareto front of high fitness and low cost, the cheapest first.

    Of items with equal fitness and cost, only the first is returned.

    Args:
        fitness: Fitness of each item, [N].
        costs: Cost of each item, [N].
    """
    front: list[int] = []
    for i in sorted(range(len(costs)), key=lambda i: (costs[i], -fitness[i], i)):
        if not front or fitness[i] > fitness[front[-1]]:
            front.append(i)
    return front
