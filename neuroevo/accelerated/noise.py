"""Noise of genomes in JAX, bit-identical to the native core's (custom_ops/core/noise.h) on every platform.

noise(seed, position) is Philox4x32-10 (Salmon et al. 2011) followed by the Box-Muller transform (1958), in operations
that IEEE 754 rounds exactly. XLA does not guarantee a fused multiply-add, so fma() emulates it in float64: the product
of two float32 is exact, and its sum with a third is rounded to odd before the conversion to float32, so that rounding
twice gives the same result as rounding once (Boldo and Melquiond 2008). The functions enable JAX's 64-bit types, which
they need, locally.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import enable_x64

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key after each round
_LOW = 0xFFFFFFFF

# Coefficients of portable_math.h, highest power first.
_LOG = tuple(
    map(
        float.fromhex,
        (
            "0x1.14573ep-4",
            "-0x1.de3bf8p-4",
            "0x1.e6f08cp-4",
            "-0x1.fc220ep-4",
            "0x1.233766p-3",
            "-0x1.555c4ep-3",
            "0x1.99a4b6p-3",
            "-0x1.000006p-2",
            "0x1.555548p-2",
        ),
    )
)
_SIN = tuple(map(float.fromhex, ("-0x1.2d9bb8p+6", "0x1.465ec6p+6", "-0x1.4abbbap+5", "0x1.921fb6p+2")))
_COS = tuple(map(float.fromhex, ("0x1.d9f7bap+5", "-0x1.55c664p+6", "0x1.03c1dep+6", "-0x1.3bd3ccp+4", "1.0")))
_TWO_LOG_2, _LOG_2_REST = float.fromhex("-0x1.62e430p+0"), float.fromhex("-0x1.05c610p-29")
_ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1/2)


def noise(seeds: jax.Array, dimension: int) -> jax.Array:
    """Return the noise at positions 0 to D - 1.

    It runs three programs in sequence: in a single program XLA would recompute for each weight the words and logarithms
    that weights share.

    Args:
        seeds: uint64 [K], made under enable_x64.
        dimension: Number of weights, D.

    Returns:
        The noise, float32 [K, D].
    """
    words = _words(seeds, -(-dimension // 4))
    return _in_order(*_normals(words[0], words[1]), *_normals(words[2], words[3]), dimension)


@partial(jax.jit, static_argnums=1)
def _words(seeds: jax.Array, counters: int) -> list[jax.Array]:
    words = _philox(seeds[:, None], jnp.arange(counters, dtype=jnp.uint64))
    return [word.astype(jnp.uint32) for word in words]


@partial(jax.jit, static_argnums=4)
def _in_order(a: jax.Array, b: jax.Array, c: jax.Array, d: jax.Array, dimension: int) -> jax.Array:
    values = jnp.stack([a, b, c, d], axis=-1)
    return values.reshape((len(a), -1))[:, :dimension]


@jax.jit
def _scaled(values: jax.Array, scales: jax.Array) -> jax.Array:
    return jnp.where(scales == 0, jnp.float32(0), values * scales)  # never -0


@jax.jit
def _added(thetas: jax.Array, values: jax.Array, scales: jax.Array) -> jax.Array:
    return fma(scales[:, None], values, thetas)


def initial(seeds: object, scales: jax.Array) -> jax.Array:
    """Return initial weights.

    Args:
        seeds: Seeds [K], in [0, 2**64).
        scales: Factor of each weight's noise, float32 [D].

    Returns:
        The weights, float32 [K, D].
    """
    with enable_x64():
        return _scaled(noise(jnp.asarray(seeds, jnp.uint64), scales.shape[-1]), scales)


def perturbed(thetas: jax.Array, seeds: object, scales: object) -> jax.Array:
    """Return weights after one mutation each: theta + scale * noise(seed), by one fused multiply-add.

    Args:
        thetas: Weights before the mutation, float32 [K, D].
        seeds: Seeds [K], in [0, 2**64).
        scales: Mutation scales [K], exactly representable in float32.

    Returns:
        The mutated weights, float32 [K, D].
    """
    with enable_x64():
        values = noise(jnp.asarray(seeds, jnp.uint64), thetas.shape[-1])
        return _added(thetas, values, jnp.asarray(scales, jnp.float32))


def fma(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """Return a * b + c, all float32, with one rounding. Call it under enable_x64."""
    product = a.astype(jnp.float64) * b.astype(jnp.float64)  # exact
    addend = c.astype(jnp.float64)
    total = product + addend
    of_addend = total - product
    error = (product - (total - of_addend)) + (addend - of_addend)  # exact (Knuth's TwoSum)
    bits = lax.bitcast_convert_type(total, jnp.uint64)
    is_even = (bits & jnp.uint64(1)) == 0
    outward = (error > 0) == (total > 0)
    odd = jnp.where(outward, bits + jnp.uint64(1), bits - jnp.uint64(1))
    total = lax.bitcast_convert_type(jnp.where((error != 0) & is_even, odd, bits), jnp.float64)
    # XLA may remove a conversion to float32 that is followed by one to float64, but never reduce_precision.
    return lax.reduce_precision(total, exponent_bits=8, mantissa_bits=23).astype(jnp.float32)


def _philox(seeds: jax.Array, counters: jax.Array) -> list[jax.Array]:
    """Return the four 32-bit words of each seed and counter, each stored in a uint64."""
    low = jnp.uint64(_LOW)
    shape = jnp.broadcast_shapes(seeds.shape, counters.shape)
    words = [jnp.broadcast_to(word, shape) for word in (counters & low, counters >> 32)]
    words += [jnp.zeros(shape, jnp.uint64)] * 2
    keys = [seeds & low, seeds >> 32]
    for _ in range(_ROUNDS):
        first, second = words[0] * jnp.uint64(_MULTIPLIERS[0]), words[2] * jnp.uint64(_MULTIPLIERS[1])
        words = [(second >> 32) ^ words[1] ^ keys[0], second & low, (first >> 32) ^ words[3] ^ keys[1], first & low]
        keys = [(key + jnp.uint64(weyl)) & low for key, weyl in zip(keys, _WEYL, strict=True)]
    return words


@jax.jit
def _normals(radius: jax.Array, angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    u = fma(radius.astype(jnp.float32), jnp.float32(2.0**-32), jnp.float32(2.0**-33))
    # A float64 square root of a float32 rounds to the exact float32 result; the GPU's float32 root may be approximate.
    root = jnp.sqrt(_minus_two_log(u).astype(jnp.float64))
    length = lax.reduce_precision(root, exponent_bits=8, mantissa_bits=23).astype(jnp.float32)
    sin, cos = _sin_cos(angle)
    return length * cos, length * sin


def _minus_two_log(u: jax.Array) -> jax.Array:
    bits = lax.bitcast_convert_type(u, jnp.uint32) - jnp.uint32(_ROOT_HALF)
    e = (lax.bitcast_convert_type(bits, jnp.int32) >> 23).astype(jnp.float32)
    mantissa = (bits & jnp.uint32(0x007FFFFF)) + jnp.uint32(_ROOT_HALF)
    f = lax.bitcast_convert_type(mantissa, jnp.float32) - jnp.float32(1)
    square = f * f
    log = fma(f * square, _polynomial(_LOG, f), e * jnp.float32(_LOG_2_REST))
    log = f + fma(jnp.float32(-0.5), square, log)
    return fma(e, jnp.float32(_TWO_LOG_2), log * jnp.float32(-2))


def _sin_cos(turn: jax.Array) -> tuple[jax.Array, jax.Array]:
    quadrant = turn + jnp.uint32(0x20000000)  # in its two upper bits
    t = lax.bitcast_convert_type(turn << 2, jnp.int32).astype(jnp.float32) * jnp.float32(2.0**-34)
    square = t * t
    sin, cos = _polynomial(_SIN, square) * t, _polynomial(_COS, square)
    odd = (quadrant & jnp.uint32(0x40000000)) != 0
    sin, cos = jnp.where(odd, cos, sin), jnp.where(odd, sin, cos)
    minus_sin = (quadrant & jnp.uint32(0x80000000)) != 0
    minus_cos = ((quadrant + jnp.uint32(0x40000000)) & jnp.uint32(0x80000000)) != 0
    return jnp.where(minus_sin, -sin, sin), jnp.where(minus_cos, -cos, cos)


def _polynomial(coefficients: tuple[float, ...], x: jax.Array) -> jax.Array:
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fma(value, x, jnp.float32(coefficient))
    return value
