"""Archive: appending, nearest neighbors, and the cells of a grid compared with a dictionary of the best genomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuroevo.core.archive import Archive, Grid, nearest
from neuroevo.core.genome import Genome
from neuroevo.core.state_codec import decode, encode


def test_it_appends_in_order_and_keeps_the_newest():
    empty = Archive()
    assert empty.append(np.zeros((0, 3))) is empty and len(empty) == 0 and empty.dimension is None
    archive = empty.append(np.array([[1.0, 255.0, 0.0]], np.float32))
    assert archive.behaviors.dtype == np.uint8 and (len(archive), archive.dimension) == (1, 3)
    archive = archive.append(np.array([[0.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), limit=2)
    assert archive.behaviors.dtype == np.uint8
    assert archive.behaviors.tolist() == [[0, 2, 3], [4, 5, 6]]
    assert archive.append(np.zeros((0, 3)), limit=2) is archive
    archive = archive.append(np.array([[0.5, -1.0, 256.0]]))
    assert archive.behaviors.dtype == np.float64
    assert archive.behaviors.tolist() == [[0, 2, 3], [4, 5, 6], [0.5, -1, 256]]


@pytest.mark.parametrize("size", [2, 40])  # with a tree, and with all distances
def test_its_nearest_are_sorted_and_all_where_there_are_few(size):
    rng = np.random.default_rng(size)
    points, others = rng.normal(size=(7, size)), rng.normal(size=(5, size))
    expected = np.sort(np.linalg.norm(points[:, None] - others, axis=2), axis=1)
    archive = Archive().append(others)
    np.testing.assert_allclose(archive.nearest(points, 3), expected[:, :3], rtol=1e-12)
    np.testing.assert_allclose(archive.nearest(points, 50), expected, rtol=1e-12)
    np.testing.assert_array_equal(archive.nearest(points, 3), nearest(points, others, 3))
    assert Archive().nearest(points, 3).shape == (7, 0)


def test_cells_by_hand():
    grid = Grid(low=(0.0, -1.0), high=(10.0, 1.0), shape=(5, 2))
    behaviors = [(0.0, -1.0), (1.99, 0.0), (2.0, -0.5), (10.0, 1.0), (99.0, -np.inf), (-3.0, 0.5), (np.nan, 0.0)]
    expected = [[0, 0], [0, 1], [1, 0], [4, 1], [4, 0], [0, 1], [-1, -1]]
    assert grid.cells(np.array(behaviors)).tolist() == expected
    with pytest.raises(ValueError, match=r"axis 1 of a grid has 3 cells from 2\.0 to 2\.0, expected low < high"):
        Grid((0.0, 2.0), (1.0, 2.0), (3, 3))


generations = st.lists(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(3)), elements=st.integers(-2, 6).map(float)), max_size=4
)


@given(generations)
def test_cells_keep_the_fittest_and_of_equals_the_oldest(generations):
    grid, archive, best, seed = Grid((0.0, 0.0), (4.0, 4.0), (3, 2)), Archive(), {}, 0
    for rows in generations:
        behaviors, fitness = rows[:, :2], rows[:, 2]
        behaviors[(behaviors == -2).any(axis=1)] = np.nan  # of a genome whose episodes all failed
        genomes = [Genome(seed + i) for i in range(len(rows))]
        seed += len(rows)
        archive = archive.keep_best(grid, behaviors, genomes, fitness)
        for genome, (x, y), value in zip(genomes, behaviors, fitness, strict=True):
            if np.isnan(x):
                continue
            cell = (min(max(int(x // (4 / 3)), 0), 2), min(max(int(y // 2), 0), 1))
            if cell not in best or value > best[cell][1]:
                best[cell] = (genome, value, (x, y))
    ordered = [best[cell] for cell in sorted(best)]
    assert list(archive.genomes) == [genome for genome, _, _ in ordered]
    assert (archive.fitness is None) == (not best)
    if best:
        assert archive.fitness.tolist() == [value for _, value, _ in ordered]
        assert list(map(tuple, archive.behaviors)) == [behavior for _, _, behavior in ordered]
    (again,) = decode(encode(archive), Archive)
    assert again.genomes == archive.genomes and len(again) == len(best)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (Archive(np.zeros(3)), r"the archive is float64 \[3\], expected"),
        (Archive(np.full((1, 2), np.nan)), "not finite"),
        (Archive(np.zeros((2, 1)), (Genome(1),), np.zeros(1)), r"fitness is float64 \[1\], expected float64 \[2\]"),
        (Archive(np.zeros((2, 1)), (Genome(1),), np.zeros(2)), "the archive has 1 genomes"),
        (Archive(np.zeros((1, 1)), (Genome(1),)), "the archive has 1 genomes"),
    ],
)
def test_what_is_no_archive(archive, message):
    with pytest.raises(ValueError, match=message):
        archive.check_state()
