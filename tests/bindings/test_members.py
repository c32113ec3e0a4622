"""Members of low rank and the sum of their noise, against the paper's formulas in NumPy."""

import numpy as np
import pytest

from neuroevo.core.errors import NativeError
from neuroevo.core.genome import LowRank
from neuroevo.native import library
from neuroevo.native.noise import low_rank_noise_sum, noise_sum
from neuroevo.native.population import Population

NETWORK = "input float32 5 6 2; conv 4 3 2 1 valid 1; bias; tanh; dense 11 1; vbn; bias; relu; dense 3 1; bias"
# Weights in order: the shape of a matrix, or the number of other weights.
WEIGHTS = ((12, 4), 4, (60, 11), 11, (11, 3), 3)
D = 12 * 4 + 4 + 60 * 11 + 11 + 11 * 3 + 3


def noise_of(seed: int, rank: int) -> np.ndarray:
    """Return the noise of one member, float64 [D], by the paper's formula: A B^T / sqrt(r) for each matrix."""
    size = sum(rank * sum(shape) if isinstance(shape, tuple) else shape for shape in WEIGHTS)
    values, parts = noise_sum([seed], [1.0], size).astype(np.float64), []
    for shape in WEIGHTS:
        taken = rank * sum(shape) if isinstance(shape, tuple) else shape
        own, values = values[:taken], values[taken:]
        if isinstance(shape, tuple):
            m, n = shape
            a, b = own[: rank * m].reshape(rank, m).T, own[rank * m :].reshape(rank, n).T
            own = (a @ b.T).ravel() / np.sqrt(rank)
        parts.append(own)
    return np.concatenate(parts)


@pytest.mark.parametrize("rank", [1, 2, 7])
def test_a_member_is_its_center_and_the_noise(rank):
    population = Population([NETWORK], 6, float_rows=2, kind=LowRank(rank))
    population.init([0, 1], [0, 0], [1, 2])
    population.perturb([0, 1], [0, 1], [3, 4], [0.1, 0.1])
    population.perturb([2, 3, 4, 5], [0, 1, 0, 0], [7, 7, 8, 8], [0.5, 0.5, 0.25, -0.25])
    thetas = population.read(range(6)).astype(np.float64)
    centers = {2: (0, 7, 0.5), 3: (1, 7, 0.5), 4: (0, 8, 0.25), 5: (0, 8, -0.25)}
    for row, (center, seed, scale) in centers.items():
        np.testing.assert_allclose(thetas[row], thetas[center] + scale * noise_of(seed, rank), rtol=0, atol=1e-6)


@pytest.mark.parametrize("rank", [1, 3])
def test_the_sum_is_that_of_the_members_noise(rank):
    seeds = np.random.default_rng(5).integers(2**62, size=400)
    weights = np.random.default_rng(6).standard_normal(400)
    expected = sum(w * noise_of(int(s), rank) for s, w in zip(seeds, weights, strict=True))
    for threads in (1, 2):
        library.set_threads(threads)
        found = low_rank_noise_sum(NETWORK, rank, seeds, weights, D)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)
        np.testing.assert_array_equal(found, low_rank_noise_sum(NETWORK, rank, seeds, weights, D))
    library.set_threads(2)


def test_the_sum_of_nothing_is_zero():
    assert not low_rank_noise_sum(NETWORK, 1, [], [], D).any()
    assert not low_rank_noise_sum(NETWORK, 1, [4, 5], [0.0, -0.0], D).any()


def test_mistakes_name_the_value():
    with pytest.raises(NativeError, match="rank is 65, expected 1 to 64"):
        low_rank_noise_sum(NETWORK, 65, [1], [1.0], D)
    with pytest.raises(NativeError, match=f"dimension is 5, expected the network's D = {D}"):
        low_rank_noise_sum(NETWORK, 1, [1], [1.0], 5)
    with pytest.raises(ValueError, match="weight 1 is nan"):
        low_rank_noise_sum(NETWORK, 1, [1, 2], [1.0, np.nan], D)
    with pytest.raises(ValueError, match="rank is 1 with dtype int8, expected float32"):
        Population(["input uint8 4; dense 3 1.0"], 4, dtype="int8", float_rows=1, kind=LowRank(1))
    population = Population([NETWORK], 4, float_rows=1, kind=LowRank(1))
    with pytest.raises(NativeError, match="row 1 is a member"):
        population.init([1], [0], [1])
