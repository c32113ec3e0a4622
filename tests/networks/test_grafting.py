"""Inheritance of weights between networks, and the cost of networks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.core.genome import Center, Genome, Graft, to_json
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.grafting import cost, inherited

FIRST = "input float32 5; dense 4 1.0; bias; tanh; dense 2 1.0; bias"
SCREEN = "input uint8 9 9 2; conv 3 3 3 2 same 1.0; bias; relu; lstm 4 1.0; dense 2 1.0; bias"


def of(text, seed):
    return NativeWeights([text]).theta(Genome(seed))


def outputs(text, theta, observations):
    population = Population([text], rows=1)
    population.assign([0], [0], theta[None])
    return population.forward([0] * len(observations), observations, population.outputs)


@pytest.mark.parametrize("text", [FIRST, SCREEN])
def test_a_network_inherits_all_of_an_equal_one(text):
    parent = of(text, 1)
    np.testing.assert_array_equal(inherited(text, text, parent, of(text, 2)), parent)


def test_layers_that_are_added_or_removed_leave_the_others_their_weights():
    larger = "input float32 5; dense 4 1.0; bias; tanh; dense 7 1.0; bias; relu; dense 2 1.0; bias"
    parent, initial = of(FIRST, 1), of(larger, 2)
    grown = inherited(larger, FIRST, parent, initial)
    np.testing.assert_array_equal(grown[:24], parent[:24])  # the first layer with its bias
    np.testing.assert_array_equal(grown[24 : 24 + 35], initial[24 : 24 + 35])  # the new one
    output = grown[59:73].reshape(7, 2)
    np.testing.assert_array_equal(output[:4], parent[24:32].reshape(4, 2))
    np.testing.assert_array_equal(output[4:], initial[59:73].reshape(7, 2)[4:])
    np.testing.assert_array_equal(grown[73:], parent[32:])
    np.testing.assert_array_equal(inherited(FIRST, larger, grown, initial[:34])[:24], parent[:24])


def test_a_wider_layer_with_no_weights_of_new_units_computes_the_same():
    wider = FIRST.replace("dense 4", "dense 9")
    parent = of(FIRST, 1)
    observations = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    theta = inherited(wider, FIRST, parent, np.zeros_like(of(wider, 2)))
    np.testing.assert_array_equal(outputs(wider, theta, observations), outputs(FIRST, parent, observations))


def test_a_larger_kernel_keeps_the_smaller_one_in_its_center():
    small, large = (f"input uint8 9 9 2; conv 3 {size} {size} 1 same 1.0; dense 2 1.0" for size in (3, 5))
    parent = of(small, 1)
    screens = np.random.default_rng(0).integers(0, 256, (4, 9, 9, 2), np.uint8)
    theta = inherited(large, small, parent, np.zeros_like(of(large, 2)))
    np.testing.assert_allclose(outputs(large, theta, screens), outputs(small, parent, screens), rtol=1e-5, atol=1e-6)


def test_the_gates_of_an_lstm_keep_their_units():
    small, large = (f"input float32 3; lstm {units} 1.0; dense 2 1.0" for units in (2, 5))
    parent, population = of(small, 1), [Population([text], rows=1) for text in (small, large)]
    thetas = parent, inherited(large, small, parent, np.zeros_like(of(large, 2)))
    seen = np.random.default_rng(0).standard_normal((4, 1, 3)).astype(np.float32)
    found = []
    for each, theta in zip(population, thetas, strict=True):
        each.assign([0], [0], theta[None])
        each.clear_states([0])
        found.append([each.forward([0], x, 2, [0]) for x in seen])
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("text", [FIRST, SCREEN, "input float32 2; graph 3 1 1.0 0>2 1>3 2>4 3>4"])
def test_the_cost_has_the_weights_of_the_core(text):
    assert cost(text).weights == Population([text], rows=1).dimensions[0]


def test_multiply_adds():
    assert cost(FIRST).multiply_adds == 5 * 4 + 4 * 2
    assert cost(SCREEN).multiply_adds == 25 * 3 * 9 * 2 + (75 + 4) * 16 + 4 * 2


@given(st.lists(st.sampled_from([1, 2, 3, 8]), min_size=1, max_size=4), st.integers(0, 2**62))
@settings(max_examples=30, deadline=None)
def test_weights_after_grafts_are_those_of_each_step(widths, seed):
    """A line of grafts and mutations has the same weights regardless of earlier queries."""
    weights, genome = NativeWeights([FIRST]), Genome(seed)
    texts, expected = [FIRST], weights.theta(genome)
    for number, width in enumerate(widths):
        text = FIRST.replace("dense 4", f"dense {width} 1.0; bias; relu; dense {number + 5}")
        initial = NativeWeights([text]).theta(Genome(number + 9))
        expected = inherited(text, texts[-1], expected, np.float32(0.5) * initial)
        genome = genome.child(number + 9, 0.5, Graft(text)).child(3, 0.25)
        expected = NativeWeights([text]).theta(Genome(Center(expected)).child(3, 0.25))
        texts.append(text)
    np.testing.assert_array_equal(NativeWeights([FIRST]).theta(genome), expected)
    np.testing.assert_array_equal(weights.theta(genome), expected)
    bare = weights.without_grafts(genome)
    assert bare.network == genome.network and bare.depth == 1
    np.testing.assert_array_equal(weights.theta(bare), expected)


def test_genomes_with_networks_of_their_own_are_told_apart():
    genomes = [Genome(1), Genome(1, FIRST), Genome(1, SCREEN), Genome(1).child(2, 1.0, Graft(FIRST))]
    genomes += [Genome(1).child(2, 1.0, Graft(SCREEN)), Genome(1).child(2, 0.5, Graft(FIRST)), Genome(1).child(2, 1.0)]
    assert len(set(genomes)) == len(genomes)
    assert [each.network for each in genomes] == [0, FIRST, SCREEN, FIRST, SCREEN, FIRST, 0]
    assert to_json(genomes[3]) == {"root": 1, "network": 0, "mutations": [[2, 1.0, f"graft {FIRST}"]]}
    with pytest.raises(ValueError, match="expected another network than the parent's"):
        genomes[1].child(2, 1.0, Graft(FIRST))
