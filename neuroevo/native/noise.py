"""Sums of noise without the noise: the gradient of evolution strategies, made by the native core from seeds.

Salimans et al. 2017 (https://arxiv.org/abs/1703.03864) add up the noise vectors of a generation, weighted by shaped
returns. A vector is a pure function of its seed, so nothing is kept or sent but seeds and weights. No TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.errors import NativeError
from neuroevo.native.library import call, cuda, get_threads

# What one native call makes, which nothing interrupts: so many numbers, about a tenth of a second (on the CPU, for each
# thread), but at least so many positions, however many seeds there are.
_PIECES = {"cpu": (1 << 26, 1 << 9), "gpu": (1 << 35, 1 << 18)}


def noise_sum(seeds: Sequence[int], weights: Sequence[float], dimension: int, *, device: str = "cpu") -> np.ndarray:
    """The sum of weights[i] * noise(seeds[i]); noise is what Population.perturb adds, bit by bit.

    Products are exact and added up in float64, in the order of the list, and the sum is rounded to float32: the bits
    depend on neither threads nor instruction set nor device. Terms of weight 0 cost nothing. It may take tens of
    seconds, in pieces of about a tenth of one, after each of which Ctrl-C is obeyed.

    Args:
        seeds: In [0, 2**64), [N].
        weights: Rounded to float32, [N]; of an antithetic pair, the difference of its shaped returns.
        dimension: D.
        device: "cpu" for the threads of library.set_threads, or "gpu".

    Returns:
        float32 [D].

    Raises:
        ValueError: A weight is not finite in 32 bits, or shapes do not fit.
        NativeError: The GPU cannot be used.
    """
    seeds = np.ascontiguousarray(seeds, np.uint64)
    if seeds.ndim != 1:
        raise ValueError(f"seeds has shape {list(seeds.shape)}, expected [N]")
    weights = _checked_weights(weights, seeds.shape)
    if dimension < 0:
        raise ValueError(f"dimension is {dimension}, expected 0 or more")
    if device not in _PIECES:
        raise ValueError(f"device is '{device}', expected cpu or gpu")
    out = np.empty(dimension, np.float32)
    piece = _piece(np.count_nonzero(weights), device)
    for begin in range(0, dimension, piece):
        _add_up(seeds, weights, begin, out[begin : begin + piece], device)
    return out


def _piece(terms: int, device: str) -> int:
    """Positions for one native call. Positions are independent of each other, so no bit depends on the split."""
    numbers, least = _PIECES[device]
    return max(numbers // max(terms, 1), least) * (get_threads() if device == "cpu" else 1)


def _add_up(seeds: np.ndarray, weights: np.ndarray, begin: int, out: np.ndarray, device: str) -> None:
    """Writes the sums at positions begin ... of one piece into out, a contiguous view."""
    sizes = len(seeds), begin, len(out)
    if device != "gpu":
        call("noise_sum", seeds, weights, *sizes, out)
        return
    library = cuda()
    if library is None:
        raise NativeError("the native libraries were built without the GPU backend")
    call("cuda_noise_sum", seeds, weights, *sizes, out, library=library)


def _checked_weights(values: Sequence[float], shape: tuple[int, ...]) -> np.ndarray:
    """float32 [N]. ValueError: another shape, or a weight that is not finite."""
    given = np.asarray(values, np.float64)
    if given.shape != shape:
        raise ValueError(f"weights has shape {list(given.shape)}, expected {list(shape)} as seeds")
    with np.errstate(over="ignore"):
        weights = np.ascontiguousarray(given, np.float32)
    for i in np.flatnonzero(~np.isfinite(weights))[:1]:
        raise ValueError(f"weight {i} is {given[i]}, expected a number that is finite in 32 bits")
    return weights
