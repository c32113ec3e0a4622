"""Tables of episodes: decoding restores the episodes, and tables are small."""

import pickle
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.cluster.table import TableReader, table_of
from neuroevo.core.episode import Episode
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Graft, LowRank, Scaled, grow
from neuroevo.core.observation_statistics import Normalizer

SEEDS = st.integers(0, 2**63 - 1)
CENTERS = [Center(np.full(3, value, np.float32)) for value in range(3)]
NORMALIZERS = [Normalizer(number, np.full(2, float(number)), np.ones(2)) for number in range(2)]
NETWORKS = ["input float32 1; dense 3 1.0", "input float32 1; dense 2 1.0; bias; dense 3 1.0"]
SCALES = st.sampled_from([0.002, 0.02, -0.02, 1.0]).map(lambda scale: float(np.float32(scale)))


@st.composite
def families(draw):
    """Draw genomes that descend from one another and share prefixes, as in generations."""
    bases = st.one_of(SEEDS, st.sampled_from(CENTERS))
    networks = st.one_of(st.integers(0, 2), st.sampled_from(NETWORKS))
    genomes = [Genome(draw(bases), network=draw(networks)) for _ in range(draw(st.integers(1, 3)))]
    grafts = [Graft(text) for text in NETWORKS]
    for _ in range(draw(st.integers(0, 12))):
        parent = draw(st.sampled_from(genomes))
        if parent.mutation is None or not isinstance(parent.mutation.kind, LowRank):
            others = [each for each in grafts if each.network != parent.network]
            kind = draw(st.sampled_from([GAUSSIAN, GAUSSIAN, LowRank(1), LowRank(3), Scaled(CENTERS[0]), *others]))
            genomes.append(parent.child(draw(st.integers(0, 3)), draw(SCALES), kind))
    return genomes


@st.composite
def batches(draw):
    genomes = st.sampled_from(draw(families()))
    steps, normalizers = st.sampled_from([0, 30, 5000]), st.sampled_from([None, *NORMALIZERS])
    return draw(st.lists(st.builds(Episode, genomes, SEEDS, steps, normalizers), min_size=1, max_size=20))


def reader_of(table):
    """Return a reader of a table after a round trip through pickle."""
    centers = {center.name: center for center in CENTERS}
    sent = pickle.loads(pickle.dumps(replace(table, tree=table.tree.without_weights())))
    return TableReader(sent, [centers[center.name] for center in table.tree.centers])


@given(batches(), st.randoms())
def test_episodes_come_back(episodes, random):
    indices = random.sample(range(len(episodes)), random.randint(0, len(episodes)))
    found = reader_of(table_of(episodes)).episodes(indices)
    assert found == [episodes[index] for index in indices]
    assert [each.genome.network for each in found] == [episodes[index].genome.network for index in indices]


@given(batches())
def test_shared_parents(episodes):
    """A parent is marked if the batch has several children of it, and comes with a piece that has one of them."""
    reader, genomes = reader_of(table_of(episodes)), {episode.genome for episode in episodes}
    parents = [genome.parent for genome in genomes if genome.mutations]
    shared = {parent for parent in parents if parents.count(parent) > 1}
    for index, episode in enumerate(episodes):
        found = reader.shared_parents([index])
        assert set(found) == shared & {episode.genome.parent}
    assert set(reader.shared_parents(range(len(episodes)))) == shared


def a_generation(parents=20, size=1000, depth=200):
    """Return a generation of unrelated parents, the worst case."""
    rng = np.random.default_rng(0)
    scale = float(np.float32(0.002))
    chains = [tuple((int(seed), scale) for seed in rng.integers(2**63, size=depth)) for _ in range(parents)]
    old = [grow(Genome(number), chain) for number, chain in enumerate(chains)]
    return [
        Episode(old[rng.integers(parents)].child(int(rng.integers(2**63)), scale), int(rng.integers(2**63)), 5000)
        for _ in range(size)
    ]


def test_a_genome_of_200_mutations_takes_at_most_120_bytes():
    episodes = a_generation()
    table = pickle.dumps(table_of(episodes), protocol=5)
    assert len(table) <= 120 * len(episodes)
    assert len(pickle.dumps(episodes, protocol=5)) > 8 * len(table)


def test_a_center_is_not_in_the_table():
    center = Center(np.zeros(100_000, np.float32))
    tree = table_of([Episode(Genome(center).child(seed, 0.5), seed) for seed in range(10)]).tree.without_weights()
    assert [each.name for each in tree.centers] == [center.name]
    assert len(pickle.dumps(tree)) < 2000


def test_children_that_differ_in_kind_alone_share_their_parent():
    parent = Genome(0)
    episodes = [Episode(parent.child(1, 0.5, kind), 0) for kind in (GAUSSIAN, LowRank(1))]
    assert reader_of(table_of(episodes)).shared_parents([0]) == [parent]
