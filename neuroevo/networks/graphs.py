"""Make the text and the weights of a graph layer from nodes and edges (custom_ops/networks/network.h)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np


def graph_layer(
    inputs: int, outputs: int, biases: Mapping[int, float], edges: Mapping[tuple[int, int], float]
) -> tuple[str, np.ndarray]:
    """Make a graph layer from the nodes from which an output is reachable.

    Hidden nodes are sorted by depth, the length of the longest path to them, and then by number.

    Args:
        inputs: Number of inputs, whose nodes are 0, 1 and so on.
        outputs: Number of outputs, whose nodes follow.
        biases: Bias of each node that is not an input, indexed by node.
        edges: Weight of each edge, indexed by its start and end node.

    Returns:
        The layer as text, and its weights, float32 [D].

    Raises:
        ValueError: The edges have a cycle.
    """
    starts = defaultdict(list)
    for start, end in edges:
        starts[end].append(start)
    last = range(inputs, inputs + outputs)
    depths = _depths(last, starts)
    hidden = sorted((node for node in depths if node >= last.stop), key=lambda node: (depths[node], node))
    units = [*hidden, *last]
    places = {node: place for place, node in enumerate([*range(inputs), *units])}
    words, theta = [], []
    for end in units:
        for start in sorted(starts[end], key=places.__getitem__):
            words.append(f" {places[start]}>{places[end]}")
            theta.append(edges[start, end])
    theta.extend(biases[node] for node in units)
    return f"graph {len(units)} {outputs} 1.0{''.join(words)}", np.array(theta, np.float32)


def _depths(outputs: Sequence[int], starts: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the length of the longest path to each node from which an output is reachable. ValueError: a cycle."""
    depths: dict[int, int] = {}
    opened: set[int] = set()
    stack = [(output, False) for output in outputs]
    while stack:
        node, expanded = stack.pop()
        before = starts.get(node, ())
        if expanded:
            depths[node] = 1 + max((depths[start] for start in before), default=-1)
        elif node not in depths:
            if node in opened:
                raise ValueError(f"the edges have a cycle through node {node}")
            opened.add(node)
            stack.append((node, True))
            stack.extend((start, False) for start in before)
    return depths
