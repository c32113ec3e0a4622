"""Mean, standard error and confidence interval against SciPy's own and numbers of a printed table."""

import numpy as np
import pytest
from scipy import stats

from neuroevo.statistics import Summary, summarize


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
