"""Table of a batch's episodes as arrays: each machine fetches the table once and receives work as indices into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.core.episode import Episode
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.tree import Tree, TreeReader, encode


@dataclass(frozen=True, eq=False)
class EpisodeTable:
    """Table of E episodes.

    Attributes:
        tree: Tree of their genomes.
        shared: Nodes with several children among the genomes, int32 [P].
        episode_nodes: Node of each episode's genome, int32 [E].
        episode_seeds: Seed of each episode, int64 [E].
        episode_steps: Maximal number of steps of each episode, int64 [E]; [1] if all are equal.
        episode_normalizers: Index of each normalizer in `normalizers`, or -1, int32 [E]; [1] if all are equal.
        normalizers: The normalizers of the episodes.
    """

    tree: Tree
    shared: np.ndarray
    episode_nodes: np.ndarray
    episode_seeds: np.ndarray
    episode_steps: np.ndarray
    episode_normalizers: np.ndarray
    normalizers: tuple[Normalizer, ...]

    def __len__(self) -> int:
        """Return the number of episodes, E."""
        return len(self.episode_nodes)


def table_of(episodes: Sequence[Episode]) -> EpisodeTable:
    """Encode episodes as a table.

    Args:
        episodes: The episodes, at least one.
    """
    tree, nodes = encode(episode.genome for episode in episodes)
    numbers: dict[Normalizer | None, int] = {None: -1}
    for episode in episodes:
        if episode.normalizer not in numbers:
            numbers[episode.normalizer] = len(numbers) - 1
    children = Counter(tree.parents[np.unique(nodes[nodes >= 0])].tolist())
    return EpisodeTable(
        tree=tree,
        shared=np.array([node for node, count in children.items() if count > 1], np.int32),
        episode_nodes=nodes,
        episode_seeds=np.array([episode.seed for episode in episodes], np.int64),
        episode_steps=_once([episode.max_steps for episode in episodes], np.int64),
        episode_normalizers=_once([numbers[episode.normalizer] for episode in episodes], np.int32),
        normalizers=tuple(normalizer for normalizer in numbers if normalizer is not None),
    )


class TableReader:
    """Decoder of a table's genomes and episodes."""

    def __init__(self, table: EpisodeTable, centers: Sequence[Center] | None = None):
        """Prepare to decode a table.

        Args:
            table: The table.
            centers: Centers of the table's tree with their weights, in the tree's order; None: the tree has weights.
        """
        self.table = table
        self._tree = TreeReader(table.tree if centers is None else replace(table.tree, centers=tuple(centers)))

    def episodes(self, indices: Iterable[int]) -> list[Episode]:
        """Return the episodes at these indices."""
        table = self.table
        steps = np.broadcast_to(table.episode_steps, len(table))
        normalizers = np.broadcast_to(table.episode_normalizers, len(table))
        return [
            Episode(
                self._tree.genome(int(table.episode_nodes[i])),
                int(table.episode_seeds[i]),
                int(steps[i]),
                None if normalizers[i] < 0 else table.normalizers[normalizers[i]],
            )
            for i in indices
        ]

    def shared_parents(self, indices: Iterable[int]) -> list[Genome]:
        """Return those parents of these episodes' genomes that have several children in the table."""
        nodes = self.table.episode_nodes[np.fromiter(indices, np.int64)]
        parents = np.unique(self.table.tree.parents[nodes[nodes >= 0]])
        return [self._tree.genome(int(node)) for node in parents[np.isin(parents, self.table.shared)]]


def _once(values: Sequence[int], dtype: type) -> np.ndarray:
    """Return the values as an array [E], or [1] if all are equal."""
    array: np.ndarray = np.array(values, dtype)
    return array[:1] if len(array) and (array == array[0]).all() else array
