"""Which genomes are cached as rows of weights, so that an offspring is one perturbation away from its parent.

A new parent is made from the longest prefix of its chain that is cached: a mutation a generation, never the chain from
the start. What several new parents have in common beyond that is made once, as a stem that they grow from: after a
resume, when nothing is cached, 20 parents of one line take little more than one of them. Memory is bounded by the
number of rows; when the row of a parent or a stem is not needed for anything else, the child takes it over in place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome


@dataclass(frozen=True)
class Fill:
    """How to make a genome's weights: in row `row`, from row `source` (None: from its base), by these mutations."""

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
        """Row of the longest prefix of the genome that is cached (None: start from its base), and the rest.

        A genome whose last mutation is of low rank is not cached itself: a row holds weights.
        """
        prefix = _longest_prefix(genome.parent if genome.rank else genome, self._rows)
        return (None, genome.chain) if prefix is None else (self._rows[prefix], genome.chain[len(prefix.chain) :])

    def require(self, genomes: Iterable[Genome], in_use: Collection[int] = ()) -> Iterable[Fill]:
        """Yields the fills, to be carried out in order, after which the genomes are cached.

        When there are more genomes than rows, some stay without a row.

        Args:
            genomes: The genomes that are needed.
            in_use: Rows that must stay as they are.
        """
        needed = list(dict.fromkeys(genomes))[: self._capacity]
        for genome in needed:
            if genome in self._rows:
                self._rows[_key(genome)] = self._rows.pop(genome)  # now the most recently needed
        missing = [genome for genome in needed if genome not in self._rows]
        plan = _plan(missing, self._rows)
        users = Counter(source for _, source in plan)  # fills that want to start from this genome
        keep = set(needed)
        for genome, planned in plan:
            users[planned] -= 1
            source, chain = self.source(genome)  # not what was planned if that had to make room
            row = self._make_room(keep, users, in_use)
            if row is None:
                continue
            self._rows[_key(genome)] = row
            yield Fill(genome, row, source, chain)

    def _make_room(self, keep: set[Genome], users: Counter[Genome | None], in_use: Collection[int]) -> int | None:
        if self._free:
            return self._free.pop()
        candidates = [genome for genome, row in self._rows.items() if genome not in keep and row not in in_use]
        if not candidates:
            return None
        unused = (genome for genome in candidates if users[genome] == 0)
        return self._rows.pop(next(unused, candidates[0]))


def needed_rows(genomes: Iterable[Genome], rank: int) -> list[Genome]:
    """The genomes that must have a row, so that these can be played where the lanes' rows are members of a rank.

    Those without a rank, which are played in place, and the parents of the others; where rank is 0, none.

    Raises:
        UserError: A genome has another rank.
    """
    needed: dict[Genome, None] = {}
    for genome in genomes:
        parent = genome.parent if genome.rank else None
        if genome.rank and (genome.rank != rank or parent is None):
            raise UserError(
                f"a genome's last mutation has rank {genome.rank}, expected {rank or 'none'} as its evaluator"
            )
        if rank:
            needed[parent or genome] = None
    return list(needed)


def _plan(missing: Iterable[Genome], cached: Collection[Genome]) -> list[tuple[Genome, Genome | None]]:
    """The missing genomes and their stems in the order in which to make them, each with what it starts from.

    A stem is made just before what grows from it, and its row is free for the last of that: stems in use are always
    fewer than the genomes still to come, so that no stem has to make room while it is in use.
    """
    families = defaultdict(list)  # of those that start from the same cached genome, or from the same initial weights
    for genome in missing:
        families[_longest_prefix(genome, cached), genome.base, genome.network].append(genome)
    plans = []
    for (source, _, _), family in families.items():
        family.sort(key=_chain)
        stems = {_common_prefix(one, other) for one, other in pairwise(family)} - {source}
        members = sorted(stems.union(family), key=_chain)  # a genome follows its prefixes: a tree, depth first
        starts = stems.union(family, [] if source is None else [source])
        plans.append((source, [(member, _longest_prefix(member.parent, starts)) for member in members]))
    # A source with a single fill first: the fill takes its row, and the row count does not grow. Initial weights last.
    plans.sort(key=lambda plan: (plan[0] is None, sum(start == plan[0] for _, start in plan[1])))
    return [step for _, plan in plans for step in plan]


def _longest_prefix(genome: Genome | None, among: Collection[Genome]) -> Genome | None:
    """The longest of these genomes that is the genome or a beginning of its chain; None if there is none."""
    if genome is None:
        return None
    # Only lengths that there are: a few, where the chain may have thousands of mutations.
    for length in sorted({len(other.chain) for other in among}, reverse=True):
        if length <= len(genome.chain):
            prefix = Genome(genome.base, genome.chain[:length], genome.network)
            if prefix in among:
                return prefix
    return None


def _common_prefix(one: Genome, other: Genome) -> Genome:
    """The longest genome from which both can be made; they have the same base and network."""
    pairs = zip(one.chain, other.chain, strict=False)
    length = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one.chain), len(other.chain)))
    return Genome(one.base, one.chain[:length], one.network)


def _key(genome: Genome) -> Genome:
    """An equal genome without its dense vector, if it has one: a row is remembered for long, and vectors are large."""
    if isinstance(genome.base, Center):
        return Genome(Center.named(genome.base.name), genome.chain, genome.network)
    return genome


def _chain(genome: Genome) -> tuple[tuple[int, float], ...]:
    return genome.chain
