"""Parents' rows, simulated: a row holds the genome that its fills would have made, mutation by mutation."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.genome import Genome
from neuroevo.parent_rows import Fill, ParentRows


class SimulatedRows:
    """Carries fills out on genomes instead of weights, and counts initial weights and mutations made."""

    def __init__(self, capacity: int):
        self.parents, self.rows = ParentRows(capacity), [None] * capacity
        self.inits = self.mutations = 0

    def require(self, genomes: list[Genome]) -> None:
        for fill in self.parents.require(genomes):
            self.rows[fill.row] = self._made(fill)

    def _made(self, fill: Fill) -> Genome:
        if fill.source is None:
            self.inits += 1
            genome = Genome(fill.genome.base, (), fill.genome.network)
        else:
            genome = self.rows[fill.source]
        for seed, scale in fill.chain:
            self.mutations += 1
            genome = genome.child(seed, scale)
        return genome


bases = st.integers(0, 2)
chains = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.5, 1.0])), max_size=4).map(tuple)
genomes = st.builds(Genome, bases, chains, st.integers(0, 1))


@given(st.integers(1, 6), st.lists(st.lists(genomes, max_size=9), max_size=6))
def test_after_require_the_rows_hold_the_genomes(capacity: int, generations: list[list[Genome]]) -> None:
    simulated = SimulatedRows(capacity)
    for required in generations:
        simulated.require(required)
        for genome in list(dict.fromkeys(required))[:capacity]:
            assert simulated.rows[simulated.parents.row(genome)] == genome
            assert simulated.parents.source(genome) == (simulated.parents.row(genome), ())
        held = [row for genome in simulated.rows if genome and (row := simulated.parents.row(genome)) is not None]
        assert len(held) == len(set(held))  # nobody shares a row


@given(st.lists(genomes, min_size=1, max_size=6), genomes)
def test_source_is_the_longest_prefix_at_hand(at_hand: list[Genome], genome: Genome) -> None:
    simulated = SimulatedRows(len(at_hand))
    simulated.require(at_hand)
    row, rest = simulated.parents.source(genome)
    made = Genome(genome.base, (), genome.network) if row is None else simulated.rows[row]
    for mutation in rest:
        made = made.child(*mutation)
    assert made == genome
    prefixes = [Genome(genome.base, genome.chain[:n], genome.network) for n in range(len(genome.chain) + 1)]
    longest = max((len(prefix.chain) for prefix in prefixes if prefix in at_hand), default=None)
    assert (row is None) == (longest is None)
    assert len(rest) == len(genome.chain) - (longest or 0)


@pytest.mark.parametrize("capacity", [21, 24, 37])
def test_a_ga_makes_each_new_parent_by_one_mutation(capacity: int) -> None:
    """20 parents and an elite that stays for some generations, with as few rows as that."""
    rng, simulated = random.Random(0), SimulatedRows(capacity)
    parents = [Genome(base) for base in range(20)]
    simulated.require(parents)
    assert (simulated.inits, simulated.mutations) == (20, 0)
    new = 0
    for generation in range(1, 50):
        children = [rng.choice(parents).child(1000 * generation + i, 0.002) for i in range(19)]
        parents = [parents[0] if generation % 5 else children.pop(), *children]
        new += len([parent for parent in parents if len(parent.chain) and simulated.parents.row(parent) is None])
        simulated.require(parents)
        assert all(simulated.rows[simulated.parents.row(parent)] == parent for parent in parents)
    assert simulated.inits == 20
    assert simulated.mutations == new


def test_capacity_must_be_positive() -> None:
    with pytest.raises(ValueError, match="number of parent rows is 0, expected at least 1"):
        ParentRows(0)
