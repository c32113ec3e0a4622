"""Novelty against brute force, whatever takes the distances; and how an archive grows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuroevo.algorithms import novelty as module
from neuroevo.algorithms.novelty import FAILED, checked, grown, known, nearest, novelty


def brute_force(behaviors, archive, k, peers):
    """Mean distance to the k nearest, one behavior at a time, itself left out by its index."""
    means = []
    for i, behavior in enumerate(behaviors):
        if np.isnan(behavior).any():
            means.append(-1.0)
            continue
        others = list(archive)
        if peers:
            others += [other for j, other in enumerate(behaviors) if j != i and not np.isnan(other).any()]
        distances = sorted(float(np.sqrt(np.sum((behavior - other) ** 2))) for other in others)[:k]
        means.append(float(np.mean(distances)) if distances else 0.0)
    return np.array(means)


@st.composite
def cases(draw):
    """Behaviors, some of them unknown, and an archive, of whole numbers or not, with many that are equal."""
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
    found = novelty(behaviors, archive if len(archive) else None, k, peers=peers)
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
    archive = np.array([[6.0, 8.0]])
    # To its twin 0, to the second 5, to the archive 10; the second: 5 to each of the others.
    assert novelty(behaviors, archive, 3, peers=True).tolist() == [5.0, 5.0, 5.0, FAILED, FAILED]
    assert novelty(behaviors, archive, 1, peers=True).tolist() == [0.0, 5.0, 0.0, FAILED, FAILED]
    assert novelty(behaviors, archive, 3, peers=False).tolist() == [10.0, 5.0, 10.0, FAILED, FAILED]
    assert novelty(behaviors[:1], None, 3, peers=True).tolist() == [0.0]
    assert novelty(np.array([[1e31], [-1e300], [0.0], [1.0]]), None, 3, peers=True).tolist() == [
        FAILED,
        FAILED,
        1.0,
        1.0,
    ]
    assert FAILED < 0.0


def test_archive_grows_in_order_and_keeps_the_newest():
    archive = grown(None, np.zeros((0, 3)))
    assert archive is None
    archive = grown(None, np.array([[1.0, 255.0, 0.0]], np.float32))
    assert archive.dtype == np.uint8
    archive = grown(archive, np.array([[0.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), limit=2)
    assert archive.dtype == np.uint8
    assert archive.tolist() == [[0, 2, 3], [4, 5, 6]]
    assert grown(archive, np.zeros((0, 3)), limit=2) is archive
    archive = grown(archive, np.array([[0.5, -1.0, 256.0]]))
    assert archive.dtype == np.float64
    assert archive.tolist() == [[0, 2, 3], [4, 5, 6], [0.5, -1, 256]]


def test_behaviors_must_be_there_and_fit():
    with pytest.raises(ValueError, match="no behaviors"):
        checked(None, 2, None)
    with pytest.raises(ValueError, match=r"\[2, 3\], expected \[2, 4\]"):
        checked(np.zeros((2, 3)), 2, np.zeros((1, 4)))
    with pytest.raises(ValueError, match=r"\[2, 3\], expected \[3, B\]"):
        checked(np.zeros((2, 3)), 3, None)
    assert checked(np.ones((2, 3)), 2, np.zeros((1, 3))).sum() == 6
