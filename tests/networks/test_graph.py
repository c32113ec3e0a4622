"""Graph layers from Python: random graphs compared with NumPy, and supported and unsupported exports."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.analysis.exported_network import Exported
from neuroevo.analysis.keras_model import to_keras
from neuroevo.analysis.network_export import to_arrays
from neuroevo.analysis.onnx_model import to_onnx
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.native.population import Population
from neuroevo.networks.layers import is_recurrent, output_size, unpack_weights


@st.composite
def graphs(draw):
    """Return the text of a network that consists of a graph layer."""
    inputs, hidden, outputs = draw(st.integers(1, 6)), draw(st.integers(0, 6)), draw(st.integers(1, 4))
    possible = [
        (start, end) for end in range(inputs, inputs + hidden + outputs) for start in range(min(end, inputs + hidden))
    ]
    edges = [edge for edge in possible if draw(st.booleans())]
    listed = "".join(f" {start}>{end}" for start, end in edges)
    return f"input float32 {inputs}; graph {hidden + outputs} {outputs} 1{listed}"


def by_hand(text, theta, observation):
    """Return the outputs in float64."""
    (layer,) = unpack_weights(text, theta).layers
    values = list(observation)
    for unit, bias in enumerate(layer.bias):
        into = layer.edges[:, 1] == len(values)
        total = bias + sum(layer.kernel[into].astype(float) * np.array(values)[layer.edges[into, 0]])
        values.append(np.tanh(total) if unit < len(layer.bias) - layer.outputs else total)
    return np.array(values[-layer.outputs :])


@given(graphs(), st.integers(0, 2**63 - 1))
def test_the_core_computes_what_numpy_does(text, seed):
    population = Population([text], 1)
    population.init([0], [0], [seed])
    (theta,) = population.read([0])
    observations = np.random.default_rng(seed).normal(size=(5, *population.observation_shape)).astype(np.float32)
    out = population.forward([0] * 5, observations, output_size(text))
    assert len(out) == 5 and not is_recurrent(text)
    np.testing.assert_allclose(out, [by_hand(text, theta, each) for each in observations], rtol=1e-4, atol=1e-4)


def test_exports():
    text = "input float32 2; graph 3 2 0.5 0>2 1>3 2>3 2>4; tanh"
    network = Exported("neat", text, np.arange(7, dtype=np.float32), Genome(3), "CartPole-v1")
    arrays = to_arrays(network)
    np.testing.assert_array_equal(arrays["graph_1.edges"], [[0, 2], [1, 3], [2, 3], [2, 4]])
    np.testing.assert_array_equal(arrays["graph_1.kernel"], np.float32([0, 1, 2, 3]))
    np.testing.assert_array_equal(arrays["graph_1.bias"], np.float32([4, 5, 6]))
    for call in (to_keras, to_onnx):
        with pytest.raises(UserError, match="neat has a graph layer, .* expected the format npz"):
            call(network)
