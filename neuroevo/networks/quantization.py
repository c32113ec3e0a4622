"""Quantization of weights, identical to the population's for integer networks (custom_ops/networks/int8/rules.h)."""

from __future__ import annotations

import numpy as np

_MAX_WEIGHT = 127
_MAX_EXPONENT = 32


def quantized(weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Quantize the weights of one layer, so that weights are approximately int8 * 2^-k.

    Args:
        weights: Finite numbers of any shape.

    Returns:
        The weights as int8 in the same shape, rounded to nearest with ties to even, and k, the largest exponent in
        [-32, 32] that keeps all of them in [-127, 127]; 0 if all weights are 0.
    """
    largest = float(np.max(np.abs(weights), initial=0))
    if largest == 0:
        return np.zeros(weights.shape, np.int8), 0
    fraction, power = np.frexp(largest)  # fraction in [0.5, 1)
    exponent = 7 - int(power) - int(np.rint(fraction * 128) > _MAX_WEIGHT)
    exponent = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    rounded = np.rint(np.ldexp(weights.astype(np.float64), exponent))
    return np.clip(rounded, -_MAX_WEIGHT, _MAX_WEIGHT).astype(np.int8), exponent
