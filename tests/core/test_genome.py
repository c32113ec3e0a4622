"""Genomes: chains grow and shrink, JSON keeps every bit of the seeds, and centers are known by their weights."""

import copy
import hashlib
import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.core.genome import GAUSSIAN, Center, Gaussian, Genome, LowRank, Mutation, Scaled, grow
from neuroevo.core.tree import TreeReader, centers_of, encode, with_centers
from neuroevo.runs.genome_json import genome_from_json, genome_to_json, genomes_from_json, genomes_to_json

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


@given(genomes)
def test_json_round_trip(genome):
    again = genome_from_json(json.loads(json.dumps(genome_to_json(genome))))
    assert again == genome
    assert hash(again) == hash(genome)


def test_json_keeps_63_bit_seeds_and_float32_scales():
    scale = float(np.float32(0.002))
    text = json.dumps(genome_to_json(Genome(2**63 - 1).child(2**63 - 2, scale)))
    assert text == (
        '{"base": 9223372036854775807, "network": 0, "same": 0, '
        '"chain": [[9223372036854775806, 0.0020000000949949026]]}'
    )


def test_a_mutation_of_low_rank_is_the_last_one():
    genome = Genome(7).child(1, 0.5).child(2, 0.25, LowRank(3))
    assert genome == Genome(7).child(1, 0.5).child(2, 0.25, LowRank(3)) != Genome(7).child(1, 0.5).child(2, 0.25)
    assert genome.parent == Genome(7).child(1, 0.5)
    with pytest.raises(ValueError, match="last mutation is of low rank 3: it cannot have a child"):
        genome.child(4, 0.5)


def test_json_has_a_rank_where_there_is_one():
    line = [Genome(7).child(1, 0.5), Genome(7).child(1, 0.5, LowRank(2)), Genome(7).child(1, 0.5)]
    written = json.loads(json.dumps(genomes_to_json(line)))
    assert [each.get("rank") for each in written] == [None, 2, None]
    assert genomes_from_json(written) == line
    ranked = Genome(7).child(1, 0.5, LowRank(np.int64(4)))
    assert genome_from_json(json.loads(json.dumps(genome_to_json(ranked)))) == Genome(7).child(1, 0.5, LowRank(4))


@settings(deadline=None)
@given(st.lists(genomes, max_size=6), st.data())
def test_lists_of_relatives_round_trip(first, data):
    family = list(first)
    for _ in range(4 if first else 0):  # children and cousins, which share a part of their chains
        genome = data.draw(st.sampled_from(family))
        cut = data.draw(st.integers(0, len(genome.mutations)))
        family.append(
            grow(Genome(genome.root, network=genome.network), genome.mutations[:cut]).child(data.draw(seeds), 0.5)
        )
    assert genomes_from_json(json.loads(json.dumps(genomes_to_json(family)))) == family


def test_a_line_of_descent_takes_one_mutation_each():
    line = [Genome(5)]
    for seed in range(100):
        line.append(line[-1].child(seed, 0.5))
    written = genomes_to_json(line)
    assert [len(each["chain"]) for each in written] == [0] + [1] * 100
    assert [each["same"] for each in written] == [0, *range(100)]


NOTHING = {"base": 1, "network": 0, "same": 0, "chain": []}  # a genome without mutations


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({key: value for key, value in NOTHING.items() if key != "same"}, "not a genome"),
        ([], "not a genome"),
        ({**NOTHING, "chain": [[2]]}, "not a genome"),
        ({**NOTHING, "base": 2**63}, "base .* 9223372036854775808, "),
        ({**NOTHING, "base": 1.0}, "base .* 1.0, "),
        ({**NOTHING, "chain": [[-1, 0.5]]}, "seed .* -1, "),
        ({**NOTHING, "same": 2}, "2 mutations"),
        ({**NOTHING, "chain": [[2, 0.5]], "rank": 0}, r"rank .* 0, .*\[1, 64\]"),
        ({**NOTHING, "chain": [[2, 0.5]], "rank": 65}, "rank .* 65, "),
        ({**NOTHING, "chain": [[2, 0.5]], "rank": True}, "rank .* True, "),
        ({**NOTHING, "chain": [[2, 0.5]], "rank": 1.0}, "rank .* 1.0, "),
        ({**NOTHING, "rank": 1}, "rank 1 and no mutation"),
    ],
)
def test_what_is_not_a_genome(value, message):
    with pytest.raises(ValueError, match=message):
        genome_from_json(value)


def test_numpys_numbers_are_written_as_pythons():
    genome = Genome(np.int64(2**62), network=np.int32(1)).child(np.uint64(5), np.float32(0.1))
    written = json.loads(json.dumps(genome_to_json(genome)))
    assert genome_from_json(written) == genome == Genome(2**62, network=1).child(5, float(np.float32(0.1)))


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
    """Any kinds of mutations on any parents, some of which the encoded genomes share."""
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
    for genome in chosen:
        loaded = with_centers(genome, {center.name: center for center in centers})
        assert loaded == genome and all(center.has_weights for center in centers_of([loaded]).values())


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


def test_json_names_a_center():
    center = Center([1.0, 2.0])
    line = [Genome(center), Genome(center).child(4, -0.5), Genome(5)]
    text = json.dumps(genomes_to_json(line))
    assert json.loads(text)[1] == {"base": center.name, "network": 0, "same": 0, "chain": [[4, -0.5]]}
    again = genomes_from_json(json.loads(text), {center.name: center})
    assert again == line and again[1].root.vector is center.vector
    alone = genomes_from_json(json.loads(text))
    assert alone == line and not alone[0].root.has_weights
    with pytest.raises(ValueError, match="base .* 'md5:12', "):
        genome_from_json({**NOTHING, "base": "md5:12"})
