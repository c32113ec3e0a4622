"""A network's text and theta taken apart: each layer with its own weights, as custom_ops/networks/network.h says."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Layer:
    """kind: conv, dense, bias, relu, tanh or vbn; name: the kind and a number from 1, counted for each kind.

    kernel: float32 [height, width, channels, filters] of a conv, which also has a stride and a padding ("same" or
    "valid"), and [inputs, units] of a dense layer, whose input is flattened. bias: float32 [channels]; it is added to
    what the kernel makes. A bias layer has no kernel: it follows neither conv nor dense.
    mean, factor: float32 [channels] of a vbn layer, which makes (x - mean) * factor of x; None where they are unknown.
    """

    name: str
    kind: str
    kernel: np.ndarray | None = None
    bias: np.ndarray | None = None
    stride: int = 1
    padding: str = "valid"
    mean: np.ndarray | None = None
    factor: np.ndarray | None = None


@dataclass(frozen=True)
class Layers:
    """A network: layers, and dtype ("uint8", which is multiplied by 1/255, or "float32") and shape of its input.

    outputs: how many values it makes of an observation.
    """

    dtype: str
    shape: tuple[int, ...]
    outputs: int
    layers: tuple[Layer, ...]


def take_apart(text: str, theta: np.ndarray, statistics: np.ndarray | None = None) -> Layers:
    """The layers of a network that a population has accepted, theta float32 [D].

    statistics: float32 [S], of its vbn layers (native.Population.statistics); None where they are not known.
    ValueError: D or S does not fit.
    """
    (_, dtype, *dims), *lines = [line.split() for line in text.strip().rstrip(";").split(";")]
    shape = input_shape = tuple(map(int, dims))
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

    for kind, *words in lines:
        if kind == "bias" and layers and layers[-1].kernel is not None and layers[-1].bias is None:
            layers[-1] = replace(layers[-1], bias=take(shape[-1]))
            continue
        numbers[kind] += 1
        layer = Layer(f"{kind}_{numbers[kind]}", kind)
        if kind == "conv":
            filters, height, width, stride = map(int, words[:4])
            layer = replace(layer, kernel=take(height, width, shape[2], filters), stride=stride, padding=words[4])
            sides = shape[:2] if words[4] == "same" else (shape[0] - height + 1, shape[1] - width + 1)
            shape = (*(-(-side // stride) for side in sides), filters)
        elif kind == "dense":
            layer = replace(layer, kernel=take(math.prod(shape), int(words[0])))
            shape = (int(words[0]),)
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
    return Layers(dtype, input_shape, math.prod(shape), tuple(layers))
