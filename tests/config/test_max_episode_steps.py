"""Cut-offs against hand-computed numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.config.max_episode_steps import MaxEpisodeSteps, parse_max_episode_steps


def test_forms():
    assert parse_max_episode_steps(5000) == MaxEpisodeSteps(5000)
    assert parse_max_episode_steps("env_default") == MaxEpisodeSteps(0)
    assert parse_max_episode_steps("adaptive:1000,0.5,1.5,20000") == MaxEpisodeSteps(1000, 0.5, 1.5, 20000)
    assert parse_max_episode_steps("adaptive: 1000, .5, 1.5, 2e4") == MaxEpisodeSteps(1000, 0.5, 1.5, 20000)


def test_a_fixed_max_episode_steps_never_grows():
    assert parse_max_episode_steps(100).following(100, np.full(10, 100)) == 100
    assert parse_max_episode_steps("env_default").following(0, np.full(10, 100)) == 0


def test_grows_when_exactly_the_fraction_reached_it():
    max_episode_steps = parse_max_episode_steps("adaptive:100,0.25,1.5,1000")
    assert max_episode_steps.following(100, np.array([100, 99, 99, 99])) == 150  # 1 of 4
    assert max_episode_steps.following(100, np.array([99, 99, 99, 99])) == 100
    assert max_episode_steps.following(100, np.array([100, 99, 99, 99, 99])) == 100  # 1 of 5


def test_each_episode_counts_by_itself():
    max_episode_steps = parse_max_episode_steps("adaptive:100,0.5,2,1000")
    assert max_episode_steps.following(100, np.array([60, 60, 60, 60])) == 100  # pairs sum to more than 100


def test_growth_to_the_maximum():
    max_episode_steps, value, seen = parse_max_episode_steps("adaptive:100,0.5,1.5,400"), 100, []
    for _ in range(6):
        value = max_episode_steps.following(value, np.full(3, value))
        seen.append(value)
    assert seen == [150, 225, 338, 400, 400, 400]  # 337.5 rounds to the even 338


def test_a_ratio_whose_product_is_no_number():
    assert parse_max_episode_steps("adaptive:100,0,1e308,400").following(100, np.array([1])) == 400


def test_product_is_rounded_and_at_least_one_more():
    assert (
        parse_max_episode_steps("adaptive:1000,0,1.15,9999").following(1000, np.array([1])) == 1150
    )  # 1149.9999999999998
    assert parse_max_episode_steps("adaptive:10,0,1.01,20").following(10, np.array([1])) == 11


@given(
    st.integers(1, 10**5),
    st.floats(0, 1),
    st.floats(1.0001, 10),
    st.integers(1, 10**6),
    st.lists(st.integers(1, 10**6)),
)
def test_never_shrinks_and_never_passes_the_maximum(start, fraction, ratio, extra, steps):
    maximum = start + extra
    after = MaxEpisodeSteps(start, fraction, ratio, maximum).following(start, np.array(steps or [0]))
    reached = np.mean(np.array(steps or [0]) >= start) >= fraction
    assert start <= after <= maximum
    assert (after > start) == reached


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "at least 1"),
        (-5, "at least 1"),
        (True, "at least 1"),
        (2.5, "at least 1"),
        ("", "at least 1"),
        ("adaptve:1,2,3,4", "at least 1"),
        ("adaptive:1000,0.5,1.5", "3 of 4 numbers"),
        ("adaptive:x,0.5,1.5,2000", "start is 'x'"),
        ("adaptive:0,0.5,1.5,2000", "start is 0"),
        ("adaptive:nan,0.5,1.5,2000", "start is nan"),
        ("adaptive:1000,1.5,1.5,2000", r"fraction is 1.5, .*\[0, 1\]"),
        ("adaptive:1000,nan,1.5,2000", r"fraction is nan"),
        ("adaptive:1000,0.5,1,2000", "ratio is 1, "),
        ("adaptive:1000,0.5,inf,2000", "ratio is inf"),
        ("adaptive:1000,0.5,1.5,999", "max is 999, .* 1000"),
        ("adaptive:1000,0.5,1.5,inf", "max is inf"),
        (2**31, "at most 2147483647"),
        ("adaptive:1000,0.5,1.5,2147483648", "max is 2147483648, .* 2147483647"),
    ],
)
def test_wrong_values(value, message):
    with pytest.raises(ValueError, match=message):
        parse_max_episode_steps(value)
