"""Seeds and indices: pinned values (a change would change every run), ranges, independence of streams."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds, held_out_seeds, raw

seeds = st.integers(0, 2**63 - 1)
generations = st.integers(0, 2**31)


def test_pinned_values():
    assert draw_seeds(3, 0, 0, Purpose.INITIAL_WEIGHTS) == [
        7473177352646595959,
        5037124068075441799,
        4442908460255679515,
    ]
    assert draw_seeds(2, 7, 3, Purpose.VALIDATION_EPISODES) == [325190478398247651, 3547694433471618987]
    assert draw_seeds(1, 2**63 - 1, 5, Purpose.MUTATIONS) == [5794540721219287601]
    assert draw_indices(8, 20, 7, 3, Purpose.PARENTS) == [13, 14, 5, 8, 11, 5, 10, 18]
    assert held_out_seeds(2) == [572217467021087306, 7461787368559921601]


@given(seeds, generations, st.sampled_from(Purpose), st.integers(0, 20), st.integers(0, 20))
def test_asking_for_more_leaves_the_first_as_they_were(seed, generation, purpose, count, more):
    assert draw_seeds(count + more, seed, generation, purpose)[:count] == draw_seeds(count, seed, generation, purpose)


@given(seeds, generations, st.integers(1, 2**32))
def test_ranges(seed, generation, bound):
    assert all(0 <= s < 2**63 for s in draw_seeds(8, seed, generation, Purpose.MUTATIONS))
    assert all(0 <= i < bound for i in draw_indices(8, bound, seed, generation, Purpose.PARENTS))


def test_streams_share_nothing():
    streams = [
        draw_seeds(100, seed, generation, purpose)
        for seed, generation, purpose in itertools.product((0, 1, 2**32, 2**33 + 1), (0, 1, 2), Purpose)
    ]
    drawn = list(itertools.chain.from_iterable(streams))
    assert len(set(drawn)) == len(drawn)


def test_indices_are_uniform():
    counts = np.bincount(draw_indices(200_000, 20, 5, 1, Purpose.PARENTS), minlength=20)
    chi_square = float(np.sum((counts - 10_000) ** 2) / 10_000)
    assert 5.0 < chi_square < 43.8  # 19 degrees of freedom: both tails together 0.001


def test_bits_are_balanced():
    bits = np.unpackbits(raw(10_000, 3, 0, Purpose.MUTATIONS).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(bits.size)
