"""Virtual batch normalization: statistics and outputs against NumPy in double precision and the batch normalization of
TensorFlow and Keras; all backends are bit-identical, through the TensorFlow ops and through the C interface."""

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.analysis import keras_model, network_export, onnx_model
from neuroevo.analysis.exported_network import Exported
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.genome import Genome
from neuroevo.native import library, trace
from neuroevo.native.population import Population
from neuroevo.networks.architectures import NETWORKS, input_line, to_text, virtual_bn
from neuroevo.networks.layers import unpack_weights
from neuroevo.networks.network import Network, check
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.ops.test_population_ops import observations_for, thetas_for
from tests.support import cuda_emulated
from tests.support.population_reference import OpPopulation, ReferenceNetwork, bits

SCREEN = input_line("uint8", (84, 84, 4))
DENSE = "input float32 5; dense 4 1.0; vbn; bias; relu; dense 3 1.0; vbn; tanh"
GENOME = Genome(7).child(8, 0.02)


@pytest.fixture(scope="module")
def backends():
    """Backends of native.Population available on this machine."""
    names = ["cpu", "reference"]
    if cuda_emulated.LIBRARY.is_file():
        cuda_emulated.load()
        names.append("cuda_emulated")
    return names


def prepared(text, backend, thetas, batch):
    """Return a native.Population with a row for each theta, prepared with the reference batch."""
    population = Population([text], len(thetas), backend)
    population.assign(range(len(thetas)), [0] * len(thetas), thetas)
    population.set_reference(batch)
    population.prepare(range(len(thetas)))
    return population


def moments(values):
    """Return means and factors, float64 [channels] each, of values [..., channels]."""
    values = values.reshape(-1, values.shape[-1]).astype(np.float64)
    return values.mean(0), 1 / np.sqrt(values.var(0) + 1e-3)


def test_the_network_of_the_2018_code():
    layers = virtual_bn(SCREEN, 18)
    # Each layer is normalized before its bias is added, and only the output is not.
    assert layers == [
        SCREEN, "conv 16 8 8 4 same 1.0", "vbn", "bias", "relu", "conv 32 4 4 2 same 1.0", "vbn", "bias", "relu",
        "dense 256 1.0", "vbn", "bias", "relu", "dense 18 1.0", "bias",
    ]  # fmt: skip
    assert NETWORKS["virtual_bn"] is virtual_bn
    assert check(Network("virtual_bn"), "frostbite", True, False) == []
    assert [name for name in NETWORKS if Network(name).needs_reference] == ["virtual_bn"]
    assert OpPopulation([to_text(layers)], 1).dimensions == [1_008_450]


def test_dense_layers_against_numpy(backends):
    rng = np.random.default_rng(1)
    batch, seen = rng.normal(2, 3, (50, 5)).astype(np.float32), rng.normal(2, 3, (9, 5)).astype(np.float32)
    theta = rng.standard_normal((1, 5 * 4 + 4 + 4 * 3), np.float32)
    first, bias, second = theta[0, :20].reshape(5, 4), theta[0, 20:24], theta[0, 24:].reshape(4, 3)

    def hidden(x):
        return np.maximum((x.astype(np.float64) @ first - mean_1) * factor_1 + bias, 0)

    mean_1, factor_1 = moments(batch.astype(np.float64) @ first)
    mean_2, factor_2 = moments(hidden(batch) @ second)
    expected = np.tanh((hidden(seen) @ second - mean_2) * factor_2)
    for backend in backends:
        population = prepared(DENSE, backend, theta, batch)
        statistics = np.concatenate([mean_1, factor_1, mean_2, factor_2])
        np.testing.assert_allclose(population.statistics(0), statistics, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(population.forward([0] * 9, seen, 3), expected, atol=5e-6)


@pytest.mark.parametrize("shape", [(7,), (4, 6), (5, 4, 3)])
def test_a_normalized_input_against_keras(backends, shape):
    rng = np.random.default_rng(2)
    batch = rng.normal(3, 2, (64, *shape)).astype(np.float32)
    layer = keras.layers.BatchNormalization(center=False, scale=False, epsilon=1e-3)
    expected = layer(batch, training=True).numpy()  # normalized by the channel's moments in this batch
    text = f"{input_line('float32', shape)}; vbn; bias"
    for backend in backends:
        population = prepared(text, backend, np.zeros((1, shape[-1]), np.float32), batch)
        outputs = population.forward([0] * 64, batch, expected[0].size)
        np.testing.assert_allclose(outputs, expected.reshape(64, -1), atol=2e-6)


@pytest.mark.parametrize("count", [1, 16])
def test_the_network_of_the_2018_code_against_tensorflow(backends, count):
    rng = np.random.default_rng(3)
    network, text = ReferenceNetwork(virtual_bn(SCREEN, 18)), to_text(virtual_bn(SCREEN, 18))
    thetas, batch = thetas_for(network, 2, rng), observations_for(network, count, rng)
    seen = observations_for(network, 3, rng)
    outputs = [prepared(text, b, thetas, batch).forward([0, 1, 0], seen, 18) for b in ("cpu", "reference")]
    assert np.array_equal(bits(outputs[0]), bits(outputs[1]))
    expected = np.stack([network.forward(thetas[i % 2], seen[i : i + 1], batch)[0] for i in range(3)])
    assert np.abs(outputs[0] - expected).max() <= 1e-4 * np.abs(expected).max()


@st.composite
def layer_lists(draw):
    """Small networks with vbn anywhere, also twice in a row."""
    dims = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    layers = [input_line(draw(st.sampled_from(["uint8", "float32"])), dims)]
    image = len(dims) == 3
    for kind in draw(st.lists(st.sampled_from(["conv", "dense", "bias", "relu", "tanh", "vbn", "vbn"]), max_size=7)):
        if kind == "conv" and image:
            kernel = draw(st.integers(1, 5)), draw(st.integers(1, 5))
            layers.append(f"conv {draw(st.integers(1, 35))} {kernel[0]} {kernel[1]} {draw(st.integers(1, 3))} same 1.0")
        elif kind == "dense":
            layers.append(f"dense {draw(st.integers(1, 40))} 1.0")
            image = False
        elif kind != "conv":
            layers.append(kind)
    return [*layers, draw(st.sampled_from(["dense 3 1.0", "bias"])), draw(st.sampled_from(["vbn", "relu"]))]


@settings(max_examples=60, deadline=None)
@given(layer_lists(), st.integers(1, 20), st.integers(0, 2**32))
def test_backends_agree_bit_for_bit(backends, layers, count, seed):
    rng = np.random.default_rng(seed)
    network = ReferenceNetwork(layers)
    thetas, batch = thetas_for(network, 2, rng), observations_for(network, count, rng)
    seen = observations_for(network, 5, rng)
    made = [prepared("; ".join(layers), backend, thetas, batch) for backend in backends]
    statistics = [bits(population.statistics(row)) for population in made for row in (0, 1)]
    outputs = [bits(population.forward([0, 1, 1, 0, 1], seen, network.outputs)) for population in made]
    for i in range(1, len(made)):
        assert np.array_equal(statistics[2 * i], statistics[0])
        assert np.array_equal(statistics[2 * i + 1], statistics[1])
        assert np.array_equal(outputs[i], outputs[0])


@settings(max_examples=40, deadline=None)
@given(layer_lists(), st.integers(2, 20), st.integers(0, 2**32))
def test_statistics_are_those_of_what_comes_before(layers, count, seed):
    # The inputs of a vbn layer are the outputs of the network truncated before it.
    rng = np.random.default_rng(seed)
    network = ReferenceNetwork(layers)
    theta, batch = thetas_for(network, 1, rng), observations_for(network, count, rng)
    whole = unpack_weights("; ".join(layers), theta[0], prepared("; ".join(layers), "cpu", theta, batch).statistics(0))
    found = iter(layer for layer in whole.layers if layer.kind == "vbn")
    for i, layer in enumerate(layers):
        if layer != "vbn":
            continue
        begin = ReferenceNetwork(layers[:i])
        if begin.dimension == 0:
            values = batch * (np.float32(1 / 255) if begin.dtype == "uint8" else np.float32(1))
            if i > 1:  # relu, tanh and vbn directly on the input are covered by other tests
                next(found)
                continue
        else:
            part = prepared("; ".join(layers[:i]), "cpu", theta[:, : begin.dimension], batch)
            values = part.forward([0] * count, batch, begin.outputs)
        stage = next(found)
        mean, factor = moments(values.reshape(count, -1, len(stage.mean)))
        size = np.abs(values).max()
        np.testing.assert_allclose(stage.mean, mean, rtol=1e-6, atol=1e-6 * size)
        np.testing.assert_allclose(stage.factor, factor, rtol=1e-5 * (1 + size))


@pytest.mark.parametrize("threads", [1, 3, 40])
def test_threads_and_company_change_nothing(threads):
    text = to_text(virtual_bn(SCREEN, 6))
    batch = np.random.default_rng(5).integers(256, size=(20, 84, 84, 4), dtype=np.uint8)
    before = library.get_threads()
    library.set_threads(threads)
    try:
        population, alone = Population([text], 3), Population([text], 3)
    finally:
        library.set_threads(before)
    for each in (population, alone):
        each.init(range(3), [0] * 3, range(3))
        each.set_reference(batch)
    population.prepare([2, 0, 1, 2])
    for row in (1, 2, 0):
        alone.prepare([row])
    expected = Population([text], 1)
    expected.init([0], [0], [1])
    expected.set_reference(batch)
    expected.prepare([0])
    for each in (population, alone):
        assert np.array_equal(bits(each.statistics(1)), bits(expected.statistics(0)))
    assert np.array_equal(
        bits(population.forward([1, 0, 1, 2, 1], batch[:5], 6)[[0, 2, 4]]),
        bits(expected.forward([0] * 3, batch[[0, 2, 4]], 6)),
    )


def test_a_trace_tells_of_the_rows_that_were_prepared():
    population = Population([DENSE], 3)
    population.init(range(3), [0] * 3, range(3))
    population.set_reference(np.ones((4, 5), np.float32))
    trace.start()
    try:
        for rows in ([2, 0, 2], [0, 1], [0, 1, 2], []):
            population.prepare(rows)
    finally:
        spans = trace.stop()
    calls = spans.where(spans.kind == trace.CALL)
    assert calls.name.tolist() == ["prepare"] * 2 and calls.argument.tolist() == [2, 1]


def test_constant_reference_frames(backends):
    # With variance 0, the factor is 1 / sqrt(1e-3), and values equal to the reference become 0.
    theta = np.random.default_rng(6).standard_normal((1, 3 * 3 * 2 * 5), np.float32)
    batch = np.full((7, 6, 6, 2), 200, np.uint8)
    text = "input uint8 6 6 2; vbn; conv 5 3 3 1 valid 1.0; vbn"
    expected = [np.float32(200) * np.float32(1 / 255)] * 2 + [np.float32(1 / np.sqrt(1e-3))] * 2
    expected += [0] * 5 + [np.float32(1 / np.sqrt(1e-3))] * 5
    for backend in backends:
        population = prepared(text, backend, theta, batch)
        assert np.array_equal(population.statistics(0), np.array(expected, np.float32))
        assert not population.forward([0], batch[:1], 4 * 4 * 5).any()


def test_two_networks_through_the_ops():
    plain = "input float32 5; dense 3 1.0"
    rng = np.random.default_rng(7)
    batch, seen = rng.standard_normal((12, 5), np.float32), rng.standard_normal((4, 5), np.float32)
    population, alone = OpPopulation([DENSE, plain], 4), OpPopulation([DENSE], 2)
    tf_ops = load_ops()
    population.init(range(4), [0, 1, 0, 1], range(4))
    alone.init([0, 1], [0, 0], [0, 2])
    tf_ops.population_prepare(population.handle, tf.constant([1, 3], tf.int64))  # already prepared
    for each, rows in ((population, [2, 3, 0, 2]), (alone, [0, 1])):
        tf_ops.population_set_reference(each.handle, batch)
        tf_ops.population_prepare(each.handle, tf.constant(rows, tf.int64))
    outputs = population.forward([2, 1, 0, 3], seen)
    assert np.array_equal(bits(outputs[[0, 2]]), bits(alone.forward([1, 0], seen[[0, 2]])))

    @tf.function
    def refill(dst):  # as in a lane's loop: filled, then prepared, then played
        perturb = tf_ops.population_perturb(population.handle, dst, tf.constant([1], tf.int64), dst, [0.5], [-1])
        with tf.control_dependencies([perturb]):
            prepare = tf_ops.population_prepare(population.handle, dst)
        with tf.control_dependencies([prepare]):
            return tf_ops.population_forward(population.handle, dst, seen[:1])

    assert refill(tf.constant([3], tf.int64)).shape == (1, 3)
    population.perturb([2], [0], [5], [0.1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 2 .*not prepared"):
        population.forward([0, 2], seen[:2])
    population.forward([0, 3], seen[:2])


def test_errors_of_the_ops():
    population, tf_ops = OpPopulation([DENSE], 2), load_ops()
    batch, rows = np.zeros((3, 5), np.float32), tf.constant([0], tf.int64)
    population.init([0], [0], [1])
    for call, message in [
        (lambda: tf_ops.population_prepare(population.handle, rows), "no reference batch is set"),
        (lambda: tf_ops.population_prepare(population.handle, rows + 1), "row 1 has no network yet"),
        (lambda: tf_ops.population_prepare(population.handle, rows + 2), r"row 2 is out of range \[0, 2\)"),
        (lambda: tf_ops.population_set_reference(population.handle, batch[:, :4]), r"'observations' has shape \[3,4\]"),
        (lambda: tf_ops.population_set_reference(population.handle, batch.astype(np.uint8)), "'observations'"),
        (lambda: tf_ops.population_set_reference(population.handle, batch[:0]), "the reference batch has 0"),
        (lambda: tf_ops.population_set_reference(population.handle, np.float32(0)), "rank|shape"),
        (lambda: OpPopulation(["input uint8 5; dense 4 1.0; vbn"], 1, dtype="int8"), "int8: layer 2 'vbn'"),
    ]:
        with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError), match=message):
            call()
    tf_ops.population_set_reference(population.handle, batch)
    with pytest.raises(tf.errors.InvalidArgumentError, match="already set, .*3 observations"):
        tf_ops.population_set_reference(population.handle, batch)


def test_errors_of_the_c_interface(backends):
    batch = np.zeros((3, 5), np.float32)
    for backend in backends:
        population = Population([DENSE], 2, backend)
        population.init([0, 1], [0, 0], [1, 2])
        for wrong in (batch[:, :4], batch[0], batch.astype(np.float64), np.float32(3)):
            with pytest.raises(ValueError, match="observations have dtype"):
                population.set_reference(wrong)
        with pytest.raises(ValueError, match=r"rows has shape \[1, 1\]"):
            population.prepare([[0]])
        with pytest.raises(NativeError, match="row 0 .*no reference batch"):
            population.prepare([0])
        with pytest.raises(NativeError, match="0 observations"):
            population.set_reference(batch[:0])
        population.set_reference(batch)
        with pytest.raises(NativeError, match="is already set"):
            population.set_reference(batch)
        for call in (lambda p: p.forward([1], batch[:1], 3), lambda p: p.statistics(1)):
            with pytest.raises(NativeError, match="row 1 .*not prepared"):
                call(population)


@pytest.mark.parametrize(
    "text", [to_text(virtual_bn(SCREEN, 6)), DENSE, "input uint8 9 8 2; vbn; conv 5 4 3 3 same 1.0; vbn; vbn"]
)
def test_an_exported_network_has_the_statistics_as_constants(text, tmp_path):
    rng = np.random.default_rng(8)
    network = ReferenceNetwork(text.split("; "))
    theta, batch = thetas_for(network, 1, rng), observations_for(network, 10, rng)
    seen, population = observations_for(network, 6, rng), prepared(text, "cpu", theta, batch)
    exported = Exported("net", text, theta[0], GENOME, "frostbite", statistics=population.statistics(0))
    expected = population.forward([0] * 6, seen, network.outputs)
    model = keras_model.to_keras(exported)
    model.save(tmp_path / "net.keras")
    for each in (model, keras.models.load_model(tmp_path / "net.keras")):
        difference = np.abs(each.predict(seen, verbose=0) - expected)
        assert difference.max() <= 2e-5 * np.abs(expected).max()
    session = onnxruntime.InferenceSession(onnx_model.to_onnx(exported).SerializeToString())
    (outputs,) = session.run(None, {"observation": seen})
    assert np.abs(outputs - expected).max() <= 2e-5 * np.abs(expected).max()
    arrays = network_export.to_arrays(exported)
    parts = [array for name, array in arrays.items() if name.startswith("vbn_")]
    assert np.array_equal(np.concatenate(parts), population.statistics(0))


def test_an_export_without_statistics_is_refused():
    text = to_text(virtual_bn(SCREEN, 6))
    exported = Exported("net", text, np.zeros(Population([text], 1).dimensions[0], np.float32), GENOME, "none")
    for call in (keras_model.to_keras, onnx_model.to_onnx, network_export.to_arrays):
        with pytest.raises(UserError, match="net .*vbn .*statistics"):
            call(exported)
    for size in (1, 2 * (16 + 32 + 256) + 1):
        with pytest.raises(ValueError, match=f"statistics has {size:,} numbers, .* takes 608"):
            unpack_weights(text, exported.theta, np.zeros(size, np.float32))
