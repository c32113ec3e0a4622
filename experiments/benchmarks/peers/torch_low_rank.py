"""Evolution strategies of low rank in PyTorch playing in EnvPool: members share a center's weights in memory.

    python torch_low_rank.py {grouped,unfold,vmap,threads} {model,large_model} GAME MEMBERS THREADS

A member's matrix is the center's plus c A B^T with A [m, 1] and B [n, 1], and is never made. Four ways to evaluate N
members at once, all float32:
  grouped   one convolution with the center's kernels for all, one of N groups with the members' A, then B added
  unfold    patches as columns (im2col), one matrix product with the center's weights for all, thin ones for each
  vmap      torch.func.vmap over the members of a network that is written for one of them
  threads   as grouped, but each thread has an EnvPool and members of its own, without a barrier

It answers as torch_population.py.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (torch's own name for it)
from torch_population import NETWORKS, same_padding, serve_rollouts

_SIGMA = 0.02


class Layer:
    """A center's matrix [n, m] (of a convolution [n, channels, side, side]), and N members' factors and biases."""

    def __init__(self, count: int, shape: tuple[int, ...], std: float, generator: torch.Generator):
        fan_in = int(np.prod(shape[1:]))
        self.weight = torch.randn(shape, generator=generator) * (std / fan_in**0.5)
        self.a = torch.randn(count, *shape[1:], generator=generator)
        self.b = torch.randn(count, shape[0], generator=generator) * _SIGMA
        self.bias = torch.randn(count, shape[0], generator=generator) * _SIGMA


class Members:
    """N members of one center."""

    def __init__(self, network: str, count: int, actions: int):
        convolutions, hidden, _ = NETWORKS[network]
        generator = torch.Generator().manual_seed(0)
        self.count, self.strides, self.paddings, self.layers = count, [], [], []
        size, channels = 84, 4
        for filters, side, stride in convolutions:
            self.layers.append(Layer(count, (filters, channels, side, side), 1.0, generator))
            self.strides.append(stride)
            self.paddings.append(same_padding(size, side, stride) * 2)
            size, channels = -(-size // stride), filters
        self.layers.append(Layer(count, (hidden, size * size * channels), 1.0, generator))
        self.layers.append(Layer(count, (actions, hidden), 0.1, generator))
        factors = [(layer.a, layer.b, layer.bias) for layer in self.layers]
        self.mapped = functools.partial(torch.func.vmap(self.outputs_of_one), factors)

    def outputs(self, x: torch.Tensor, way: str) -> torch.Tensor:
        """float32 [N, actions] of images float32 [N, 4, 84, 84], image n by member n."""
        for layer, stride, padding in zip(self.layers, self.strides, self.paddings, strict=False):
            x = F.pad(x, padding)
            side = (x.shape[-1] - layer.weight.shape[-1]) // stride + 1
            if way == "unfold":
                columns = F.unfold(x, layer.weight.shape[2:], stride=stride)  # [N, m, pixels]
                y = torch.matmul(layer.weight.flatten(1), columns)
                z = torch.bmm(layer.a.flatten(1)[:, None], columns)
            else:
                y = F.conv2d(x, layer.weight, stride=stride).flatten(2)
                z = F.conv2d(x.reshape(1, -1, *x.shape[2:]), layer.a, stride=stride, groups=self.count)
                z = z.reshape(self.count, 1, -1)
            y = torch.baddbmm(y, layer.b[:, :, None], z).add_(layer.bias[:, :, None])
            x = F.relu_(y).reshape(self.count, -1, side, side)
        x = x.flatten(1)
        for layer in self.layers[len(self.strides) :]:
            z = (x * layer.a).sum(1, keepdim=True)
            x = torch.addmm(layer.bias, x, layer.weight.T).addcmul_(z, layer.b)
            x = x if layer is self.layers[-1] else F.relu_(x)
        return x

    def outputs_of_one(self, factors: list[tuple[torch.Tensor, ...]], x: torch.Tensor) -> torch.Tensor:
        """The same of one member and one image, for vmap."""
        x = x[None]
        for layer, (a, b, bias), stride, padding in zip(
            self.layers, factors, self.strides, self.paddings, strict=False
        ):
            x = F.pad(x, padding)
            y, z = F.conv2d(x, layer.weight, stride=stride), F.conv2d(x, a[None], stride=stride)
            x = F.relu(y + z * b[:, None, None] + bias[:, None, None])
        x = x.flatten()
        for layer, (a, b, bias) in list(zip(self.layers, factors, strict=True))[len(self.strides) :]:
            y = layer.weight @ x + (x @ a) * b + bias
            x = y if layer is self.layers[-1] else F.relu(y)
        return x

    def actions(self, observations: np.ndarray, way: str) -> np.ndarray:
        """int32 [N] of observations uint8 [N, 4, 84, 84]."""
        x = torch.from_numpy(observations).float().div_(255)
        outputs = self.mapped(x) if way == "vmap" else self.outputs(x, way)
        return outputs.argmax(-1).numpy().astype(np.int32)


def main() -> None:
    way, network, game = sys.argv[1:4]
    make = functools.partial(Members, network)
    # The name under which torch_population.py knows populations that are evaluated one network after another.
    name = "threads, together" if way == "threads" else way
    serve_rollouts(make, name, game, int(sys.argv[4]), int(sys.argv[5]))


if __name__ == "__main__":
    main()
