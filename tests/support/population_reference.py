"""Noise and networks in NumPy and TensorFlow, written from the papers and from the descriptions in core/noise.h and
networks/network.h: what tests hold the population against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf


def philox(counters: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 (Salmon et al. 2011): counters uint64 [N, 4] of 32-bit words, key of two -> words uint64 [N, 4]."""
    mask = np.uint64(2**32 - 1)
    a, b, c, d = counters.T
    k0, k1 = key
    for _ in range(10):
        p, q = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (q >> 32) ^ b ^ np.uint64(k0), q & mask, (p >> 32) ^ d ^ np.uint64(k1), p & mask
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1)


def noise(seed: int, count: int) -> np.ndarray:
    """float64 [count]: noise(seed) at positions 0 ... count - 1. Box and Muller 1958 in double precision, but with the
    uniform number rounded to float as noise.h says: it decides how far the tails reach."""
    counters = np.zeros((-(-count // 4), 4), np.uint64)
    counters[:, 0] = np.arange(len(counters))
    seed %= 2**64
    words = philox(counters, (seed & 0xFFFFFFFF, seed >> 32))
    radius, angle = words[:, 0::2].astype(np.float32), words[:, 1::2] * 2.0**-32
    u = (radius * 2.0**-32 + 2.0**-33).astype(np.float32).astype(np.float64)
    length = np.sqrt(-2 * np.log(u))
    return np.stack([length * np.cos(2 * np.pi * angle), length * np.sin(2 * np.pi * angle)], 2).reshape(-1)[:count]


_ACTIVATIONS = {
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "silu": tf.nn.silu,
    "gelu": lambda x: tf.nn.gelu(x, approximate=True),
}


@dataclass(frozen=True)
class Part:
    """The weights of one layer: their shape, place in theta, and initial scale (0 for a bias)."""

    shape: tuple[int, ...]
    begin: int
    scale: float

    @property
    def end(self) -> int:
        return self.begin + int(np.prod(self.shape))


class ReferenceNetwork:
    """A layer list. forward() is float64 arithmetic of TensorFlow's own convolution."""

    def __init__(self, layers: list[str]):
        self._layers = [layer.split() for layer in layers]
        _, self.dtype, *dims = self._layers[0]
        self.input_shape = tuple(map(int, dims))
        self.parts: list[Part] = []
        self.dimension = 0
        # Shapes follow from an evaluation of zeros that notes the weights it would need.
        self.outputs = self._run(tf.zeros((1, *self.input_shape), tf.float64), self._new_weights).shape[1]

    def forward(self, theta: np.ndarray, observations: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
        """float64 [K, outputs] for one theta [D] and observations [K, ...]; reference [B, ...]: what vbn layers take
        their moments of."""
        parts = iter(self.parts)

        def weights(*_: object) -> tf.Tensor:
            part = next(parts)
            return tf.constant(theta[part.begin : part.end].reshape(part.shape), tf.float64)

        scale = float(np.float32(1 / 255)) if self.dtype == "uint8" else 1.0
        batch = 0 if reference is None else len(reference)
        together = observations if reference is None else np.concatenate([reference, observations])
        return self._run(tf.constant(together, tf.float64) * scale, weights, batch).numpy()[batch:]

    def _new_weights(self, shape: tuple[int, ...], std: float, fan_in: int) -> tf.Tensor:
        self.parts.append(Part(shape, self.dimension, std / np.sqrt(fan_in)))
        self.dimension = self.parts[-1].end
        return tf.zeros(shape, tf.float64)

    def _run(self, x: tf.Tensor, weights, batch: int = 1) -> tf.Tensor:
        """batch: how many of x are the reference batch."""
        for kind, *words in self._layers[1:]:
            if kind == "conv":
                filters, height, width, stride = map(int, words[:4])
                kernel = weights((height, width, x.shape[-1], filters), float(words[5]), height * width * x.shape[-1])
                x = tf.nn.conv2d(x, kernel, stride, words[4].upper())
            elif kind == "dense":
                x = tf.reshape(x, (x.shape[0], -1))
                x = tf.matmul(x, weights((x.shape[1], int(words[0])), float(words[1]), x.shape[1]))
            elif kind == "bias":
                x = x + weights((x.shape[-1],), 0.0, 1)
            elif kind in ("max_pool", "avg_pool"):
                height, width, stride = map(int, words[:3])
                pool = tf.nn.max_pool2d if kind == "max_pool" else tf.nn.avg_pool2d
                x = pool(x, (height, width), stride, words[3].upper())
            elif kind == "layer_norm":
                mean, variance = tf.nn.moments(x, [len(x.shape) - 1], keepdims=True)
                x = (x - mean) / tf.sqrt(variance + 1e-3)
            elif kind == "leaky_relu":
                x = tf.nn.leaky_relu(x, float(words[0]))
            elif kind == "vbn":
                mean, variance = tf.nn.moments(x[:batch], list(range(len(x.shape) - 1)))
                x = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
            else:
                x = _ACTIVATIONS[kind](x)
        return tf.reshape(x, (x.shape[0], -1))


class OpPopulation:
    """The population's ops with NumPy in and out. networks: layer lists in text form."""

    def __init__(
        self, networks: list[str], rows: int, backend: str = "cpu", dtype: str = "float32", float_rows: int = -1
    ):
        from neuroevo.rollout.tensorflow.ops import load_ops

        self._ops = load_ops()
        self.handle = self._ops.population_make(
            networks=networks, rows=rows, backend=backend, dtype=dtype, float_rows=float_rows
        )
        self.dimensions = self._ops.population_dimensions(self.handle).numpy().tolist()

    def init(self, rows, networks, seeds) -> None:
        self._ops.population_init(self.handle, _int64(rows), np.array(networks, np.int32), _int64(seeds))

    def assign(self, rows, networks, thetas) -> None:
        self._ops.population_assign(self.handle, _int64(rows), np.array(networks, np.int32), thetas)

    def read(self, rows) -> np.ndarray:
        return self._ops.population_read(self.handle, _int64(rows)).numpy()

    def perturb(self, dst, src, seeds, scales, spreads=None) -> None:
        dst, src, seeds = _int64(dst), _int64(src), _int64(seeds)
        spreads = _int64([-1] * len(dst) if spreads is None else spreads)
        self._ops.population_perturb(self.handle, dst, src, seeds, np.array(scales, np.float32), spreads)

    def forward(self, rows, observations) -> np.ndarray:
        return self._ops.population_forward(self.handle, _int64(rows), observations).numpy()


def _int64(values) -> np.ndarray:
    return np.array(values, np.int64)


def bits(values: np.ndarray) -> np.ndarray:
    """Reinterpret float32 as uint32, so that comparisons distinguish -0 from 0 and between NaNs."""
    return np.ascontiguousarray(values, np.float32).view(np.uint32)
