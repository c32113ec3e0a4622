"""Inheritance of weights between different networks, and the cost of a network.

The layers of the two networks are aligned in order, each with a layer of the same kind, so that the share of
corresponding weights is as large as possible. A layer inherits the weights that it has in common with its counterpart:
the new units of a wider layer and the border of a larger convolution keep their initial weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neuroevo.networks.layers import walk


@dataclass(frozen=True)
class Cost:
    """The cost of evaluating a network.

    Attributes:
        weights: Number of weights, D.
        multiply_adds: Number of products per observation, including products with zeros.
    """

    weights: int
    multiply_adds: int


@dataclass(frozen=True)
class _Block:
    """A layer with weights.

    Attributes:
        kind: "conv", "dense", "lstm", "graph" or "bias".
        parts: Offset in theta and shape of each array of the layer. Inputs of dense layers are not flattened.
        positions: Number of uses of the weights per observation.
    """

    kind: str
    parts: tuple[tuple[int, tuple[int, ...]], ...]
    positions: int = 1

    def share(self, other: _Block) -> float:
        """Return the share of common weights, in [0, 1]; 0 for layers of different kinds and for graphs."""
        if self.kind != other.kind or self.kind == "graph" or len(self.parts[0][1]) != len(other.parts[0][1]):
            return 0.0
        pairs = list(zip(self.parts[0][1], other.parts[0][1], strict=True))
        return math.prod(map(min, pairs)) / math.prod(map(max, pairs))


def inherited(text: str, parent_text: str, parent: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """Return the weights of a network that inherits from its parent.

    Args:
        text: The network.
        parent_text: The parent's network.
        parent: Weights of the parent, float32 [D'].
        initial: Initial weights of the network, float32 [D]; weights that are not inherited keep them.

    Returns:
        float32 [D].
    """
    theta = initial.copy()
    for own, other in _aligned(_blocks(text), _blocks(parent_text)):
        for (to, shape), (origin, parent_shape) in zip(own.parts, other.parts, strict=False):
            to_slices, from_slices = [], []
            for axis, (new, old) in enumerate(zip(shape, parent_shape, strict=True)):
                count, centered = min(new, old), own.kind == "conv" and len(shape) == 4 and axis < 2
                first, before = ((new - count) // 2, (old - count) // 2) if centered else (0, 0)
                to_slices.append(slice(first, first + count))
                from_slices.append(slice(before, before + count))
            values = parent[origin : origin + math.prod(parent_shape)].reshape(parent_shape)
            theta[to : to + math.prod(shape)].reshape(shape)[tuple(to_slices)] = values[tuple(from_slices)]
    return theta


def cost(text: str) -> Cost:
    """Return the cost of a network.

    Args:
        text: The network.
    """
    blocks = _blocks(text)
    weights = sum(math.prod(shape) for block in blocks for _, shape in block.parts)
    products = sum(block.positions * _products(block) for block in blocks)
    return Cost(weights, products)


def _products(block: _Block) -> int:
    matrices = block.parts[:2] if block.kind == "lstm" else block.parts[:1] if block.kind != "bias" else ()
    return sum(math.prod(shape) for _, shape in matrices)


def _aligned(own: list[_Block], others: list[_Block]) -> list[tuple[_Block, _Block]]:
    """Return the pairs of layers, in order, that maximize the sum of their shares."""
    best = np.zeros((len(own) + 1, len(others) + 1))
    for i, block in enumerate(own):
        for j, other in enumerate(others):
            share = block.share(other)
            best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j], best[i, j] + share if share else 0.0)
    pairs, i, j = [], len(own), len(others)
    while i and j:
        share = own[i - 1].share(others[j - 1])
        if share and best[i, j] == best[i - 1, j - 1] + share:
            pairs.append((own[i - 1], others[j - 1]))
            i, j = i - 1, j - 1
        elif best[i, j] == best[i - 1, j]:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def _blocks(text: str) -> list[_Block]:
    """Return the layers that have weights; a bias belongs to the conv or dense layer before it."""
    offset, previous = 0, ""
    blocks: list[_Block] = []
    for (kind, *words), shape, output in walk(text):
        shapes: list[tuple[int, ...]] = []
        if kind == "conv":
            shapes = [(int(words[1]), int(words[2]), shape[2], int(words[0]))]
        elif kind == "dense":
            shapes = [(*shape, int(words[0]))]
        elif kind == "lstm":
            units = int(words[0])
            shapes = [(*shape, 4, units), (units, 4, units), (4, units)]
        elif kind == "graph":
            shapes = [(len(words) - 3,), (int(words[0]),)]  # edges, biases
        elif kind == "bias":
            shapes = [(shape[-1],)]
        parts = []
        for each in shapes:
            parts.append((offset, each))
            offset += math.prod(each)
        if kind == "bias" and previous in ("conv", "dense"):
            last = blocks.pop()
            parts = [*last.parts, *parts]
            blocks.append(_Block(last.kind, tuple(parts), last.positions))
        elif parts:
            blocks.append(_Block(kind, tuple(parts), math.prod(output[:-1]) if kind == "conv" else 1))
        previous = kind
    return blocks
