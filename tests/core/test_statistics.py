"""Mean, standard error and confidence interval, compared with SciPy and a printed table."""

import sys

import numpy as np
import pytest
from scipy import stats

from neuroevo.core.statistics import Summary, interquartile_mean, summarize


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("n", [2, 3, 30, 1000])
def test_equals_scipy(n, confidence):
    values = np.random.default_rng(n).exponential(1e4, n)
    found = summarize(values, confidence)
    error = stats.sem(values)
    low, high = stats.t.interval(confidence, n - 1, values.mean(), error)
    assert found.n == n
    assert [found.mean, found.standard_error] == pytest.approx([values.mean(), error], rel=1e-12)
    assert [found.low, found.high] == pytest.approx([low, high], rel=1e-9)


def test_a_case_worked_by_hand():
    # Mean 5, variance 20 / 3, standard error sqrt(20 / 3 / 4) = 1.29099; t of 3 degrees at 97.5% is 3.182 in tables.
    found = summarize(np.array([2.0, 4.0, 6.0, 8.0]))
    assert found.mean == 5.0
    assert found.standard_error == pytest.approx(1.29099, abs=1e-5)
    assert [found.low, found.high] == pytest.approx([5 - 3.182 * 1.29099, 5 + 3.182 * 1.29099], abs=1e-3)


def test_the_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(5)
    samples = [summarize(rng.normal(3.0, 2.0, 5), 0.8) for _ in range(4000)]
    share = np.mean([each.low <= 3.0 <= each.high for each in samples])
    assert share == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 4000))


def test_what_few_values_do_not_tell():
    assert summarize(np.array([])) == Summary(0, None, None, None, None)
    assert summarize(np.array([7.5])) == Summary(1, 7.5, None, None, None)
    assert summarize(np.full(4, 7.5)) == Summary(4, 7.5, 0.0, 7.5, 7.5)


@pytest.mark.parametrize("power", [-1000, 0, 100, 600, 1020])
def test_statistics_scale_with_their_values(power):
    """Scaling by a power of two is exact within the range of floats."""
    values = np.random.default_rng(0).normal(0.0, 2.0, 7)
    for found, expected in (
        (summarize(np.ldexp(values, power)), summarize(values)),
        (interquartile_mean([np.ldexp(values, power)]), interquartile_mean([values])),
    ):
        for name in ("mean", "standard_error", "low", "high"):
            value = getattr(expected, name)
            assert getattr(found, name) == (None if value is None else pytest.approx(np.ldexp(value, power), rel=1e-12))


def test_what_is_beyond_the_largest_float_is_that_float():
    largest = sys.float_info.max
    found = summarize(np.array([-largest, largest]))
    assert found == Summary(2, 0.0, pytest.approx(largest), -largest, largest)
    assert summarize(np.full(3, largest)) == Summary(3, largest, pytest.approx(0, abs=1e300), largest, largest)
    assert interquartile_mean([np.full(3, largest)]).mean == largest


def resampled(samples, count, rng):
    """Compute interquartile means of resamples, drawn per game, one by one and by sorting."""
    means = []
    for _ in range(count):
        drawn = np.sort(np.concatenate([rng.choice(each, len(each)) for each in samples]))
        cut = len(drawn) // 4
        means.append(drawn[cut : len(drawn) - cut].mean())
    return np.array(means)


@pytest.mark.parametrize("sizes", [(5,), (3, 3), (5, 2, 10)])
def test_the_interquartile_mean_and_its_bootstrap_interval(sizes):
    rng = np.random.default_rng(sum(sizes))
    samples = [rng.exponential(1.0, size) + game for game, size in enumerate(sizes)]
    found = interquartile_mean(samples)
    every = np.concatenate(samples)
    assert (found.n, found.standard_error) == (sum(sizes), None)
    assert found.mean == pytest.approx(stats.trim_mean(every, 0.25), rel=1e-12)
    means = resampled(samples, 20_000, rng)
    assert [found.low, found.high] == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=0.05 * means.std())
    assert interquartile_mean(samples) == found  # the same scores, the same interval
    narrow = interquartile_mean(samples, 0.5)
    assert found.low < narrow.low < narrow.high < found.high


def test_the_interquartile_mean_is_not_moved_by_one_lucky_run():
    usual = np.array([1.0, 2.0, 3.0, 4.0])
    assert interquartile_mean([usual]).mean == interquartile_mean([np.array([1.0, 2.0, 3.0, 4e9])]).mean == 2.5


def test_too_few_runs_for_an_interval():
    assert interquartile_mean([]) == Summary(0, None, None, None, None)
    assert interquartile_mean([np.array([3.0])]) == Summary(1, 3.0, None, None, None)
    assert interquartile_mean([np.array([3.0]), np.array([1.0, 2.0])]).low is None
    assert interquartile_mean([np.array([3.0, 3.0])]) == Summary(2, 3.0, None, 3.0, 3.0)
