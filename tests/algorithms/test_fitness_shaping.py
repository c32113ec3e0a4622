"""Centered ranks, compared with hand-computed numbers, SciPy's ranks, and the 2018 code for returns without ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from neuroevo.algorithms.fitness_shaping import centered_ranks

RETURNS = st.lists(st.sampled_from([0.0, -0.0, 10.0, 20.0, -5.5, 1e300, 3.25, 1e-300]), min_size=2, max_size=40)


def test_without_ties():
    """Ranks 2, 0, 4, 1, 3 of 5: each / 4 - 0.5, as in Salimans et al."""
    assert centered_ranks(np.array([3.0, -8.0, 1e9, 0.5, 4.0])).tolist() == [0.0, -0.5, 0.5, -0.25, 0.25]
    assert centered_ranks(np.array([[7, 5], [6, 9]])).tolist() == [[1 / 6, -0.5], [-1 / 6, 0.5]]


def test_ties_share_their_mean_rank():
    # Sorted: 1 (rank 0), 2 2 2 (ranks 1, 2, 3: 2), 5 5 (4, 5: 4.5), 9 (6); each / 6 - 0.5.
    found = centered_ranks(np.array([5.0, 2.0, 9.0, 2.0, 1.0, 5.0, 2.0]))
    assert found == pytest.approx([0.25, -1 / 6, 0.5, -1 / 6, -0.5, 0.25, -1 / 6], abs=1e-16)
    assert centered_ranks(np.array([0.0, -0.0, 1.0])).tolist() == [-0.25, -0.25, 0.5]


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (2500, 2), (3, 1)])
def test_equal_returns_are_worth_exactly_nothing(shape):
    ranks = centered_ranks(np.full(shape, 1234.5))
    assert ranks.shape == shape
    assert ranks.tobytes() == np.zeros(shape).tobytes()


@given(RETURNS)
def test_equals_scipys_ranks_and_is_odd(returns):
    returns = np.array(returns)
    ranks = centered_ranks(returns)
    expected = (rankdata(returns, "average") - 1) / (len(returns) - 1) - 0.5
    assert ranks == pytest.approx(expected, abs=1e-15)
    assert np.array_equal(centered_ranks(-returns), -ranks)


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=60, unique=True), st.randoms())
def test_the_order_of_the_list_and_the_scale_of_returns_do_not_matter(returns, random):
    returns = np.array(returns)
    order = np.array(random.sample(range(len(returns)), len(returns)))
    assert np.array_equal(centered_ranks(returns[order]), centered_ranks(returns)[order])
    assert np.array_equal(centered_ranks(8 * returns), centered_ranks(returns))


def test_returns_that_are_not_finite_are_named():
    with pytest.raises(ValueError, match=r"\[1, 0\] is nan"):
        centered_ranks(np.array([[1.0, 2.0], [np.nan, 3.0]]))
    with pytest.raises(ValueError, match=r"\[2\] is -inf"):
        centered_ranks(np.array([1.0, 2.0, -np.inf]))
