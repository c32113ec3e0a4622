"""Weighted sums of noise, the gradients of evolution strategies, computed by the native core from seeds.

Salimans et al. 2017 (https://arxiv.org/abs/1703.03864) sum the noise vectors of a generation, weighted by shaped
returns; SNES (Schaul et al. 2011, https://doi.org/10.1145/2001576.2001692) also sums noise**2 - 1, the gradient of the
variance. Each vector is a pure function of its seed, so only seeds and weights are stored or sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.errors import NativeError
from neuroevo.native.library import call, core, cuda, get_threads

# Work of one native call, which cannot be interrupted: the number of noise values, which take about a tenth of a second
# (on the CPU, per thread), and the minimum number of positions, however many seeds there are.
_PIECES = {"cpu": (1 << 26, 1 << 9), "gpu": (1 << 35, 1 << 18)}
# The same for noise of low rank: products per thread, and the minimum number of seeds, whose noise is summed together.
_PRODUCTS, _LEAST_SEEDS = 1 << 29, 32


def noise_sum(
    seeds: Sequence[int],
    weights: Sequence[float] | np.ndarray,
    dimension: int,
    *,
    device: str = "cpu",
) -> np.ndarray:
    """Compute the sum of weights[i] * noise(seeds[i]), with noise bit-identical to that of Population.perturb.

    Products are exact. They are added in float64 in the order of the list, and the sum is rounded to float32: the
    result depends on neither the number of threads nor the instruction set nor the device. Terms of weight 0 cost
    nothing. The sum may take tens of seconds, in pieces of about a tenth of a second; Ctrl-C acts after a piece.

    Args:
        seeds: Noise seeds in [0, 2**64), [N].
        weights: Factors, [N], which are rounded to float32; for an antithetic pair, the difference of its shaped
            returns.
        dimension: Length of the noise vectors, D.
        device: "cpu", with the threads of native.library.set_threads, or "gpu".

    Returns:
        The sum, float32 [D].

    Raises:
        ValueError: A weight is not finite in 32 bits, the shapes do not match, or the dimension or device is invalid.
        NativeError: The GPU is unusable.
    """
    (total,) = _sums(*_checked_terms(seeds, weights, dimension), None, dimension, device)
    return total


def noise_sums(
    seeds: Sequence[int],
    weights: Sequence[float] | np.ndarray,
    square_weights: Sequence[float] | np.ndarray,
    dimension: int,
    *,
    device: str = "cpu",
) -> tuple[np.ndarray, np.ndarray]:
    """Compute noise_sum() and the sum of square_weights[i] * (noise(seeds[i])**2 - 1), generating the noise once.

    The terms noise**2 - 1 are rounded to float32. See noise_sum() for arguments, reproducibility and errors.

    Args:
        seeds: [N].
        weights: [N].
        square_weights: [N].
        dimension: D.
        device: "cpu" or "gpu".

    Returns:
        Both sums, float32 [D].
    """
    noise_seeds, factors = _checked_terms(seeds, weights, dimension)
    _, square_factors = _checked_terms(seeds, square_weights, dimension)
    total, squares = _sums(noise_seeds, factors, square_factors, dimension, device)
    return total, squares


def _sums(
    seeds: np.ndarray, factors: np.ndarray, square_factors: np.ndarray | None, dimension: int, device: str
) -> list[np.ndarray]:
    if device not in _PIECES:
        raise ValueError(f"device is '{device}', expected cpu or gpu")
    library = cuda() if device == "gpu" else core()
    if library is None:
        raise NativeError("the native libraries were built without the GPU backend")
    function = "cuda_noise_sum" if device == "gpu" else "noise_sum"
    sums = [np.empty(dimension, np.float32) for _ in range(1 if square_factors is None else 2)]
    terms = int(np.count_nonzero(factors if square_factors is None else (factors != 0) | (square_factors != 0)))
    piece = _piece(terms, device)
    for begin in range(0, dimension, piece):
        part, *squares = (each[begin : begin + piece] for each in sums)
        squared = square_factors, (squares[0] if squares else None)
        call(function, seeds, factors, len(factors), begin, len(part), part, *squared, library=library)
    return sums


def low_rank_noise_sum(
    network: str, rank: int, seeds: Sequence[int], weights: Sequence[float] | np.ndarray, dimension: int
) -> np.ndarray:
    """Compute the sum of weights[i] * the noise of rank `rank` that Population.perturb adds for seeds[i].

    For a matrix of the network it is the sum of weights[i] / sqrt(rank) * A_i B_i^T, computed as one matrix product
    over all seeds, on the CPU. Products are added in float64 in the order of the list, and the sum is rounded to
    float32 (custom_ops/population/low_rank_sum.h): the result depends on neither the number of threads nor the
    instruction set. Ctrl-C takes effect after some of the seeds.

    Args:
        network: Layer list in text form.
        rank: In [1, 64].
        seeds: Noise seeds in [0, 2**64), [N].
        weights: Factors, [N], which are rounded to float32.
        dimension: Number of weights of the network, D.

    Returns:
        The sum, float32 [D].

    Raises:
        ValueError: A weight is not finite in 32 bits, the shapes do not match, or the dimension is negative.
        NativeError: The network or the rank is invalid, or the network has another dimension.
    """
    noise_seeds, factors = _checked_terms(seeds, weights, dimension)
    sums = np.zeros(dimension, np.float64)
    piece = max(_PRODUCTS // (max(dimension, 1) * max(rank, 1)), _LEAST_SEEDS) * get_threads()
    for begin in range(0, max(len(factors), 1), piece):
        part = slice(begin, begin + piece)
        some = np.ascontiguousarray(noise_seeds[part]), np.ascontiguousarray(factors[part])
        call("low_rank_sum", network.encode(), rank, *some, len(some[0]), dimension, sums)
    with np.errstate(over="ignore"):
        return sums.astype(np.float32)


def _piece(terms: int, device: str) -> int:
    """Return the number of positions per native call; positions are independent, so it does not affect results."""
    numbers, least = _PIECES[device]
    return max(numbers // max(terms, 1), least) * (get_threads() if device == "cpu" else 1)


def _checked_terms(
    seeds: Sequence[int], weights: Sequence[float] | np.ndarray, dimension: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return seeds and weights as uint64 and float32 [N].

    Raises:
        ValueError: A shape, a weight or the dimension is invalid.
    """
    noise_seeds, given = np.ascontiguousarray(seeds, np.uint64), np.asarray(weights, np.float64)
    if noise_seeds.ndim != 1:
        raise ValueError(f"seeds has shape {list(noise_seeds.shape)}, expected [N]")
    if given.shape != noise_seeds.shape:
        raise ValueError(f"weights has shape {list(given.shape)}, expected {list(noise_seeds.shape)} as seeds")
    with np.errstate(over="ignore"):
        factors = np.ascontiguousarray(given, np.float32)
    for i in np.flatnonzero(~np.isfinite(factors))[:1]:
        raise ValueError(f"weight {i} is {given[i]}, expected a number that is finite in 32 bits")
    if dimension < 0:
        raise ValueError(f"dimension is {dimension}, expected 0 or more")
    return noise_seeds, factors
