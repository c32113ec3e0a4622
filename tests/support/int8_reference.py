"""Networks in integers in NumPy, written from the rules of custom_ops/networks/int8: what tests hold the
population against. Every number here is an integer or an exact fraction in float64."""

from __future__ import annotations

import numpy as np


def nearest(values: np.ndarray | float, limit: float) -> np.ndarray:
    """int64: to nearest, halves to even, cut off at +-limit."""
    return np.clip(np.rint(values), -limit, limit).astype(np.int64)


def weight_exponent(weights: np.ndarray) -> int:
    """The largest k of [-32, 32] that keeps round(w * 2^k) in [-127, 127]; 0 for zeros."""
    largest = np.abs(weights.astype(np.float64)).max()
    fitting = [k for k in range(-32, 33) if np.rint(largest * 2.0**k) <= 127]
    return 0 if largest == 0 else max(fitting, default=-32)


def convolve(values: np.ndarray, kernel: np.ndarray, stride: int, same: bool) -> np.ndarray:
    """values int64 [H, W, C], kernel int64 [KH, KW, C, F] -> sums [OH, OW, F], padded as TensorFlow does."""
    sides = []
    for side, size in zip(values.shape, kernel.shape[:2], strict=False):
        out = -(-side // stride) if same else (side - size) // stride + 1
        zeros = max(0, (out - 1) * stride + size - side) if same else 0
        sides.append((out, zeros // 2, zeros - zeros // 2))
    (height, *rows), (width, *columns) = sides
    padded = np.pad(values, (rows, columns, (0, 0)))
    sums = np.zeros((height, width, kernel.shape[3]), np.int64)
    for y in range(height):
        for x in range(width):
            patch = padded[y * stride : y * stride + kernel.shape[0], x * stride : x * stride + kernel.shape[1]]
            sums[y, x] = np.tensordot(patch, kernel, 3)
    return sums


def outputs(layers: list[str], theta: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """float32 [A]: of a layer list with finite weights theta [D] on one observation."""
    words = [layer.split() for layer in layers[1:]]
    values, exponent, used, i = observation.astype(np.int64), 0, 0, 0

    def take(*shape: int) -> np.ndarray:
        nonlocal used
        used += int(np.prod(shape))
        return theta[used - int(np.prod(shape)) : used].reshape(shape).astype(np.float64)

    while i < len(words):
        kind, *size = words[i]
        if kind == "conv":
            filters, height, width, stride = map(int, size[:4])
            weights = take(height, width, values.shape[2], filters)
        else:
            values = values.reshape(-1)
            weights = take(values.size, int(size[0]))
        k = weight_exponent(weights)
        whole = nearest(weights * 2.0**k, 127)
        sums = convolve(values, whole, stride, size[4] == "same") if kind == "conv" else values @ whole
        exponent += k
        i += 1
        if i < len(words) and words[i][0] == "bias":
            sums = sums + nearest(take(sums.shape[-1]) * 255 * 2.0**exponent, 2**30)
            i += 1
        if i < len(words):  # a relu
            sums = np.maximum(sums, 0)
            i += 1
        if i < len(words):
            shift = next(s for s in range(32) if np.rint(sums.max() / 2**s) <= 255)
            exponent = 0 if sums.max() == 0 else exponent - shift
            values = nearest(sums / 2**shift, 255)
    return (sums.reshape(-1) / 255 * 2.0**-exponent).astype(np.float32)
