"""Simulated parent rows, which hold genomes instead of weights, and chains of mutations in pieces."""

from __future__ import annotations

import random
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, LowRank, grow
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.row_cache import Fill, RowCache, needed_rows


class SimulatedRows:
    """Rows that apply fills to genomes instead of weights, and count initializations and mutations."""

    def __init__(self, capacity: int):
        self.parents, self.rows = RowCache(capacity), [None] * capacity
        self.inits = self.mutations = 0

    def require(self, genomes: list[Genome], in_use: frozenset[int] = frozenset()) -> None:
        for fill in self.parents.require(genomes, in_use):
            self.rows[fill.row] = self._made(fill)

    def _made(self, fill: Fill) -> Genome:
        if fill.source is None:
            self.inits += 1
            genome = Genome(fill.genome.root, network=fill.genome.network)
        else:
            assert len(fill.mutations) > 0
            genome = self.rows[fill.source]
        for mutation in fill.mutations:
            self.mutations += 1
            genome = genome.child(*mutation)
        assert genome == fill.genome  # the source holds the expected ancestor
        return genome


bases = st.integers(0, 1) | st.sampled_from([Center(np.zeros(3)), Center(np.ones(3))])
chains = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.5, 1.0])), max_size=4).map(tuple)
genomes = st.builds(lambda root, chain, network: grow(Genome(root, network), chain), bases, chains, st.integers(0, 1))


@given(st.integers(1, 6), st.lists(st.tuples(st.lists(genomes, max_size=9), st.frozensets(st.integers(0, 5)))))
def test_rows_in_use_stay_as_they_are(capacity: int, generations: list[tuple[list[Genome], frozenset[int]]]) -> None:
    simulated = SimulatedRows(capacity)
    for wanted, in_use in generations:
        before = list(simulated.rows)
        simulated.require(wanted, in_use)
        for row, genome in enumerate(before):
            assert row not in in_use or genome is None or simulated.rows[row] == genome
        for genome in wanted:
            row, (source, chain) = simulated.parents.row(genome), simulated.parents.source(genome)
            assert row is None or simulated.rows[row] == genome
            start = Genome(genome.root, network=genome.network) if source is None else simulated.rows[source]
            assert (*start.mutations, *chain) == genome.mutations and start.root == genome.root
        if len(in_use & set(range(capacity))) == 0:
            assert all(simulated.parents.row(genome) is not None for genome in list(dict.fromkeys(wanted))[:capacity])


@given(st.integers(1, 6), st.lists(st.lists(genomes, max_size=9), max_size=6))
def test_after_require_the_rows_hold_the_genomes(capacity: int, generations: list[list[Genome]]) -> None:
    simulated = SimulatedRows(capacity)
    for required in generations:
        simulated.require(required)
        for genome in list(dict.fromkeys(required))[:capacity]:
            assert simulated.rows[simulated.parents.row(genome)] == genome
            assert simulated.parents.source(genome) == (simulated.parents.row(genome), [])
        held = [row for genome in simulated.rows if genome and (row := simulated.parents.row(genome)) is not None]
        assert len(held) == len(set(held))  # rows are distinct


@given(st.lists(genomes, min_size=1, max_size=6), genomes)
def test_source_is_the_longest_prefix_at_hand(cached: list[Genome], genome: Genome) -> None:
    simulated = SimulatedRows(len(set(cached)))  # no spare row that could hold a common ancestor
    simulated.require(cached)
    row, rest = simulated.parents.source(genome)
    made = Genome(genome.root, network=genome.network) if row is None else simulated.rows[row]
    for mutation in rest:
        made = made.child(*mutation)
    assert made == genome
    prefixes = [
        grow(Genome(genome.root, network=genome.network), genome.mutations[:n])
        for n in range(len(genome.mutations) + 1)
    ]
    longest = max((len(prefix.mutations) for prefix in prefixes if prefix in cached), default=None)
    assert (row is None) == (longest is None)
    assert len(rest) == len(genome.mutations) - (longest or 0)


@pytest.mark.parametrize("capacity", [21, 24, 37])
def test_a_ga_makes_each_new_parent_by_one_mutation(capacity: int) -> None:
    """20 parents and an elite that survives for some generations, with 21 rows."""
    rng, simulated = random.Random(0), SimulatedRows(capacity)
    parents = [Genome(base) for base in range(20)]
    simulated.require(parents)
    assert (simulated.inits, simulated.mutations) == (20, 0)
    new = 0
    for generation in range(1, 50):
        children = [rng.choice(parents).child(1000 * generation + i, 0.002) for i in range(19)]
        parents = [parents[0] if generation % 5 else children.pop(), *children]
        new += len([parent for parent in parents if len(parent.mutations) and simulated.parents.row(parent) is None])
        simulated.require(parents)
        assert all(simulated.rows[simulated.parents.row(parent)] == parent for parent in parents)
    assert simulated.inits == 20
    assert simulated.mutations == new


def trees(families: int) -> st.SearchStrategy[list[Genome]]:
    """Genomes whose long lines branch at any point, stored in any order."""

    @st.composite
    def grown(draw: st.DrawFn) -> list[Genome]:
        made = [Genome(base, network=base % 2) for base in range(families)]
        for number in range(draw(st.integers(1, 12))):
            line = draw(st.sampled_from(made))
            start = draw(st.integers(0, len(line.mutations)))
            genome = grow(Genome(line.root, network=line.network), line.mutations[:start])
            for step in range(draw(st.integers(1, 6))):
                genome = genome.child(100 * number + step, 0.5)
            made.append(genome)
        return draw(st.lists(st.sampled_from(made), min_size=1, unique=True))

    return grown()


@given(trees(3), st.integers(0, 3))
def test_from_nothing_every_mutation_is_made_once(required: list[Genome], spare: int) -> None:
    """Even without a spare row, each distinct prefix of the chains takes one mutation."""
    simulated = SimulatedRows(len(required) + spare)
    simulated.require(required)
    assert all(simulated.rows[simulated.parents.row(genome)] == genome for genome in required)
    beginnings = {(g.root, g.network, g.mutations[:n]) for g in required for n in range(1, len(g.mutations) + 1)}
    assert simulated.mutations == len(beginnings)
    assert simulated.inits == len({(genome.root, genome.network) for genome in required})


@given(st.integers(1, 8), st.lists(trees(2), min_size=2, max_size=5))
def test_families_of_families_end_in_their_rows(capacity: int, generations: list[list[Genome]]) -> None:
    simulated = SimulatedRows(capacity)
    for required in generations:
        simulated.require(required)
        for genome in required[:capacity]:
            assert simulated.rows[simulated.parents.row(genome)] == genome


@pytest.mark.parametrize("capacity", [20, 21, 37])
def test_what_parents_share_is_made_once(capacity: int) -> None:
    """After a resume: 20 parents with 500 of 530 mutations in common, then the next generation."""
    stem = grow(Genome(3), tuple((seed, 0.002) for seed in range(500)))
    parents = [grow(Genome(3), [*stem.mutations, *((1000 * i + n, 0.002) for n in range(30))]) for i in range(20)]
    simulated = SimulatedRows(capacity)
    simulated.require(parents)
    assert (simulated.inits, simulated.mutations) == (1, 500 + 20 * 30)
    simulated.require([parent.child(7, 0.002) for parent in parents])
    assert (simulated.inits, simulated.mutations) == (1, 500 + 20 * 30 + 20)


def test_signals_are_handled_between_pieces_of_a_line(engine) -> None:
    """An alarm in the middle of 20,000 mutations ends the evaluator long before they are done."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    parent = grow(Genome(5), ((seed, 0.01) for seed in range(20_000)))
    episodes = [Episode(parent.child(seed, 0.01), 1, 1) for seed in range(2)]
    evaluator = LocalEvaluator("frostbite", "model", lanes=1, slots=1, device="cpu", engine=engine)
    previous = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 2.0)  # again: an exception in a destructor is lost
        with pytest.raises(KeyboardInterrupt):
            evaluator.submit(episodes)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(RuntimeError, match="the evaluator is closed"):
        evaluator.submit(episodes)


def test_a_long_line_is_mutated_in_pieces() -> None:
    """A parent with 450 mutations, whose row is filled in pieces, has the outcomes of a center with its weights."""
    parent = grow(Genome(5), ((seed, 0.01) for seed in range(450)))
    with LocalEvaluator("frostbite", "model", lanes=1, slots=1, device="cpu") as evaluator:
        center = Genome(Center(evaluator.weights.theta(parent)))
        ours, theirs = ([one.child(seed, 0.05) for seed in range(3)] for one in (parent, center))
        returns = [
            evaluator.evaluate([Episode(each, 7, 40) for each in family]).returns.tolist() for family in (ours, theirs)
        ]
    assert returns[0] == returns[1]


def test_capacity_must_be_positive() -> None:
    with pytest.raises(ValueError, match="parent rows is 0"):
        RowCache(0)


def test_a_mutation_of_low_rank_starts_from_its_parents_row():
    """Never from a row with the weights of the same seed and scale at full rank."""
    parents, parent = RowCache(3), Genome(1)
    list(parents.require([parent, parent.child(2, 0.5)]))
    member = parent.child(2, 0.5, LowRank(1))
    assert parents.source(parent.child(2, 0.5)) == (parents.row(parent.child(2, 0.5)), [])
    assert parents.source(member) == (parents.row(parent), [member.mutation]) and parents.row(member) is None


def test_which_genomes_need_rows():
    plain, other = Genome(1), Genome(2)
    genomes = [plain.child(2, 0.5, LowRank(3)), plain.child(2, -0.5, LowRank(3)), other, other.child(1, 0.5)]
    assert needed_rows(genomes, LowRank(3)) == [plain, other, other.child(1, 0.5)]
    assert needed_rows(genomes[2:], GAUSSIAN) == []
    for kind in (GAUSSIAN, LowRank(1)):
        with pytest.raises(UserError, match="rank 3, expected"):
            needed_rows(genomes, kind)
