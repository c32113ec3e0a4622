"""Mutations of a network's architecture, which define the neighborhood in the search space of evolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from neuroevo.networks.grafting import cost
from neuroevo.networks.layers import split_lines, walk

_WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
_KERNELS = (1, 2, 3, 4, 5, 8)
_STRIDES = (1, 2, 4)
ACTIVATIONS = ("relu", "tanh", "silu", "gelu")
_MAIN = ("conv", "dense", "lstm")  # kinds of lines that start a layer
_MOST_INPUTS = 1 << 15  # inputs of a unit; integer networks support sums of at most 33,155 products


@dataclass(frozen=True)
class ChangeLimits:
    """Limits of the networks that changed() may return.

    Attributes:
        weights: Maximum number of weights.
        layers: Maximum number of hidden layers with weights.
        units: Maximum number of units in all lstm layers; 0 allows no lstm layers.
        activations: Activations that may follow a layer.
    """

    weights: int
    layers: int
    units: int
    activations: tuple[str, ...]


def changed(text: str, limits: ChangeLimits, pick: Callable[[int], int]) -> str:
    """Return a network that differs from the given network by one random change.

    The change adds, removes, widens or narrows a hidden layer, replaces its kernel, stride or activation, or makes it
    recurrent or not. All possible kinds of changes are equally likely, and so are all changes of one kind.

    Args:
        text: The network. Its output layer does not change.
        limits: Limits of the result.
        pick: Function of n that draws an integer in [0, n).

    Returns:
        The text of the new network; the given one if no change is possible.
    """
    network = _split(text)
    kinds = [list(dict.fromkeys(make(network, limits))) for make in _CHANGES]
    while kinds := [each for each in kinds if each]:
        chosen = kinds[pick(len(kinds))]
        found = str(chosen.pop(pick(len(chosen))))
        if found != text and _fits(found, limits):
            return found
    return text


@dataclass(frozen=True)
class _Network:
    """Network split into input, hidden layers and output layer. Each hidden layer starts with its main line."""

    first: str
    hidden: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join([self.first, *(line for layer in self.hidden for line in layer), *self.last])

    def having(self, place: int, *layers: tuple[str, ...], without: int = 1) -> _Network:
        """Return the network with `without` hidden layers from index `place` on replaced by `layers`."""
        return _Network(self.first, (*self.hidden[:place], *layers, *self.hidden[place + without :]), self.last)

    def is_image(self, place: int) -> bool:
        """Return whether the input of the hidden layer at index `place` is an image."""
        read = sum(map(len, self.hidden[:place]))
        return len([shape for _, shape, _ in walk(str(self))][read]) == 3


def _split(text: str) -> _Network:
    first, *lines = [" ".join(words) for words in split_lines(text)]
    starts = [place for place, line in enumerate(lines) if line.split()[0] in _MAIN]
    output = starts[-1]
    layers: list[tuple[str, ...]] = []
    for line in lines[:output]:
        if line.split()[0] in _MAIN or not layers:
            layers.append((line,))
        else:
            layers[-1] = (*layers[-1], line)
    return _Network(first, tuple(layers), tuple(lines[output:]))


def _fits(text: str, limits: ChangeLimits) -> bool:
    lines = []
    for line, shape, output in walk(text):
        if min(output) < 1 or (line[0] in ("dense", "lstm") and math.prod(shape) > _MOST_INPUTS):
            return False
        lines.append(line)
    units = sum(int(line[1]) for line in lines if line[0] == "lstm")
    layers = sum(line[0] in _MAIN for line in lines) - 1
    return cost(text).weights <= limits.weights and layers <= limits.layers and units <= limits.units


def _added(network: _Network, limits: ChangeLimits) -> Iterator[_Network]:
    for place in range(len(network.hidden) + 1):
        for width, activation in ((w, a) for w in _WIDTHS for a in limits.activations):
            if network.is_image(place):
                yield network.having(place, (f"conv {width} 3 3 1 same 1.0", "bias", activation), without=0)
            if all(each[0].split()[0] != "conv" for each in network.hidden[place:]):
                yield network.having(place, (f"dense {width} 1.0", "bias", activation), without=0)


def _removed(network: _Network, _: ChangeLimits) -> Iterator[_Network]:
    if len(network.hidden) > 1:
        yield from (network.having(place) for place in range(len(network.hidden)))


def _resized(network: _Network, _: ChangeLimits) -> Iterator[_Network]:
    for place, (main, *rest) in enumerate(network.hidden):
        kind, width, *words = main.split()
        near = sorted(_WIDTHS, key=lambda each: (abs(math.log(each / int(width))), each))
        for other in [each for each in near if each != int(width)][:2] if kind in _MAIN else []:
            yield network.having(place, (" ".join([kind, str(other), *words]), *rest))


def _with_kernel(network: _Network, _: ChangeLimits) -> Iterator[_Network]:
    for place, (main, *rest) in enumerate(network.hidden):
        kind, width, *words = main.split()
        for size in _KERNELS if kind == "conv" else ():
            yield network.having(place, (" ".join([kind, width, str(size), str(size), *words[2:]]), *rest))


def _with_stride(network: _Network, _: ChangeLimits) -> Iterator[_Network]:
    for place, (main, *rest) in enumerate(network.hidden):
        kind, *words = main.split()
        for stride in _STRIDES if kind == "conv" else ():
            yield network.having(place, (" ".join([kind, *words[:3], str(stride), *words[4:]]), *rest))


def _with_activation(network: _Network, limits: ChangeLimits) -> Iterator[_Network]:
    for place, layer in enumerate(network.hidden):
        if layer[-1] in ACTIVATIONS:
            yield from (network.having(place, (*layer[:-1], each)) for each in limits.activations if each != layer[-1])


def _with_memory(network: _Network, limits: ChangeLimits) -> Iterator[_Network]:
    for place, (main, *rest) in enumerate(network.hidden):
        kind, width, *words = main.split()
        if kind == "dense" and limits.units:
            yield network.having(place, (f"lstm {min(int(width), limits.units)} {words[-1]}",))
        elif kind == "lstm" and not rest:
            yield network.having(place, (f"dense {width} {words[-1]}", "bias", limits.activations[0]))


_CHANGES = (_added, _removed, _resized, _with_kernel, _with_stride, _with_activation, _with_memory)
