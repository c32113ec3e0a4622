"""Genes of NEAT: nodes and edges, their mutations, and the networks that they encode.

Node numbers are global to a run: inputs come first, then outputs, then hidden nodes in the order of their creation. The
innovation number of an edge is its pair of nodes. A hidden node splits an edge, and genomes that split the same edge
get the same node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.core.arrays import Checked, check_array
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Draws
from neuroevo.networks.graphs import graph_layer
from neuroevo.networks.layers import output_size, split_lines, unpack_weights

_TRIES = 20  # attempts to find two nodes without an edge between them
_SMALL = 20  # for genomes with fewer edges, the distance uses the number of differing edges instead of their share


@dataclass(frozen=True)
class Shape:
    """Inputs and outputs, which all networks of a run share.

    Attributes:
        input: The network text's line that describes the input.
        inputs: Number of inputs.
        outputs: Number of outputs.
        bounded: Whether a tanh follows the outputs, as for continuous actions.
    """

    input: str
    inputs: int
    outputs: int
    bounded: bool

    @classmethod
    def of(cls, text: str) -> Shape:
        """Return the shape of a configured network."""
        (_, *words), *lines = split_lines(text)
        return cls(
            text.split(";")[0].strip(),
            int(np.prod([int(each) for each in words[1:]])),
            output_size(text),
            lines[-1] == ["tanh"],
        )


@dataclass(frozen=True, eq=False)
class Genes:
    """Genes of one genome.

    Attributes:
        nodes: Hidden nodes, ascending, int64 [H].
        biases: Biases of the outputs, then of the hidden nodes, float32 [outputs + H].
        edges: Start and end node of each edge, in ascending order, int64 [E, 2].
        weights: Weights of the edges, float32 [E].
        enabled: Whether each edge is part of the network, bool [E].
    """

    nodes: np.ndarray
    biases: np.ndarray
    edges: np.ndarray
    weights: np.ndarray
    enabled: np.ndarray

    @property
    def innovations(self) -> np.ndarray:
        """Return the innovation numbers of the edges, ascending, int64 [E]."""
        return (self.edges[:, 0] << 32) | self.edges[:, 1]


@dataclass(frozen=True, eq=False)
class GeneTable(Checked):
    """Genes of N genomes as concatenated arrays, for storage in a state.

    Attributes:
        sizes: Numbers of hidden nodes and of edges of each genome, int64 [N, 2].
        nodes, biases, edges, weights, enabled: The arrays of Genes, concatenated over the genomes.
    """

    sizes: np.ndarray
    nodes: np.ndarray
    biases: np.ndarray
    edges: np.ndarray
    weights: np.ndarray
    enabled: np.ndarray

    @classmethod
    def of(cls, genes: Sequence[Genes]) -> GeneTable:
        """Concatenate the genes of one or more genomes."""
        joined = (np.concatenate([getattr(each, name) for each in genes]) for name in _ARRAYS)
        return cls(np.array([[len(each.nodes), len(each.edges)] for each in genes], np.int64), *joined)

    def check_state(self) -> None:
        """Check shapes. ValueError: an array does not fit the sizes."""
        check_array("sizes", self.sizes, [None, 2], np.int64)
        hidden, edges = self.sizes.sum(axis=0).tolist()
        outputs, rest = divmod(len(self.biases) - hidden, len(self.sizes))
        if self.sizes.min() < 0 or outputs < 1 or rest:
            raise ValueError(f"there are {len(self.biases)} biases, which do not fit {hidden} hidden nodes")
        check_array("nodes", self.nodes, [hidden], np.int64)
        check_array("biases", self.biases, [len(self.biases)], np.float32)
        check_array("edges", self.edges, [edges, 2], np.int64)
        check_array("weights", self.weights, [edges], np.float32)
        check_array("enabled", self.enabled, [edges], np.bool_)

    def split(self) -> list[Genes]:
        """Return the genes of each genome."""
        hidden, edges = np.cumsum(self.sizes[:-1], axis=0).T
        outputs = (len(self.biases) - len(self.nodes)) // len(self.sizes)
        ends = (hidden, hidden + outputs * np.arange(1, len(self.sizes)), edges, edges, edges)
        parts = (np.split(getattr(self, name), end) for name, end in zip(_ARRAYS, ends, strict=True))
        return [Genes(*each) for each in zip(*parts, strict=True)]


_ARRAYS = ("nodes", "biases", "edges", "weights", "enabled")


class Splits:
    """Table of a run's hidden nodes, indexed by the edges that they split.

    Args:
        first: Number of the first hidden node.
        edges: The edge that each node splits, int64 [S, 2]; -1 for nodes from another run.
    """

    def __init__(self, first: int, edges: np.ndarray):
        self._nodes: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._first, self._edges = first, [(int(a), int(b)) for a, b in edges]
        for node, edge in enumerate(self._edges, first):
            self._nodes[edge].append(node)

    @property
    def edges(self) -> np.ndarray:
        """Return the edge that each node splits, int64 [S, 2]."""
        return np.array(self._edges, np.int64).reshape(-1, 2)

    def node(self, edge: tuple[int, int], nodes: Collection[int]) -> int:
        """Return the first node that splits an edge and is not in `nodes`, or a new node."""
        for node in self._nodes.get(edge, []):
            if node not in nodes:
                return node
        self._edges.append(edge)
        self._nodes[edge].append(self._first + len(self._edges) - 1)
        return self._nodes[edge][-1]


def initial(shape: Shape, deviation: float, draws: Draws) -> Genes:
    """Make genes without hidden nodes, in which each input is connected to each output."""
    edges = np.indices((shape.inputs, shape.outputs)).reshape(2, -1).T + [0, shape.inputs]
    values = (deviation * draws.noise(len(edges) + shape.outputs)).astype(np.float32)
    weights, biases = np.split(values, [len(edges)])
    return Genes(np.zeros(0, np.int64), biases, edges.astype(np.int64), weights, np.ones(len(edges), np.bool_))


def of_network(text: str, theta: np.ndarray, shape: Shape, first: int) -> Genes:
    """Decode the genes of a network that expressed() made.

    Args:
        text: The network, whose first layer is a graph.
        theta: Weights of the network, float32 [D].
        shape: Inputs and outputs of the network.
        first: Number to assign to the first hidden node.
    """
    layer = unpack_weights(text, theta).layers[0]
    assert layer.edges is not None and layer.kernel is not None and layer.bias is not None
    hidden = len(layer.bias) - shape.outputs
    outputs = shape.inputs + np.arange(shape.outputs)
    numbers = np.concatenate([np.arange(shape.inputs), first + np.arange(hidden), outputs])
    biases = np.roll(layer.bias, shape.outputs)
    return _sorted(
        numbers[shape.inputs : shape.inputs + hidden],
        biases,
        numbers[layer.edges],
        layer.kernel.copy(),
        np.ones(len(layer.edges), np.bool_),
    )


def crossed(fitter: Genes, other: Genes, draws: Draws, disable: float) -> Genes:
    """Cross two genomes; genes that only one parent has are inherited from the fitter parent.

    Args:
        fitter: The parent with the higher fitness.
        other: The other parent.
        draws: Random numbers.
        disable: Probability that an edge that is disabled in one of the parents is disabled in the child.
    """
    own, theirs = _matching(fitter.innovations, other.innovations)
    nodes, their_nodes = _matching(fitter.nodes, other.nodes)
    outputs = len(fitter.biases) - len(fitter.nodes)
    own_biases = np.concatenate([np.arange(outputs), outputs + nodes])
    their_biases = np.concatenate([np.arange(outputs), outputs + their_nodes])
    weights, biases, enabled = fitter.weights.copy(), fitter.biases.copy(), fitter.enabled.copy()
    weights[own] = np.where(draws.uniforms(len(own)) < 0.5, fitter.weights[own], other.weights[theirs])
    biases[own_biases] = np.where(
        draws.uniforms(len(own_biases)) < 0.5, fitter.biases[own_biases], other.biases[their_biases]
    )
    both = fitter.enabled[own] & other.enabled[theirs]
    enabled[own] = both | (draws.uniforms(len(own)) >= disable)
    return replace(fitter, weights=weights, biases=biases, enabled=enabled)


def distance(a: Genes, b: Genes, weight_coefficient: float) -> float:
    """Compute the compatibility distance of two genomes from differing edges and the mean difference of weights."""
    own, theirs = _matching(a.innovations, b.innovations)
    nodes, their_nodes = _matching(a.nodes, b.nodes)
    outputs = len(a.biases) - len(a.nodes)
    differences = [
        a.weights[own] - b.weights[theirs],
        a.biases[:outputs] - b.biases[:outputs],
        a.biases[outputs + nodes] - b.biases[outputs + their_nodes],
    ]
    largest = max(len(a.edges), len(b.edges))
    differing = len(a.edges) + len(b.edges) - 2 * len(own)
    mean = float(np.mean(np.abs(np.concatenate(differences)), dtype=np.float64))
    return differing / (largest if largest >= _SMALL else 1) + weight_coefficient * mean


def with_node(genes: Genes, splits: Splits, draws: Draws) -> Genes:
    """Split an enabled edge: the edge to the new node has weight 1, the edge from it the old weight."""
    possible = np.flatnonzero(genes.enabled)
    if not len(possible):
        return genes
    split = possible[draws.index(len(possible))]
    start, end = genes.edges[split].tolist()
    node = splits.node((start, end), set(genes.nodes.tolist()))
    enabled = genes.enabled.copy()
    enabled[split] = False
    return _sorted(
        np.append(genes.nodes, node),
        np.append(genes.biases, np.float32(0)),
        np.concatenate([genes.edges, [[start, node], [node, end]]]),
        np.append(genes.weights, [np.float32(1), genes.weights[split]]),
        np.append(enabled, [True, True]),
    )


def with_edge(genes: Genes, shape: Shape, deviation: float, draws: Draws) -> Genes:
    """Connect two nodes without making a cycle, or enable the edge between them."""
    inputs, outputs = range(shape.inputs), range(shape.inputs, shape.inputs + shape.outputs)
    starts, ends = [*inputs, *genes.nodes.tolist()], [*outputs, *genes.nodes.tolist()]
    known = {(start, end): i for i, (start, end) in enumerate(genes.edges.tolist())}
    following = defaultdict(list)
    for start, end in known:
        following[start].append(end)
    for _ in range(_TRIES):
        start, end = starts[draws.index(len(starts))], ends[draws.index(len(ends))]
        at = known.get((start, end))
        if at is not None and not genes.enabled[at]:
            enabled = genes.enabled.copy()
            enabled[at] = True
            return replace(genes, enabled=enabled)
        if at is None and start not in _reachable(end, following):
            weights = np.append(genes.weights, np.float32(deviation * draws.noise(1)[0]))
            edges = np.concatenate([genes.edges, [[start, end]]])
            return _sorted(genes.nodes, genes.biases, edges, weights, np.append(genes.enabled, True))
    return genes


def expressed(genes: Genes, shape: Shape) -> Genome:
    """Return the genome whose network has the enabled edges. ValueError: the genes have a cycle."""
    enabled = zip(map(tuple, genes.edges[genes.enabled].tolist()), genes.weights[genes.enabled], strict=True)
    nodes = [*range(shape.inputs, shape.inputs + shape.outputs), *genes.nodes.tolist()]
    biases = dict(zip(nodes, genes.biases, strict=True))
    layer, theta = graph_layer(shape.inputs, shape.outputs, biases, dict(enabled))
    return Genome(Center(theta), network=f"{shape.input}; {layer}" + ("; tanh" if shape.bounded else ""))


def _reachable(start: int, following: dict[int, list[int]]) -> set[int]:
    """Return the set of a node and all nodes that are reachable from it."""
    reached, stack = {start}, [start]
    while stack:
        for node in following.get(stack.pop(), []):
            if node not in reached:
                reached.add(node)
                stack.append(node)
    return reached


def _matching(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices in two ascending arrays of the numbers that both contain."""
    _, own, theirs = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return own, theirs


def _sorted(
    nodes: np.ndarray, biases: np.ndarray, edges: np.ndarray, weights: np.ndarray, enabled: np.ndarray
) -> Genes:
    """Return genes with nodes and edges in ascending order; the biases of the outputs come first."""
    outputs, order = len(biases) - len(nodes), np.argsort(nodes, kind="stable")
    biases = np.concatenate([biases[:outputs], biases[outputs:][order]])
    by_edge = np.lexsort((edges[:, 1], edges[:, 0]))
    return Genes(nodes[order], biases, edges[by_edge], weights[by_edge], enabled[by_edge])
