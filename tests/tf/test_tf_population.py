"""Population: weights and outputs are identical to those of genomes."""

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights
from neuroevo.tf import EnvPool, Population


def int64(*values):
    return tf.constant(values, tf.int64)


def test_a_mutated_row_is_the_genome_s_weights():
    pool = EnvPool("Hopper-v5", 1)
    population = Population(pool, 3, name="mlp", hidden=[8])
    population.initialize(int64(0), int64(7))
    population.perturb(int64(2, 1), int64(0, 2), int64(5, 6), tf.constant([0.1, 0.2]))
    genome = Genome(7).child(5, 0.1).child(6, 0.2)
    expected = NativeWeights([population.network]).theta(genome)
    np.testing.assert_array_equal(population.read(int64(1))[0], expected)
    assert population.size == len(expected)


def test_outputs_against_numpy_inside_a_graph():
    pool = EnvPool("Hopper-v5", 4)
    population = Population(pool, 2, name="mlp", hidden=[8])
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(2, population.size)).astype(np.float32)
    population.assign(int64(0, 1), weights)
    pool.reset()
    rows = [1, 0, 1, 1]

    @tf.function
    def act():
        observations = pool.observe()
        outputs = population.forward(int64(*rows), observations)
        return observations, outputs, pool.step(pool.actions(outputs)).rewards

    observations, outputs, rewards = act()
    for row, seen, output in zip(rows, observations.numpy(), outputs.numpy(), strict=True):
        theta = weights[row].astype(np.float64)
        hidden = np.tanh(seen @ theta[:88].reshape(11, 8) + theta[88:96])
        np.testing.assert_allclose(output, np.tanh(hidden @ theta[96:120].reshape(8, 3) + theta[120:]), rtol=1e-4)
    assert rewards.shape == [4]


def test_integer_networks_of_screens():
    pool = EnvPool("pong", 2)
    population = Population(pool, 2, name="model", dtype="int8")
    population.initialize(int64(0, 1), int64(1, 2))
    pool.reset()
    outputs = population.forward(int64(0, 1), pool.observe())
    assert outputs.shape == (2, pool.num_actions) and not np.array_equal(outputs[0], outputs[1])
    assert pool.actions(outputs).numpy().tolist() == np.argmax(outputs, 1).tolist()


@pytest.mark.parametrize(
    ("network", "error", "words"),
    [
        ({"layers": ["lstm 4"]}, UserError, "recurrent"),
        ({"name": "virtual_bn"}, UserError, "reference batch"),
        ({"name": "large_modle"}, ConfigError, "large_model"),
    ],
)
def test_networks_that_are_refused(network, error, words):
    with pytest.raises(error, match=words):
        Population(EnvPool("pong", 1), 1, **network)
