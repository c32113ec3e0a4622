"""Weights of genomes and sums of noise for algorithms, which are identical to those of populations."""

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights

NETWORKS = ["input float32 3; dense 2 1.0; bias", "input float32 3; dense 4 1.0; bias; tanh; dense 2 0.1; bias"]


@pytest.fixture(scope="module")
def weights():
    return NativeWeights(NETWORKS)


def played(genome):
    """Return the weights that a population fills a row with."""
    population = Population(NETWORKS, rows=1)
    population.init([0], [genome.network], [genome.root])
    for seed, scale, _ in genome.mutations:
        population.perturb([0], [0], [seed], [scale])
    return population.read([0])[0, : population.dimensions[genome.network]]


@pytest.mark.parametrize("network", [0, 1])
def test_theta_is_what_a_population_plays(weights, network):
    genome = Genome(12, network=network).child(5, 0.5).child(6, -0.25)
    assert [weights.dimension(each) for each in range(2)] == [8, 26]
    np.testing.assert_array_equal(weights.theta(genome), played(genome), strict=True)
    np.testing.assert_array_equal(weights.theta(genome), played(genome))  # theta() has no side effects


@pytest.mark.parametrize("network", [0, 1])
def test_a_center_takes_the_place_of_initial_weights(weights, network):
    start = Genome(12, network=network)
    center = Genome(Center(weights.theta(start)), network=network)
    np.testing.assert_array_equal(weights.theta(center), played(start), strict=True)
    moved = center.child(9, 0.125)
    np.testing.assert_array_equal(weights.theta(moved), played(start.child(9, 0.125)), strict=True)


def test_antithetic_children_lie_on_both_sides(weights):
    center = Genome(Center(np.zeros(26)), network=1)
    plus, minus = (weights.theta(center.child(7, scale)) for scale in (0.5, -0.5))
    np.testing.assert_array_equal(plus, -minus)
    np.testing.assert_array_equal(plus, weights.noise_sum([7], [0.5], 1))


def test_a_center_of_another_size(weights):
    with pytest.raises(UserError, match="3 weights, .* 26 .*network 1"):
        weights.theta(Genome(Center([1.0, 2.0, 3.0]), network=1))
