"""Genomes: chains grow and shrink, and JSON keeps every bit of the seeds."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.genome import Genome
from neuroevo.metrics import genome_from_json, genome_to_json

seeds = st.integers(0, 2**63 - 1)
scales = st.floats(min_value=0, exclude_min=True, max_value=1, width=32)
genomes = st.builds(
    Genome, seeds, st.lists(st.tuples(seeds, scales), max_size=5).map(tuple), st.integers(min_value=0, max_value=3)
)


def test_child_adds_a_mutation_at_the_end():
    genome = Genome(7).child(1, 0.5).child(2, 0.25)
    assert genome == Genome(7, ((1, 0.5), (2, 0.25)))
    assert genome.parent == Genome(7, ((1, 0.5),))
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
    text = json.dumps(genome_to_json(Genome(2**63 - 1, ((2**63 - 2, scale),))))
    assert (
        text == '{"base": 9223372036854775807, "chain": [[9223372036854775806, 0.0020000000949949026]], "network": 0}'
    )
