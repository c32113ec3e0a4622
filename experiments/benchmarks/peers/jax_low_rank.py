"""Evolution strategies of low rank in JAX playing in EnvPool: members share a center's weights in memory.

    python jax_low_rank.py {vmap,patches} {model,large_model} GAME MEMBERS THREADS

A member's matrix is the center's plus c A B^T, as in torch_low_rank.py, and is never made. The forward pass of one
member is written down, and jax.vmap and jax.jit make one program of it for all, float32; the center's weights are not
mapped, so that XLA has one product with them for all members. Two ways to convolve:
  vmap      XLA's own convolutions
  patches   patches as rows (im2col), then products of matrices

It answers as torch_population.py.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import numpy as np
from torch_population import NETWORKS, same_padding, serve_rollouts

_SIGMA = 0.02


class Members:
    """N members of one center. Weights: kernels [side, side, channels, filters], matrices [inputs, units]."""

    def __init__(self, way: str, network: str, count: int, actions: int):
        import jax
        import jax.numpy as jnp

        self._jnp, self._lax, self._relu, self._way = jnp, jax.lax, jax.nn.relu, way
        self.count = count
        convolutions, hidden, _ = NETWORKS[network]
        generator = np.random.default_rng(0)
        self._strides, self._paddings, shapes = [], [], []
        size, channels = 84, 4
        for filters, side, stride in convolutions:
            shapes.append((side, side, channels, filters))
            self._strides.append(stride)
            self._paddings.append(same_padding(size, side, stride))
            size, channels = -(-size // stride), filters
        shapes += [(size * size * channels, hidden), (hidden, actions)]

        def normal(*shape: int, scale: float) -> Any:
            return jnp.asarray(generator.standard_normal(shape, np.float32) * np.float32(scale))

        center = [normal(*shape, scale=np.prod(shape[:-1]) ** -0.5) for shape in shapes]
        factors = [
            (normal(count, *shape[:-1], scale=1), *(normal(count, shape[-1], scale=_SIGMA) for _ in range(2)))
            for shape in shapes
        ]
        self._outputs = functools.partial(
            jax.jit(jax.vmap(self._outputs_of_one, in_axes=(None, 0, 0))), center, factors
        )

    def _outputs_of_one(self, center: list[Any], factors: list[tuple[Any, Any, Any]], image: Any) -> Any:
        """Outputs [A] of one member with factors (A, B, biases) for an image uint8 [4, 84, 84]."""
        x = image.transpose(1, 2, 0).astype(self._jnp.float32) / 255
        layers = list(zip(center, factors, strict=True))
        for i, (weight, (a, b, bias)) in enumerate(layers):
            if i == len(self._strides):
                x = x.reshape(-1)
            y, z = self._products(i, x, weight, a[..., None])
            x = y + z * b + bias
            x = x if i == len(layers) - 1 else self._relu(x)
        return x

    def _products(self, i: int, x: Any, weight: Any, a: Any) -> tuple[Any, Any]:
        """What layer i makes of x with the center's weights, and with a member's A."""
        if i >= len(self._strides):
            return x @ weight, x @ a
        stride, padding, side = self._strides[i], self._paddings[i], weight.shape[0]
        if self._way == "vmap":
            convolve = functools.partial(
                self._lax.conv_general_dilated,
                x[None],
                window_strides=(stride, stride),
                padding=(padding, padding),
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            return convolve(weight)[0], convolve(a)[0]
        x = self._jnp.pad(x, (padding, padding, (0, 0)))
        end = x.shape[0] - side + 1
        cells = [x[row : row + end : stride, column : column + end : stride] for row, column in np.ndindex(side, side)]
        patches = self._jnp.concatenate(cells, -1)
        return patches @ weight.reshape(-1, weight.shape[-1]), patches @ a.reshape(-1, 1)

    def actions(self, observations: np.ndarray, _: str) -> np.ndarray:
        """int32 [N] of observations uint8 [N, 4, 84, 84]."""
        return np.asarray(self._outputs(observations)).argmax(-1).astype(np.int32)


def main() -> None:
    way, network, game = sys.argv[1:4]
    members, threads = int(sys.argv[4]), int(sys.argv[5])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # XLA has a thread for each core that it sees
    serve_rollouts(functools.partial(Members, way, network), way, game, members, threads)


if __name__ == "__main__":
    main()
