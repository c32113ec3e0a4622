"""Which genomes are at hand as rows of weights, so that an offspring is one perturbation away from its parent.

A new parent is made from the longest prefix of its chain that is at hand: a mutation a generation, never the chain from
the start. Memory is bounded by the number of rows; when a parent's row is not needed for anything else, the child takes
it over in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from neuroevo.genome import Genome


@dataclass(frozen=True)
class Fill:
    """How to make a genome's weights: in row `row`, from row `source` (None: initial weights), by these mutations."""

    genome: Genome
    row: int
    source: int | None
    chain: tuple[tuple[int, float], ...]


class ParentRows:
    """Assigns rows [0, capacity) to genomes; the least recently needed genome makes room first."""

    def __init__(self, capacity: int):
        if capacity < 1:
            raise ValueError(f"number of parent rows is {capacity}, expected at least 1")
        self._capacity = capacity
        self._rows: dict[Genome, int] = {}  # ordered: least recently needed first
        self._free = list(range(capacity))

    def row(self, genome: Genome) -> int | None:
        """The row that holds the genome, or None."""
        return self._rows.get(genome)

    def source(self, genome: Genome) -> tuple[int | None, tuple[tuple[int, float], ...]]:
        """Row of the longest prefix of the genome that is at hand (None: start from initial weights), and the rest."""
        for length in range(len(genome.chain), -1, -1):
            row = self._rows.get(Genome(genome.base, genome.chain[:length], genome.network))
            if row is not None:
                return row, genome.chain[length:]
        return None, genome.chain

    def require(self, genomes: Iterable[Genome]) -> Iterable[Fill]:
        """Yields the fills, to be carried out in order, after which the genomes are at hand.

        When there are more genomes than rows, the last ones stay without a row.
        """
        needed = list(dict.fromkeys(genomes))[: self._capacity]
        for genome in needed:
            if genome in self._rows:
                self._rows[genome] = self._rows.pop(genome)  # now the most recently needed
        missing = [genome for genome in needed if genome not in self._rows]
        users = Counter(genome.parent for genome in missing)  # fills that want to start from this genome
        # Parents with a single new child first: the child takes its row, and the row count does not grow.
        missing.sort(key=lambda genome: users[genome.parent])
        keep = set(needed)
        for genome in missing:
            users[genome.parent] -= 1
            source, chain = self.source(genome)
            row = self._make_room(keep, users)
            self._rows[genome] = row
            yield Fill(genome, row, source, chain)

    def _make_room(self, keep: set[Genome], users: Counter) -> int:
        if self._free:
            return self._free.pop()
        candidates = [genome for genome in self._rows if genome not in keep]
        unused = (genome for genome in candidates if users[genome] == 0)
        return self._rows.pop(next(unused, candidates[0]))
