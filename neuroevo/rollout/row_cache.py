"""Cache of rows of weights, so that an offspring is one perturbation away from its parent.

A missing genome is made from its nearest cached ancestor: one mutation per generation, never the whole line. Several
missing genomes that share uncached ancestors share the work: where their lines part, the ancestor is made once. When
the rows are used up, the genome that saves the least work is evicted, aged by GreedyDual (Young 1994).
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
    """Instructions for making a genome's weights.

    Attributes:
        genome: The genome.
        row: The row that is filled.
        source: The row of an ancestor to start from; None: its root.
        mutations: What follows, in order.
    """

    genome: Genome
    row: int
    source: int | None
    mutations: Sequence[Mutation]


@dataclass
class _Cached:
    """A row that is in use, and the priority with which it stays."""

    row: int
    work: int
    priority: int
    network: int | str


class RowCache:
    """Assignment of rows [0, capacity) to genomes."""

    def __init__(self, capacity: int):
        """Make an empty cache.

        Args:
            capacity: The number of rows.
        """
        if capacity < 1:
            raise ValueError(f"number of parent rows is {capacity}, expected at least 1")
        self._capacity = capacity
        self._cached: dict[bytes, _Cached] = {}  # by digest, which keeps neither ancestors nor dense vectors alive
        self._free = list(range(capacity))
        self._age = 0  # the priority of the last genome that made room

    def row(self, genome: Genome) -> int | None:
        """Return the row that holds the genome, or None."""
        cached = self._cached.get(genome.digest)
        return None if cached is None else cached.row

    def drop(self, network: int) -> None:
        """Forget the genomes of a network."""
        for digest in [digest for digest, cached in self._cached.items() if cached.network == network]:
            self._free.append(self._cached.pop(digest).row)

    def source(self, genome: Genome) -> tuple[int | None, Sequence[Mutation]]:
        """Return the row of the nearest cached ancestor (None: start from the root), and the mutations that follow."""
        mutations: list[Mutation] = []
        for each in genome.line():
            cached = self._cached.get(each.digest)
            if cached is not None:
                return cached.row, mutations[::-1]
            if each.mutation is not None:
                mutations.append(each.mutation)
        return None, mutations[::-1]

    def require(self, genomes: Iterable[Genome], in_use: Collection[int] = ()) -> Iterable[Fill]:
        """Yield the fills, to be carried out in order, after which the genomes are cached.

        When there are more genomes than rows, some stay without a row.

        Args:
            genomes: The genomes that are needed.
            in_use: Rows that must stay as they are.
        """
        needed = {genome.digest: genome for genome in dict.fromkeys(genomes)}
        for digest in list(needed)[self._capacity :]:
            del needed[digest]
        for digest in needed:
            if digest in self._cached:
                self._renew(self._cached[digest])
        plan = _plan([each for digest, each in needed.items() if digest not in self._cached], self._cached)
        users = Counter(None if start is None else start.digest for _, start in plan)  # fills to come
        spare: list[tuple[int, bytes]] | None = None  # a heap of those that may make room, once the rows are used up

        def may_go(digest: bytes) -> bool:
            return digest in self._cached and digest not in needed and self._cached[digest].row not in in_use

        for genome, start in plan:
            if start is None:
                users[None] -= 1
            else:
                users[start.digest] -= 1
                if spare is not None and not users[start.digest] and may_go(start.digest):
                    heappush(spare, (self._cached[start.digest].priority, start.digest))
            source, mutations = self.source(genome)  # not what was planned if that had to make room
            row = self._free.pop() if self._free else None
            if row is None:
                if spare is None:
                    spare = self._room(each for each in self._cached if may_go(each) and not users[each])
                row = self._evict(spare)
            if row is None:  # only genomes are left that others are to start from
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
        """Forget the genome of the least priority and return its row; None if the heap has none."""
        while spare:
            priority, digest = heappop(spare)
            if digest in self._cached:  # not evicted before
                self._age = priority
                return self._cached.pop(digest).row
        return None

    def _renew(self, cached: _Cached) -> None:
        cached.priority = self._age + cached.work


def needed_rows(genomes: Iterable[Genome], kind: Kind) -> list[Genome]:
    """Return the genomes that must have a row before others can be played.

    Args:
        genomes: Those to be played.
        kind: Of the mutations that the lanes' rows are made for. If their weights are not materialized, the parents of
            such genomes must have a row, and other genomes are played in their own. Otherwise none is needed.

    Raises:
        UserError: The weights of a genome are not materialized, and its kind is another one.
    """
    needed: dict[Genome, None] = {}
    for genome in genomes:
        if not genome.kind.materialized and genome.kind != kind:
            raise UserError(f"a genome's last mutation is of {genome.kind}, expected {kind} as its evaluator has it")
        if not kind.materialized:
            needed[genome if genome.kind.materialized or genome.parent is None else genome.parent] = None
    return list(needed)


def _plan(missing: Sequence[Genome], cached: Collection[bytes]) -> list[tuple[Genome, Genome | None]]:
    """Return what to make, in order: missing genomes and ancestors where their lines part, each with its start.

    An ancestor is made just before its descendants, and the last of these may take its row: ancestors in use are always
    fewer than the genomes still to come, so that none has to make room while it is in use.
    """
    wanted = {genome.digest for genome in missing}
    children: dict[bytes, list[Genome]] = defaultdict(list)  # of uncached ancestors and of the starts
    starts: dict[bytes | None, tuple[Genome | None, list[Genome]]] = {}  # cached ancestors: the first genomes after it
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
    # A start with a single fill first: the fill takes its row, and the row count does not grow. Roots last.
    plans.sort(key=lambda each: (each[0] is None, sum(source is each[0] for _, source in each[1])))
    return [step for _, plan in plans for step in plan]
