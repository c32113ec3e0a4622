"""The episodes of a batch as one table of arrays: each machine fetches it once, and work is indices into it.

Genomes share most of their chains, so the table has the tree that the chains are paths in: a mutation names the
mutation before it, and is there once however many genomes have it. A generation of 1,000 genomes from 20 parents of
200 mutations takes some 100 bytes a genome. The vectors of centers are not in the table, only their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.core.episode import Episode
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer

Chain = tuple[tuple[int, float], ...]  # mutations: seeds and scales


@dataclass(frozen=True, eq=False)
class EpisodeTable:
    """E episodes, whose genomes are nodes of a tree with R roots and M mutations.

    A node is a number: m >= 0 is the genome that ends with mutation m, -1 - r the one that is root r and nothing more.

    Attributes:
        root_seeds: int64 [R], of the initial weights; 0 for a root that is a center.
        root_centers: int32 [R], index into `centers`, or -1.
        root_networks: int32 [R].
        centers: Names of the centers.
        parents: int32 [M], the node that each mutation follows, a mutation before it or a root.
        seeds: int64 [M], of the mutations' noise.
        scales: float32 [M].
        shared: int32 [P], nodes that several of the episodes' genomes are children of.
        episode_nodes: int32 [E], the genomes.
        episode_ranks: int32 [E], of the last mutations of the episodes' genomes; [1] where they are all the same.
        episode_seeds: int64 [E].
        episode_steps: int64 [E], cut-offs in decisions; [1] where they are all the same.
        episode_normalizers: int32 [E], index into `normalizers`, or -1; [1] where they are all the same.
        normalizers: Those that episodes have.
    """

    root_seeds: np.ndarray
    root_centers: np.ndarray
    root_networks: np.ndarray
    centers: tuple[str, ...]
    parents: np.ndarray
    seeds: np.ndarray
    scales: np.ndarray
    shared: np.ndarray
    episode_nodes: np.ndarray
    episode_ranks: np.ndarray
    episode_seeds: np.ndarray
    episode_steps: np.ndarray
    episode_normalizers: np.ndarray
    normalizers: tuple[Normalizer, ...]

    def __len__(self) -> int:
        """E."""
        return len(self.episode_nodes)


def table_of(episodes: Sequence[Episode], network: int = 0) -> EpisodeTable:
    """Puts episodes into a table.

    Args:
        episodes: At least one.
        network: Which network of the table is network 0 of their genomes.
    """
    tree = _Tree()
    nodes = tree.nodes([episode.genome for episode in episodes])
    numbers: dict[Normalizer | None, int] = {None: -1}
    for episode in episodes:
        if episode.normalizer not in numbers:
            numbers[episode.normalizer] = len(numbers) - 1
    ranks = [episode.genome.rank for episode in episodes]
    children = Counter(tree.parents[node] for node, _ in set(zip(nodes, ranks, strict=True)) if node >= 0)
    return EpisodeTable(
        root_seeds=np.array([0 if isinstance(base, Center) else base for base, _ in tree.roots], np.int64),
        root_centers=np.array(tree.root_centers, np.int32),
        root_networks=np.array([network + own for _, own in tree.roots], np.int32),
        centers=tuple(tree.centers),
        parents=np.array(tree.parents, np.int32),
        seeds=np.array(tree.seeds, np.int64),
        scales=np.array(tree.scales, np.float32),
        shared=np.array([node for node, count in children.items() if count > 1], np.int32),
        episode_nodes=np.array(nodes, np.int32),
        episode_ranks=_once(ranks, np.int32),
        episode_seeds=np.array([episode.seed for episode in episodes], np.int64),
        episode_steps=_once([episode.max_steps for episode in episodes], np.int64),
        episode_normalizers=_once([numbers[episode.normalizer] for episode in episodes], np.int32),
        normalizers=tuple(normalizer for normalizer in numbers if normalizer is not None),
    )


class TableReader:
    """Makes genomes and episodes of a table's numbers.

    Args:
        table: The table.
        centers: The table's centers, in its order.
    """

    def __init__(self, table: EpisodeTable, centers: Sequence[Center] = ()):
        self.table = table
        self._centers = centers
        self._genomes: dict[int, Genome] = {}

    def genome(self, node: int) -> Genome:
        """The genome of a node, without a rank."""
        table, mutations, at = self.table, [], node
        while at >= 0 and at not in self._genomes:
            mutations.append((int(table.seeds[at]), float(table.scales[at])))
            at = int(table.parents[at])
        start = self._genomes.get(at) or self._root(-1 - at)
        genome = Genome(start.base, start.chain + tuple(reversed(mutations)), start.network)
        self._genomes[node] = genome
        return genome

    def episodes(self, indices: Iterable[int]) -> list[Episode]:
        """The episodes of these indices."""
        table = self.table
        steps = np.broadcast_to(table.episode_steps, len(table))
        normalizers = np.broadcast_to(table.episode_normalizers, len(table))
        ranks = np.broadcast_to(table.episode_ranks, len(table))
        return [
            Episode(
                self._parent_and_child(int(table.episode_nodes[i]), int(ranks[i])),
                int(table.episode_seeds[i]),
                int(steps[i]),
                None if normalizers[i] < 0 else table.normalizers[normalizers[i]],
            )
            for i in indices
        ]

    def shared_parents(self, indices: Iterable[int]) -> list[Genome]:
        """Genomes that these episodes' genomes are children of, as others of the table are too."""
        nodes = self.table.episode_nodes[np.fromiter(indices, np.int64)]
        parents = np.unique(self.table.parents[nodes[nodes >= 0]])
        return [self.genome(int(node)) for node in parents[np.isin(parents, self.table.shared)]]

    def _parent_and_child(self, node: int, rank: int) -> Genome:
        if node >= 0 and node not in self._genomes:
            self.genome(int(self.table.parents[node]))  # so that siblings share the walk to it
        genome = self.genome(node)
        return replace(genome, rank=rank) if rank else genome

    def _root(self, root: int) -> Genome:
        center = int(self.table.root_centers[root])
        base = int(self.table.root_seeds[root]) if center < 0 else self._centers[center]
        return Genome(base, (), int(self.table.root_networks[root]))


class _Tree:
    """Roots and mutations, each once."""

    def __init__(self) -> None:
        self.roots: dict[tuple[int | Center, int], int] = {}
        self.root_centers: list[int] = []
        self.centers: dict[str, int] = {}
        self.parents: list[int] = []
        self.seeds: list[int] = []
        self.scales: list[float] = []
        self._children: dict[tuple[int, tuple[int, float]], int] = {}
        self._prefixes: dict[int, tuple[int, Chain, int]] = {}  # root, chain and node, by id() of the last mutation

    def nodes(self, genomes: Sequence[Genome]) -> list[int]:
        """The node of each genome."""
        known: dict[int, int] = {}  # by id(): cheap, and the genomes stay alive meanwhile
        nodes = []
        for genome in genomes:
            node = known.get(id(genome))
            if node is None:
                node = known[id(genome)] = self._node(genome)
            nodes.append(node)
        return nodes

    def _node(self, genome: Genome) -> int:
        root = self.roots.get((genome.base, genome.network))
        if root is None:
            root = self.roots[genome.base, genome.network] = len(self.roots)
            name = genome.base.name if isinstance(genome.base, Center) else None
            self.root_centers.append(-1 if name is None else self.centers.setdefault(name, len(self.centers)))
        if not genome.chain:
            return -1 - root
        prefix, parent = genome.chain[:-1], -1 - root
        # Siblings need no second walk: they mostly have the very tuples of their parent, which compare fast.
        known = self._prefixes.get(id(prefix[-1])) if prefix else None
        if known is not None and known[0] == root and known[1] == prefix:
            parent = known[2]
        else:
            for mutation in prefix:
                parent = self._child(parent, mutation)
            if prefix:
                self._prefixes[id(prefix[-1])] = root, prefix, parent
        return self._child(parent, genome.chain[-1])

    def _child(self, parent: int, mutation: tuple[int, float]) -> int:
        node = self._children.setdefault((parent, mutation), len(self.parents))
        if node == len(self.parents):
            self.parents.append(parent)
            self.seeds.append(mutation[0])
            self.scales.append(mutation[1])
        return node


def _once(values: Sequence[int], dtype: type) -> np.ndarray:
    """The values [E], or one of them, [1], where all are the same."""
    array: np.ndarray = np.array(values, dtype)
    return array[:1] if len(array) and (array == array[0]).all() else array
