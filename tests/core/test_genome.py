"""Genomes: chains of mutations, lossless JSON, and centers identified by their weights."""

import copy
import hashlib
import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.core.genome import GAUSSIAN, Center, Gaussian, Genome, LowRank, Mutation, Scaled, grow, to_json
from neuroevo.core.tree import TreeReader, encode
from tests.support.stored import stored_genomes

seeds = st.integers(0, 2**63 - 1)
scales = st.floats(min_value=0, exclude_min=True, max_value=1, width=32)
genomes = st.builds(
    lambda root, network, mutations: grow(Genome(root, network), mutations),
    seeds,
    st.integers(min_value=0, max_value=3),
    st.lists(st.tuples(seeds, scales), max_size=5),
)


def test_child_adds_a_mutation_at_the_end():
    genome = Genome(7).child(1, 0.5).child(2, 0.25)
    assert genome == Genome(7).child(1, 0.5).child(2, 0.25)
    assert genome.parent == Genome(7).child(1, 0.5)
    assert genome.parent.parent == Genome(7)
    assert Genome(7).parent is None


@given(genomes, seeds, scales)
def test_parent_undoes_child(genome, seed, scale):
    assert genome.child(seed, scale).parent == genome


@settings(deadline=None, max_examples=30)
@given(st.lists(genomes, max_size=6), st.data())
def test_a_database_keeps_relatives_exactly(first, data):
    family = list(first)
    for _ in range(4 if first else 0):  # children and cousins, which share a part of their mutations
        genome = data.draw(st.sampled_from(family))
        cut = data.draw(st.integers(0, len(genome.mutations)))
        family.append(
            grow(Genome(genome.root, network=genome.network), genome.mutations[:cut]).child(data.draw(seeds), 0.5)
        )
    again = stored_genomes(family)
    assert again == family and list(map(hash, again)) == list(map(hash, family))


def test_a_database_keeps_kinds_and_centers():
    center, spread = Center([1.0, 2.0]), Center([0.5, 0.25])
    line = [Genome(center), Genome(center).child(4, -0.5), Genome(5).child(1, 0.5, LowRank(np.int64(2)))]
    line += [Genome(5).child(1, 0.5), Genome(5).child(1, 0.5, Scaled(spread))]
    line += [Genome(np.int64(2**62), network=np.int32(1)).child(np.uint64(5), np.float32(0.1))]
    again = stored_genomes(line)
    assert again == line and not again[0].root.has_weights  # which no state needs
    assert [str(each.mutation.kind) for each in again[2:]] == [str(each.mutation.kind) for each in line[2:]]


def test_json_keeps_63_bit_seeds_and_float32_scales():
    scale = float(np.float32(0.002))
    text = json.dumps(to_json(Genome(2**63 - 1).child(2**63 - 2, scale)))
    assert text == (
        '{"root": 9223372036854775807, "network": 0, "mutations": [[9223372036854775806, 0.0020000000949949026]]}'
    )


def test_json_names_kinds_and_centers():
    center = Center([1.0, 2.0])
    genome = Genome(center, np.int32(1)).child(np.uint64(1), np.float32(0.5), Scaled(center))
    genome = genome.child(2, -0.25, LowRank(np.int64(4)))
    mutations = [[1, 0.5, center.name], [2, -0.25, "low rank 4"]]
    expected = {"root": center.name, "network": 1, "mutations": mutations}
    assert json.loads(json.dumps(to_json(genome))) == expected


def test_a_mutation_of_low_rank_is_the_last_one():
    genome = Genome(7).child(1, 0.5).child(2, 0.25, LowRank(3))
    assert genome == Genome(7).child(1, 0.5).child(2, 0.25, LowRank(3)) != Genome(7).child(1, 0.5).child(2, 0.25)
    assert genome.parent == Genome(7).child(1, 0.5)
    with pytest.raises(ValueError, match="last mutation is of low rank 3: it cannot have a child"):
        genome.child(4, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Genome(-1), r"root .* -1, .*\[0, 2\*\*63\)"),
        (lambda: Genome(True), "root .* True, "),
        (lambda: Genome(1).child(0.5, 0.1), "seed .* 0.5, "),
        (lambda: Genome(1).child(2**63, 0.1), f"seed .* {2**63}, "),
        (lambda: Genome(1).child(2, 0.1, LowRank(65)), r"rank .* 65, .*\[1, 64\]"),
        (lambda: Genome(1).child(2, 0.1, LowRank(True)), "rank .* True, "),
    ],
)
def test_a_seed_or_a_rank_out_of_range_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_genome_is_immutable_and_equal_by_its_digest():
    spread = Center([0.5, 2.0])
    kinds = [GAUSSIAN, LowRank(1), LowRank(2), Scaled(spread), Scaled(Center([0.5, 3.0]))]
    family = [Genome(3), Genome(3, network=1), Genome(4), *(Genome(3).child(1, 0.5, kind) for kind in kinds)]
    assert len({genome.digest for genome in family}) == len(set(family)) == len(family)
    assert Genome(3).child(1, 0.5, Gaussian()) == Genome(3).child(1, 0.5)
    with pytest.raises(AttributeError, match="immutable"):
        family[0].depth = 3


def test_a_long_line_is_built_copied_and_sent_without_recursion():
    genome = grow(Genome(3), ((seed, 0.5) for seed in range(20_000)))
    assert genome.depth == len(genome.mutations) == 20_000 and genome.mutations[7] == Mutation(7, 0.5)
    assert pickle.loads(pickle.dumps(genome)) == copy.deepcopy(genome) == genome
    assert len(repr(genome)) < 200


@given(st.lists(genomes, max_size=6), st.data())
def test_a_tree_round_trips(roots, data):
    """The encoded genomes have any kinds of mutations on any parents, some of them shared."""
    centers = [Center([0.5]), Center([1.0])]
    family = [*roots, Genome(centers[0], 1)]
    for _ in range(6):
        parent = data.draw(st.sampled_from([each for each in family if can_have_children(each)]))
        kind = data.draw(st.sampled_from([GAUSSIAN, LowRank(3), *map(Scaled, centers)]))
        family.append(parent.child(data.draw(seeds), 0.5, kind))
    chosen = data.draw(st.lists(st.sampled_from(family)))
    tree, nodes = encode(chosen)
    reader = TreeReader(pickle.loads(pickle.dumps(tree.without_weights())))
    assert [reader.genome(int(node)) for node in nodes] == chosen
    assert len(tree.parents) == len({each for genome in chosen for each in genome.line() if each.parent is not None})


def can_have_children(genome):
    return genome.mutation is None or not isinstance(genome.mutation.kind, LowRank)


def test_a_center_is_named_by_its_weights():
    vector = np.array([0.5, -2.0, 1e-3])
    center = Center(vector)
    assert center.name == "sha256:" + hashlib.sha256(struct.pack("<3f", 0.5, -2.0, 1e-3)).hexdigest()
    assert center.vector.dtype == np.float32
    vector[0] = 9.0  # it has a copy
    assert center.vector.tolist() == [0.5, -2.0, float(np.float32(1e-3))]
    with pytest.raises(ValueError, match="read-only"):
        center.vector[0] = 1.0
    same, other = Center(center.vector), Center([0.5, -2.0, 2e-3])
    assert same == center and hash(same) == hash(center) and other != center
    assert {Genome(center).child(3, 0.5)} == {Genome(same).child(3, 0.5)}
    assert center != center.name


def test_a_center_of_which_only_the_name_is_known():
    center = Center([1.0])
    named = Center.named(center.name)
    assert named == center and center.has_weights and not named.has_weights
    with pytest.raises(LookupError, match=center.name):
        _ = named.vector


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([], r"\[0\], expected \[D\]"),
        ([[1.0]], r"\[1, 1\], expected \[D\]"),
        (3.0, r"\[\], expected \[D\]"),
        ([1.0, np.nan], "weight 1 .* nan"),
        ([-1e39, 1.0], r"weight 0 .* -1e\+39"),
    ],
)
def test_what_is_not_a_center(vector, message):
    with pytest.raises(ValueError, match=message):
        Center(vector)
