"""Rows of a population are the weights of its genomes, and JAX computes the outputs of the native core."""

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.networks.network import Network

# JAX is imported by the tests that use it, not by every process that collects them: it starts threads.


def text_of(name):
    network = Network(name)
    if name == "mlp":
        return network_text(lambda line, outputs: network.lines(line, outputs, True), "float32", (27,), 8)
    return network_text(lambda line, outputs: network.lines(line, outputs, False), "uint8", (84, 84, 4), 18)


def bits(array):
    return np.asarray(array, np.float32).view(np.uint32)


def test_rows_of_all_kinds_of_genomes():
    from neuroevo.accelerated.weights import GenomeRows

    text = text_of("mlp")
    native = NativeWeights([text])
    rows = GenomeRows(native)
    center = Center(native.theta(Genome(9).child(8, 1.0)))
    parent = Genome(1).child(4, 0.25)
    genomes = [Genome(1), Genome(2), parent, parent.child(6, 0.5), parent.child(7, -0.5), Genome(center)]
    genomes += [Genome(center).child(11, 0.02), Genome(center).child(11, -0.02), None]
    found = np.asarray(rows.rows(genomes))
    for genome, row in zip(genomes[:-1], found, strict=False):
        np.testing.assert_array_equal(bits(row), bits(native.theta(genome)))
    np.testing.assert_array_equal(found, np.asarray(rows.rows(genomes)))  # what is kept is the same
    np.testing.assert_array_equal(np.asarray(rows.rows(genomes[::-1])), found[::-1])
    younger = genomes[3].child(9, 0.1).child(10, 0.1).child(12, -0.1)  # from a row that is kept
    np.testing.assert_array_equal(bits(rows.rows([younger])[0]), bits(native.theta(younger)))


@pytest.mark.parametrize("later", [0, 1])
def test_other_mutations_than_gaussian_ones_are_refused(later):
    from neuroevo.accelerated.weights import GenomeRows

    native = NativeWeights([text_of("mlp")])
    genome = Genome(1).child(2, 0.5, Scaled(Center(native.theta(Genome(4)))))
    for seed in range(later):
        genome = genome.child(seed, 0.5)
    with pytest.raises(UserError, match="expected Gaussian noise on the accelerator"):
        GenomeRows(native).rows([Genome(3), genome])


OTHER = "input float32 21; dense 19 1.0; bias; layer_norm; leaky_relu 0.2; dense 33 1.0; silu; dense 9 1.0; gelu; bias"


@pytest.mark.parametrize("text", [text_of("mlp"), OTHER], ids=["mlp", "others"])
def test_outputs_are_those_of_the_native_core(text):
    import jax

    from neuroevo.accelerated.networks import forward

    population = Population([text], rows=1)
    random = np.random.default_rng(4)
    shape = population.observation_shape
    observations = random.normal(size=(6, *shape)).astype(np.float32)
    population.init([0], [0], [5])
    native = population.forward([0] * 6, observations, population.outputs)
    theta = population.read([0])[0]
    found = jax.vmap(forward(text), in_axes=(None, 0))(theta, observations)
    np.testing.assert_allclose(found, native, rtol=1e-5, atol=1e-5)
