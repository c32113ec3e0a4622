"""Sums of noise against float64 NumPy on the noise that perturb adds; bit-identical for every split."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.core.errors import NativeError
from neuroevo.native import library, noise
from neuroevo.native.noise import noise_sum, noise_sums
from neuroevo.native.population import Population
from tests.support import cuda_emulated

D = 3001
SEEDS = [0, 1, 7, 2**32, 2**63 - 1, 2**64 - 1]


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    threads = library.get_threads()
    yield
    library.set_threads(threads)


def noise_vectors(seeds, dimension: int) -> np.ndarray:
    """Return the noise that perturb adds to zeros with scale 1, float32 [N, D]."""
    population = Population([f"input float32 1; dense {dimension} 1.0"], 2)
    vectors = []
    for seed in seeds:
        population.assign([0], [0], np.zeros((1, dimension), np.float32))
        population.perturb([1], [0], [seed], [1.0])
        vectors.append(population.read([1])[0])
    return np.array(vectors)


def test_a_single_seed_gives_the_noise_that_perturb_adds():
    vectors = noise_vectors(SEEDS, D)
    assert len({vector.tobytes() for vector in vectors}) == len(SEEDS)
    for seed, vector in zip(SEEDS, vectors, strict=True):
        assert np.array_equal(noise_sum([seed], [1.0], D), vector)


def test_a_generation_is_within_1e_5_of_float64_in_every_element():
    """The error is at most half a unit in the last place, much smaller than that of float32 sums."""
    seeds = np.random.default_rng(1).integers(0, 2**63, 2500)
    weights = np.random.default_rng(2).uniform(-1, 1, 2500).astype(np.float32)
    found = noise_sum(seeds, weights, D)
    vectors = noise_vectors(seeds, D)
    expected = weights.astype(np.float64) @ vectors.astype(np.float64)
    assert found.dtype == np.float32
    assert np.max(np.abs(found - expected) / np.abs(expected)) < 1e-7
    in_float32 = np.cumsum(weights[:, None] * vectors, axis=0, dtype=np.float32)[-1]
    assert np.max(np.abs(in_float32 - expected) / np.abs(expected)) > 1e-5


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(50, 2000), st.integers(0, D), st.data())
def test_threads_and_pieces_leave_every_bit(threads, piece, dimension, data):
    n = data.draw(st.integers(0, 12))
    seeds = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=n, max_size=n))
    finite = st.floats(-(2.0**90), 2.0**90, width=32)
    weights, square_weights = (data.draw(st.lists(finite, min_size=n, max_size=n)) for _ in range(2))
    library.set_threads(1)
    expected = noise_sums(seeds, weights, square_weights, D)
    assert noise_sum(seeds, weights, D).tobytes() == expected[0].tobytes()
    library.set_threads(threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "_piece", lambda terms, device: piece)
        found = noise_sums(seeds, weights, square_weights, dimension)
    assert [each.tobytes() for each in found] == [each[:dimension].tobytes() for each in expected]


def test_pieces_are_short_whatever_the_numbers():
    for threads in (1, 6):
        library.set_threads(threads)
        for terms in (0, 1, 2500, 10**6):
            piece = noise._piece(terms, "cpu")
            assert threads * 512 <= piece <= threads * max(2**26 / max(terms, 1), 512)


def test_squares_are_those_of_the_noise_that_perturb_adds():
    seeds = np.random.default_rng(3).integers(0, 2**63, 300)
    weights = np.random.default_rng(4).uniform(-1, 1, 300).astype(np.float32)
    squares = (noise_vectors(seeds, D).astype(np.float64) ** 2 - 1).astype(np.float32)
    assert np.array_equal(noise_sums(seeds[:1], [0.0], [1.0], D)[1], squares[0])
    total = np.zeros(D)
    for weight, term in zip(weights.astype(np.float64), squares, strict=True):
        total += weight * term
    assert np.array_equal(noise_sums(seeds, np.zeros(300), weights, D)[1], total.astype(np.float32))
    # The mean of 2500 is near 0, as expected of squared standard normals minus 1.
    _, many = noise_sums(range(2500), np.zeros(2500), np.full(2500, 1 / 2500), D)
    assert abs(many.mean()) < 5 * np.sqrt(2 / 2500 / D) and many.std() < 1.1 * np.sqrt(2 / 2500)


def test_zero_weights_and_empty_lists():
    zeros = np.zeros(50, np.float32).tobytes()
    assert noise_sum([], [], 50).tobytes() == zeros
    assert noise_sum([1, 2], [0.0, -0.0], 50).tobytes() == zeros
    assert noise_sum([1, 2, 1], [0.1, 0.0, -0.1], 50).tobytes() == zeros
    assert noise_sum([1], [1.0], 0).shape == (0,)
    kept = noise_sum([3, 4], [0.25, 0.5], 50)
    assert noise_sum([9, 3, 8, 4], [0.0, 0.25, -0.0, 0.5], 50).tobytes() == kept.tobytes()


@pytest.mark.parametrize(
    ("seeds", "weights", "dimension", "message"),
    [
        ([1, 2, 3], [0.5, 0.5, float("nan")], 4, "weight 2 is nan, expected a number that is finite in 32 bits"),
        ([1, 2], [float("-inf"), 0.5], 4, "weight 0 is -inf, expected"),
        ([1, 2], [0.5, 1e39], 4, "weight 1 is 1e+39, expected"),
        ([1, 2], [0.5], 4, "weights has shape [1], expected [2] as seeds"),
        ([[1, 2]], [[0.5, 0.5]], 4, "seeds has shape [1, 2], expected [N]"),
        ([1], [0.5], -1, "dimension is -1, expected 0 or more"),
    ],
)
def test_mistakes(seeds, weights, dimension, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        noise_sum(seeds, weights, dimension)


def test_mistakes_in_square_weights():
    with pytest.raises(ValueError, match=re.escape("weights has shape [1], expected [2] as seeds")):
        noise_sums([1, 2], [0.5, 0.5], [0.5], 4)


def test_an_unknown_device_is_named():
    with pytest.raises(ValueError, match="'tpu'"):
        noise_sum([1], [1.0], 4, device="tpu")


@pytest.mark.skipif(library.gpu().usable, reason=f"there is a GPU: {library.gpu().name}")
def test_without_a_gpu_it_says_why():
    with pytest.raises(NativeError, match="GPU|driver"):
        noise_sum([1], [1.0], 4, device="gpu")


def test_the_gpus_kernel_has_the_cpus_bits(monkeypatch):
    emulated = cuda_emulated.load()
    monkeypatch.setattr(noise, "cuda", lambda: emulated)
    monkeypatch.setattr(noise, "_piece", lambda terms, device: 1501)
    weights = np.linspace(-1, 1, len(SEEDS))
    assert noise_sum(SEEDS, weights, D, device="gpu").tobytes() == noise_sum(SEEDS, weights, D).tobytes()
    expected = noise_sums(SEEDS, weights, -2 * weights, D)
    found = noise_sums(SEEDS, weights, -2 * weights, D, device="gpu")
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


def test_ctrl_c_ends_a_long_sum():
    """Of a sum that would take minutes."""
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    gc.disable()  # Python would drop the exception in Hypothesis's garbage collection callback
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            noise_sum(range(200_000), np.ones(200_000), 4_000_000)
    finally:
        gc.enable()
    timer.join()
