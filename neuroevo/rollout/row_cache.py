"""Cache of rows of weights, so that an offspring needs a single perturbation of its parent's row.

A missing genome is computed from its nearest cached ancestor: one mutation per generation, never the whole line.
Missing genomes with common uncached ancestors share the work: the ancestor at which their lines branch is computed
once. When all rows are in use, the genome that saves the least work is evicted, aged by GreedyDual (Young 1994).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome, Kind, Mutation


@dataclass(frozen=True)
class Fill:
    """Instructions for computing a genome's weights.

    Attributes:
        genome: The genome.
        row: Row to fill.
        source: Row of an ancestor to start from; None to start from the root.
        mutations: Mutations to apply, in order.
    """

    genome: Genome
    row: int
    source: int | None
    mutations: Sequence[Mutation]


@dataclass
class _Cached:
    """Cached row and its priority; the lowest priority is evicted first."""

    row: int
    work: int
    priority: int
    network: int | str


class RowCache:
    """Assignment of rows [0, capacity) to genomes."""

    def __init__(self, capacity: int):
        """Create an empty cache.

        Args:
            capacity: Number of rows.
        """
        if capacity < 1:
            raise ValueError(f"number of parent rows is {capacity}, expected at least 1")
        self._capacity = capacity
        self._cached: dict[bytes, _Cached] = {}  # by digest: a genome would keep ancestors and dense vectors alive
        self._free = list(range(capacity))
        self._age = 0  # priority of the last evicted genome

    def row(self, genome: Genome) -> int | None:
        """Return the row that holds the genome, or None."""
        cached = self._cached.get(genome.digest)
        return None if cached is None else cached.row

    def drop(self, network: int) -> None:
        """Remove the genomes of a network from the cache."""
        for digest in [digest for digest, cached in self._cached.items() if cached.network == network]:
            self._free.append(self._cached.pop(digest).row)

    def source(self, genome: Genome) -> tuple[int | None, Sequence[Mutation]]:
        """Return the row of the nearest cached ancestor (None: start from the root), and the mutations after it."""
        mutations: list[Mutation] = []
        for each in genome.line():
            cached = self._cached.get(each.digest)
            if cached is not None:
                return cached.row, mutations[::-1]
            if each.mutation is not None:
                mutations.append(each.mutation)
        return None, mutations[::-1]

    def require(self, genomes: Iterable[Genome], in_use: Collection[int] = ()) -> Iterable[Fill]:
        """Yield the fills that the caller must perform, in order, to cache the genomes.

        If there are more genomes than rows, some genomes get no row.

        Args:
            genomes: The genomes to cache.
            in_use: Rows that must not change.
        """
        needed = {genome.digest: genome for genome in dict.fromkeys(genomes)}
        for digest in list(needed)[self._capacity :]:
            del needed[digest]
        for digest in needed:
            if digest in self._cached:
                self._renew(self._cached[digest])
        plan = _plan([each for digest, each in needed.items() if digest not in self._cached], self._cached)
        users = Counter(None if start is None else start.digest for _, start in plan)  # remaining fills per start
        spare: list[tuple[int, bytes]] | None = None  # heap of genomes that may be evicted, once no row is free

        def may_go(digest: bytes) -> bool:
            return digest in self._cached and digest not in needed and self._cached[digest].row not in in_use

        for genome, start in plan:
            if start is None:
                users[None] -= 1
            else:
                users[start.digest] -= 1
                if spare is not None and not users[start.digest] and may_go(start.digest):
                    heappush(spare, (self._cached[start.digest].priority, start.digest))
            source, mutations = self.source(genome)  # differs from the plan if the planned start was evicted
            row = self._free.pop() if self._free else None
            if row is None:
                if spare is None:
                    spare = self._room(each for each in self._cached if may_go(each) and not users[each])
                row = self._evict(spare)
            if row is None:  # only the starts of remaining fills are left
                spare = self._room(filter(may_go, self._cached))
                row = self._evict(spare)
            if row is None:
                continue
            cached = self._cached[genome.digest] = _Cached(row, 1 + len(mutations), 0, genome.network)
            self._renew(cached)
            yield Fill(genome, row, source, mutations)

    def _room(self, digests: Iterable[bytes]) -> list[tuple[int, bytes]]:
        """Return a heap of priorities and digests."""
        spare = [(self._cached[digest].priority, digest) for digest in digests]
        heapify(spare)
        return spare

    def _evict(self, spare: list[tuple[int, bytes]]) -> int | None:
        """Evict the genome with the lowest priority and return its row; None if the heap is empty."""
        while spare:
            priority, digest = heappop(spare)
            if digest in self._cached:  # not evicted before
                self._age = priority
                return self._cached.pop(digest).row
        return None

    def _renew(self, cached: _Cached) -> None:
        cached.priority = self._age + cached.work


def needed_rows(genomes: Iterable[Genome], kind: Kind) -> list[Genome]:
    """Return the genomes that must be cached before a list of genomes can be played.

    Args:
        genomes: Genomes to play.
        kind: Kind of the lanes' mutations. If its weights are not materialized, the parents of such genomes must be
            cached, and all other genomes are played from their cached row. Otherwise no genome needs to be cached.

    Raises:
        UserError: The weights of a genome are not materialized, and it has another kind.
    """
    needed: dict[Genome, None] = {}
    for genome in genomes:
        if not genome.kind.materialized and genome.kind != kind:
            raise UserError(f"a genome's last mutation is of {genome.kind}, expected {kind} as its evaluator has it")
        if not kind.materialized:
            needed[genome if genome.kind.materialized or genome.parent is None else genome.parent] = None
    return list(needed)


def _plan(missing: Sequence[Genome], cached: Collection[bytes]) -> list[tuple[Genome, Genome | None]]:
    """Return the genomes to compute, in order, each with its start: missing genomes, and ancestors where lines branch.

    An ancestor is computed just before its descendants, and the last of these may take its row: ancestors in use are
    always fewer than the remaining genomes, so that none is evicted while in use.
    """
    wanted = {genome.digest for genome in missing}
    children: dict[bytes, list[Genome]] = defaultdict(list)  # of uncached ancestors and of starts
    starts: dict[bytes | None, tuple[Genome | None, list[Genome]]] = {}  # by cached ancestor: the genomes after it
    seen: set[bytes] = set()
    for genome in missing:
        for each in genome.line():
            if each.digest in seen:
                break
            seen.add(each.digest)
            parent = each.parent
            if parent is None or parent.digest in cached:
                starts.setdefault(None if parent is None else parent.digest, (parent, []))[1].append(each)
                break
            children[parent.digest].append(each)
    plans = []
    for start, tops in starts.values():
        plan: list[tuple[Genome, Genome | None]] = []
        stack = [(top, start) for top in reversed(tops)]
        while stack:
            genome, source = stack.pop()
            below = children[genome.digest]
            if genome.digest in wanted or len(below) > 1:
                plan.append((genome, source))
                source = genome
            stack += [(child, source) for child in reversed(below)]
        plans.append((start, plan))
    # Starts with a single fill come first: the fill takes the start's row and needs no further row. Roots last.
    plans.sort(key=lambda each: (each[0] is None, sum(source is each[0] for _, source in each[1])))
    return [step for _, plan in plans for step in plan]
