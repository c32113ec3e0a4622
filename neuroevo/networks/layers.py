"""Conversion of a network's text and theta to layers with weights (custom_ops/networks/network.h)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Layer:
    """One layer with its weights.

    Attributes:
        name: The kind and a number from 1, counted separately for each kind, such as "conv_1".
        kind: "conv", "dense", "lstm", "graph", "max_pool", "avg_pool", "layer_norm", "vbn", "bias", or an activation:
            "relu", "tanh", "silu", "gelu" or "leaky_relu".
        shape: Shape of the layer's input.
        kernel: Weights. conv: float32 [height, width, channels, filters]. dense, which flattens its input: float32
            [inputs, units]. lstm, which also flattens its input: float32 [inputs, 4 * units] for the gates i, f, g and
            o. graph: float32 [edges]. None for other kinds.
        recurrent_kernel: Recurrent weights of an lstm layer, float32 [units, 4 * units]; None for other kinds.
        bias: float32 [channels], or [units] for a graph layer, added to the output of the kernel. A layer of kind
            "bias" has no kernel: it is a bias that does not follow a conv or dense layer.
        edges: Start and end node of each edge of a graph layer, int64 [edges, 2]; None for other kinds.
        outputs: Number of outputs of a graph layer, its last units; 0 for other kinds.
        window: Height and width of a pool's windows.
        stride: Stride of a conv layer or a pool.
        padding: Padding of a conv layer or a pool, "same" or "valid".
        slope: Slope of a leaky_relu layer for negative inputs.
        mean: Mean of a vbn layer, which computes (x - mean) * factor, float32 [channels]; None if it is unknown.
        factor: Factor of a vbn layer, float32 [channels]; None if it is unknown.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    kernel: np.ndarray | None = None
    recurrent_kernel: np.ndarray | None = None
    bias: np.ndarray | None = None
    edges: np.ndarray | None = None
    outputs: int = 0
    window: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: str = "valid"
    slope: float = 0.0
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None


@dataclass(frozen=True)
class Layers:
    """Network split into layers.

    Attributes:
        dtype: Type of the input, "uint8", which the network multiplies by 1/255, or "float32".
        shape: Shape of the input.
        outputs: Number of outputs for one observation.
        layers: The layers in order.
    """

    dtype: str
    shape: tuple[int, ...]
    outputs: int
    layers: tuple[Layer, ...]

    @property
    def recurrent(self) -> bool:
        """Whether the network has lstm layers, and therefore a state."""
        return any(layer.kind == "lstm" for layer in self.layers)


def is_recurrent(text: str) -> bool:
    """Return whether a network has lstm layers, and therefore a state.

    Args:
        text: The network as text.
    """
    return any(line[0] == "lstm" for line in split_lines(text))


def output_size(text: str) -> int:
    """Return the number of outputs of a network for one observation.

    Args:
        text: The network as text.
    """
    *_, (_, _, shape) = walk(text)
    return math.prod(shape)


def unpack_weights(text: str, theta: np.ndarray, statistics: np.ndarray | None = None) -> Layers:
    """Split a network into layers, each with its own weights.

    Args:
        text: A valid network as text.
        theta: Weights of the network, float32 [D].
        statistics: Statistics of the vbn layers, float32 [S] (Population.statistics); None if they are unknown.

    Returns:
        The layers; their arrays are views of theta and statistics.

    Raises:
        ValueError: D or S does not fit the network.
    """
    (_, dtype, *dims), *_ = split_lines(text)
    layers: list[Layer] = []
    numbers: Counter[str] = Counter()
    used = known = 0

    def take(*weights: int) -> np.ndarray:
        nonlocal used
        used += math.prod(weights)
        if used > len(theta):
            raise ValueError(f"theta has {len(theta):,} weights, too few for the network '{text}'")
        return theta[used - math.prod(weights) : used].reshape(weights)

    def next_statistics(channels: int) -> np.ndarray | None:
        nonlocal known
        known += channels
        return None if statistics is None else statistics[known - channels : known]

    for (kind, *words), shape, _ in walk(text):
        if kind == "bias" and layers and layers[-1].kernel is not None and layers[-1].bias is None:
            layers[-1] = replace(layers[-1], bias=take(shape[-1]))
            continue
        numbers[kind] += 1
        layer = Layer(f"{kind}_{numbers[kind]}", kind, shape)
        if kind == "conv":
            filters, height, width, stride = map(int, words[:4])
            kernel = take(height, width, shape[2], filters)
            layer = replace(layer, kernel=kernel, stride=stride, padding=words[4])
        elif kind in ("max_pool", "avg_pool"):
            height, width, stride = map(int, words[:3])
            layer = replace(layer, window=(height, width), stride=stride, padding=words[3])
        elif kind == "dense":
            layer = replace(layer, kernel=take(math.prod(shape), int(words[0])))
        elif kind == "lstm":
            inputs, units = math.prod(shape), int(words[0])
            kernel, recurrent = np.split(take(inputs + units, 4 * units), [inputs])
            layer = replace(layer, kernel=kernel, recurrent_kernel=recurrent, bias=take(4 * units))
        elif kind == "graph":
            edges = [edge.split(">") for edge in words[3:]]
            kernel, bias = take(len(edges)), take(int(words[0]))
            layer = replace(layer, kernel=kernel, bias=bias, outputs=int(words[1]))
            pairs = [[int(start), int(end)] for start, end in edges]
            layer = replace(layer, edges=np.array(pairs, np.int64).reshape(-1, 2))
        elif kind == "leaky_relu":
            layer = replace(layer, slope=float(words[0]))
        elif kind == "bias":
            layer = replace(layer, bias=take(shape[-1]))
        elif kind == "vbn":
            mean = next_statistics(shape[-1])
            layer = replace(layer, mean=mean, factor=next_statistics(shape[-1]))
        layers.append(layer)
    if used != len(theta):
        raise ValueError(f"theta has {len(theta):,} weights, the network '{text}' takes {used:,}")
    if statistics is not None and known != len(statistics):
        raise ValueError(f"statistics has {len(statistics):,} numbers, the network '{text}' takes {known:,}")
    return Layers(dtype, tuple(map(int, dims)), output_size(text), tuple(layers))


def split_lines(text: str) -> list[list[str]]:
    """Return the words of each line of a network's text, starting with the input's line."""
    return [line.split() for line in text.strip().rstrip(";").split(";")]


def walk(text: str) -> Iterator[tuple[list[str], tuple[int, ...], tuple[int, ...]]]:
    """Yield the words, the input shape and the output shape of each layer of a network."""
    (_, _, *dims), *lines = split_lines(text)
    shape = tuple(map(int, dims))
    for line in lines:
        output = _output_shape(line, shape)
        yield line, shape, output
        shape = output


def _output_shape(line: list[str], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a layer's output.

    Args:
        line: The words of the layer.
        shape: Shape of the layer's input.
    """
    kind, *words = line
    if kind in ("dense", "lstm"):
        return (int(words[0]),)
    if kind == "graph":
        return (int(words[1]),)
    if kind not in ("conv", "max_pool", "avg_pool"):
        return shape
    height, width, stride = map(int, words[-5:-2] if kind == "conv" else words[:3])
    padding = words[-2] if kind == "conv" else words[3]
    sides = shape[:2] if padding == "same" else (shape[0] - height + 1, shape[1] - width + 1)
    return (*(-(-side // stride) for side in sides), int(words[0]) if kind == "conv" else shape[2])
