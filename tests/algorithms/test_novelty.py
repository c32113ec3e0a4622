"""Novelty compared with brute force, for every method of computing distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuroevo.algorithms.novelty import known, novelty, validate_behaviors
from neuroevo.core import archive as module
from neuroevo.core.archive import Archive, nearest


def brute_force(behaviors, archive, k, peers):
    """Compute the mean distance to the k nearest neighbors in a loop, excluding each behavior itself by its index."""
    means = []
    for i, behavior in enumerate(behaviors):
        if np.isnan(behavior).any():
            means.append(np.nan)
            continue
        others = list(archive)
        if peers:
            others += [other for j, other in enumerate(behaviors) if j != i and not np.isnan(other).any()]
        distances = sorted(float(np.sqrt(np.sum((behavior - other) ** 2))) for other in others)[:k]
        means.append(float(np.mean(distances)) if distances else 0.0)
    return np.array(means)


@st.composite
def cases(draw):
    """Draw behaviors, some of them unknown, and an archive, of integers or floats, with many duplicates."""
    size = draw(st.sampled_from([1, 2, 16, 17, 40]))
    elements = draw(st.sampled_from([st.integers(0, 3).map(float), st.floats(-50, 50, width=32)]))
    behaviors = draw(hnp.arrays(np.float64, (draw(st.integers(1, 12)), size), elements=elements))
    archive = draw(hnp.arrays(np.float64, (draw(st.integers(0, 8)), size), elements=elements))
    copies = draw(st.integers(0, len(behaviors) - 1))
    behaviors[:copies] = behaviors[-1]
    behaviors[draw(hnp.arrays(bool, len(behaviors), elements=st.sampled_from([False, False, False, True])))] = np.nan
    return behaviors, archive


@settings(deadline=None)
@given(cases(), st.integers(1, 25), st.booleans())
def test_novelty_is_the_mean_distance_to_the_k_nearest(case, k, peers):
    behaviors, archive = case
    expected = brute_force(behaviors, archive, k, peers)
    found = novelty(behaviors, Archive(archive) if len(archive) else Archive(), k, peers=peers)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@settings(deadline=None)
@given(cases(), st.integers(1, 8), st.integers(1, 4))
def test_blocks_change_nothing(case, count, rows):
    points, others = (array[known(array)] for array in case)
    if not len(points) or not len(others):
        return
    whole = nearest(points, others, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", rows * points.shape[1])
        patch.setattr(module, "_PAIRS", rows * len(others))
        np.testing.assert_array_equal(nearest(points, others, count), whole)


@given(hnp.arrays(np.uint8, (9, 300)), hnp.arrays(np.uint8, (5, 300)))
def test_whole_numbers_have_the_same_bits_by_product_and_one_by_one(points, others):
    squared = ((points.astype(np.int64)[:, None] - others.astype(np.int64)) ** 2).sum(axis=2)
    expected = np.sqrt(np.sort(squared, axis=1)[:, :3])
    for kind in (np.uint8, np.float32, np.float64):
        np.testing.assert_array_equal(nearest(points.astype(kind), others, 3), expected)


def test_whole_numbers_too_large_for_exact_products_are_taken_one_by_one():
    points = np.full((1, 20), 2.0**53)
    others = np.vstack([points[0] - 2, points[0]])
    np.testing.assert_array_equal(nearest(points, others, 2), [[0.0, np.sqrt(20 * 4.0)]])
    # Squares of this one are just beyond 2**53, and their sums are multiples of 16 or 32 in float64.
    points = np.full((1, 17), 94_906_267.0)
    np.testing.assert_array_equal(nearest(points, points - 1, 1), [[np.sqrt(17.0)]])


def test_by_hand():
    behaviors = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [np.nan, 0.0], [np.inf, 0.0]])
    archive = Archive(np.array([[6.0, 8.0]]))
    # First behavior: 0 to its duplicate, 5 to the second, 10 to the archive. Second behavior: 5 to each of the others.
    nan = np.nan
    for found, expected in (
        (novelty(behaviors, archive, 3, peers=True), [5.0, 5.0, 5.0, nan, nan]),
        (novelty(behaviors, archive, 1, peers=True), [0.0, 5.0, 0.0, nan, nan]),
        (novelty(behaviors, archive, 3, peers=False), [10.0, 5.0, 10.0, nan, nan]),
        (novelty(behaviors[:1], Archive(), 3, peers=True), [0.0]),
        (novelty(np.array([[1e31], [-1e300], [0.0], [1.0]]), Archive(), 3, peers=True), [nan, nan, 1.0, 1.0]),
    ):
        np.testing.assert_array_equal(found, expected)


def test_behaviors_must_be_there_and_fit():
    with pytest.raises(ValueError, match="no behaviors"):
        validate_behaviors(None, 2, Archive())
    with pytest.raises(ValueError, match=r"\[2, 3\], expected \[2, 4\]"):
        validate_behaviors(np.zeros((2, 3)), 2, Archive(np.zeros((1, 4))))
    with pytest.raises(ValueError, match=r"\[2, 3\], expected \[3, B\]"):
        validate_behaviors(np.zeros((2, 3)), 3, Archive())
    assert validate_behaviors(np.ones((2, 3)), 2, Archive(np.zeros((1, 3)))).sum() == 6
