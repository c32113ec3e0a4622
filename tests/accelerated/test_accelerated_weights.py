"""Weights decoded by JAX are bit-identical to the native core's, and networks' outputs agree."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.core.genome import Center, Genome
from neuroevo.native.noise import noise_sum
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.networks.network import Network

# JAX is imported by the tests that use it, not by every process that collects them: it starts threads.
SEEDS = st.integers(0, 2**63 - 1)
# Without subnormal numbers, which JAX takes as zeros on some processors and which noise and weights never are.
FLOATS = st.floats(-1e6, 1e6, width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)


def text_of(name):
    network = Network(name)
    if name == "mlp":
        return network_text(lambda line, outputs: network.lines(line, outputs, True), "float32", (27,), 8)
    return network_text(lambda line, outputs: network.lines(line, outputs, False), "uint8", (84, 84, 4), 18)


def rows_of(text, kind="AcceleratedRows"):
    from neuroevo.accelerated import weights

    return getattr(weights, kind)(text, NativeWeights([text]).dimension(0))


def bits(array):
    return np.asarray(array, np.float32).view(np.uint32)


@pytest.mark.parametrize("name", ["mlp", "model"])
def test_weights_are_those_of_the_native_core(name):
    text = text_of(name)
    genome = Genome(3).child(2**62 + 5, 0.002).child(17, 0.5).child(2**32, -0.02)
    theta = NativeWeights([text]).theta(genome)
    np.testing.assert_array_equal(bits(rows_of(text).rows([genome])[0]), bits(theta))


@pytest.mark.parametrize("kind", ["AcceleratedRows", "NativeRows"])
def test_rows_of_all_kinds_of_genomes(kind):
    text = text_of("mlp")
    native, rows = NativeWeights([text]), rows_of(text, kind)
    center = Center(native.theta(Genome(9).child(8, 1.0)))
    parent = Genome(1).child(4, 0.25)
    genomes = [Genome(1), Genome(2), parent, parent.child(6, 0.5), parent.child(7, -0.5), Genome(center)]
    genomes += [Genome(center).child(11, 0.02), Genome(center).child(11, -0.02), None]
    found = np.asarray(rows.rows(genomes))
    for genome, row in zip(genomes[:-1], found, strict=False):
        np.testing.assert_array_equal(bits(row), bits(native.theta(genome)))
    np.testing.assert_array_equal(found, np.asarray(rows.rows(genomes)))  # what is kept is the same
    np.testing.assert_array_equal(np.asarray(rows.rows(genomes[::-1])), found[::-1])


@given(SEEDS, st.integers(1, 300))
def test_noise_is_that_of_the_native_core(seed, count):
    from neuroevo.accelerated import noise

    native = noise_sum([seed], [1.0], count)
    ones = np.ones(300, np.float32)
    np.testing.assert_array_equal(bits(noise.initial([seed], ones)[0, :count]), bits(native))


@given(FLOATS, FLOATS, FLOATS)
def test_a_multiply_add_rounds_once(a, b, c):
    _check_fma(a, b, c)


@pytest.mark.parametrize(
    "a, b, c",
    [
        (1 + 2.0**-23, 1 + 2.0**-23, 2.0**-70),  # rounding to float64 first would lose the addend
        (1 + 2.0**-12, 1 + 2.0**-12, -(2.0**-60)),  # halfway between two float32 but for the addend
        (1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60),
        (1 + 2.0**-12, 1 + 2.0**-12, 0.0),
    ],
)
def test_a_multiply_add_near_halves(a, b, c):
    _check_fma(a, b, c)


def _check_fma(a, b, c):
    import jax

    from neuroevo.accelerated import noise

    with jax.experimental.enable_x64():
        arrays = (jax.numpy.asarray([value], jax.numpy.float32) for value in (a, b, c))
        found = Fraction(float(jax.jit(noise.fma)(*arrays)[0]))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    nearest = np.float32(float(exact))  # within one place of the right one
    neighbors = [Fraction(float(np.nextafter(nearest, np.float32(to)))) for to in (-np.inf, np.inf)]
    distances = [abs(each - exact) for each in (Fraction(float(nearest)), *neighbors)]
    smallest_normal = Fraction(float(np.finfo(np.float32).tiny))
    if abs(exact) >= smallest_normal or exact == 0:
        assert abs(found - exact) == min(distances)
        if distances.count(min(distances)) > 1:  # a tie goes to the even one
            assert int(np.float32(float(found)).view(np.uint32)) % 2 == 0


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
