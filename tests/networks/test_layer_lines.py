"""`network.layers`: conversion of each kind of line to the core's text form, and error messages for invalid lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.config.load import load_config, make_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.native.population import Population
from neuroevo.networks.layer_lines import core_layers
from neuroevo.networks.layers import output_size, unpack_weights
from neuroevo.networks.network import Network
from tests.support.runs import TABLES

SCREEN = "input uint8 84 84 4"


@pytest.mark.parametrize(
    ("line", "layers"),
    [
        ("conv 16 8x8/4 same", ["conv 16 8 8 4 same 1.0", "bias"]),
        ("conv 16 3x5", ["conv 16 3 5 1 valid 1.0", "bias"]),
        (" conv  7 2x2/3   valid std=0.5 bias=false", ["conv 7 2 2 3 valid 0.5"]),
        ("dense 512", ["dense 512 1.0", "bias"]),
        ("dense 18 bias=true std=1e-1", ["dense 18 1e-1", "bias"]),
        ("lstm 128", ["lstm 128 1.0"]),
        ("lstm 3 std=0", ["lstm 3 0"]),
        ("max_pool 2x2", ["max_pool 2 2 2 valid"]),
        ("avg_pool 3x3 same", ["avg_pool 3 3 3 same"]),
        ("avg_pool 3x1/2 same", ["avg_pool 3 1 2 same"]),
        ("leaky_relu", ["leaky_relu 0.01"]),
        ("leaky_relu 0.2", ["leaky_relu 0.2"]),
        *((word, [word]) for word in ("relu", "tanh", "silu", "gelu", "layer_norm", "vbn", "bias")),
    ],
)
def test_a_line(line, layers):
    assert core_layers([line]) == layers


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dens 3", "expected a layer of conv, dense, lstm, max_pool, avg_pool, leaky_relu, relu, tanh, silu, gelu, "
         "layer_norm, vbn, bias; did you mean dense?"),
        ("dense", "expected dense UNITS [std=NUMBER] [bias=false]"),
        ("dense 0", "expected dense UNITS"),
        ("dense 3 std=-1", "expected dense UNITS"),
        ("dense 3 std=nan", "expected dense UNITS"),
        ("dense 3 stdd=1", "expected dense UNITS"),
        ("dense 3 bias=no", "expected dense UNITS"),
        ("conv 16 8/4 same", "expected conv FILTERS HEIGHTxWIDTH[/STRIDE] [same|valid]"),
        ("conv 16 8x8/0 same", "expected conv FILTERS"),
        ("conv 16 8x8 padded", "expected conv FILTERS"),
        ("max_pool 2x3", "expected max_pool HEIGHTxWIDTH[/STRIDE]"),
        ("max_pool 2x2 std=1", "expected max_pool"),
        ("lstm 4 bias=false", "expected lstm UNITS [std=NUMBER]"),
        ("leaky_relu x", "expected leaky_relu [SLOPE]"),
        ("relu 6", "expected relu alone"),
        ("", "expected a layer such as"),
    ],
)  # fmt: skip
def test_what_is_no_layer(line, expected):
    with pytest.raises(ConfigError) as raised:
        make_config({**TABLES, "network": {"layers": ["relu", line]}})
    (problem,) = raised.value.problems
    assert problem.key == "network.layers" and expected in str(problem) and repr(line)[1:-1] in str(problem)


@pytest.mark.parametrize("value", [[], "relu", 3, ["relu", 3], None])
def test_what_is_no_list(value):
    table = {"layers": value} if value is not None else {"name": "layers"}
    with pytest.raises(ConfigError, match=r"network\.layers"):
        make_config({**TABLES, "network": table})


def test_layers_take_the_place_of_a_preset_s_network(tmp_path):
    overrides = ['network.layers=["dense 8", "silu"]', "training.generations=1"]
    config = load_config("halfcheetah_ga", overrides)
    assert (config.network.name, config.network.hidden, config.network.activation) == ("layers", None, None)
    assert config.network.layers == ("dense 8", "silu")
    again = tmp_path / "again.toml"
    again.write_text(config.toml())
    assert load_config(str(again)) == config


def test_the_published_networks_by_lines():
    same = {
        "model": ["conv 16 8x8/4 same", "relu", "conv 32 4x4/2 same", "relu", "dense 256", "relu"],
        "nature_dqn": ["conv 32 8x8/4", "relu", "conv 64 4x4/2", "relu", "conv 64 3x3", "relu", "dense 512", "relu"],
        "mlp": ["dense 256", "tanh", "dense 256", "tanh"],
    }
    for name, lines in same.items():
        for continuous in (False, True):
            own, known = Network(layers=lines), Network(name)
            assert own.lines(SCREEN, 18, continuous) == known.lines(SCREEN, 18, continuous)
    lines = [line for first in ("conv 16 8x8/4 same", "conv 32 4x4/2 same", "dense 256")
             for line in (f"{first} bias=false", "vbn", "bias", "relu")]  # fmt: skip
    own = Network(layers=lines)
    assert own.needs_reference
    assert own.lines(SCREEN, 18, False)[:-2] == Network("virtual_bn").lines(SCREEN, 18, False)[:-2]


@pytest.mark.parametrize(
    ("layers", "more", "reason"),
    [
        (
            ["conv 4 3x3", "relu"],
            {},
            "network.layers = ['conv 4 3x3', 'relu']: this network requires images, but Hopper-v5",
        ),
        (["max_pool 2x2"], {}, "this network requires images, but Hopper-v5 has vector observations; expected layers"),
        (["dense 4", "relu"], {"dtype": "int8"}, 'network.dtype = "int8": Hopper-v5 has vector observations'),
    ],
)
def test_what_cannot_play_is_told_before_the_start(layers, more, reason):
    with pytest.raises(ConfigError) as raised:
        make_config({**TABLES, "env": {"name": "Hopper-v5"}, "network": {"layers": layers, **more}})
    assert reason.replace("'", '"') in str(raised.value).replace("'", '"')


@pytest.mark.parametrize("kind", ["tanh", "silu", "lstm 4", "layer_norm", "max_pool 2x2", "leaky_relu"])
def test_what_integers_lack_is_told_before_the_start(kind):
    table = {"layers": ["conv 4 8x8/4", "relu", kind, "dense 8", "relu"], "dtype": "int8"}
    with pytest.raises(ConfigError, match="which integer networks lack; expected conv, dense, bias, relu, or float32"):
        make_config({**TABLES, "network": table})


def test_what_does_not_fit_its_input_is_told():
    from neuroevo.rollout.evaluator import LocalEvaluator

    network = Network(layers=["conv 4 8x8/4", "relu", "conv 4 30x30", "relu"])
    with pytest.raises(
        UserError, match="layer 4 'conv 4 30 30 1 valid 1.0': a valid kernel of 30x30 does not fit its "
    ):
        LocalEvaluator("frostbite", network)


PLAIN = ["relu", "tanh", "silu", "gelu", "leaky_relu", "layer_norm", "bias"]
LINES = st.one_of(
    st.sampled_from(PLAIN),
    st.builds("dense {}".format, st.integers(1, 9)),
    st.builds("lstm {} std=0.5".format, st.integers(1, 9)),
    st.builds("dense {} bias=false".format, st.integers(1, 9)),
)
WINDOWS = st.builds("{}x{}/{} same".format, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
OF_IMAGES = st.one_of(
    st.sampled_from(PLAIN),
    st.builds("conv {} {}".format, st.integers(1, 5), WINDOWS),
    st.builds("max_pool {}".format, WINDOWS),
    st.builds("avg_pool {}".format, WINDOWS),
)


@given(st.lists(OF_IMAGES, max_size=4), st.lists(LINES, min_size=1, max_size=5), st.integers(1, 6))
def test_any_lines_make_a_network_of_which_python_and_the_core_say_the_same(first, then, outputs):
    text = "; ".join(Network(layers=[*first, *then]).lines("input uint8 7 9 2", outputs, False))
    population = Population([text], 1)
    population.init([0], [0], [3])
    (dimension,) = population.dimensions
    layers = unpack_weights(text, population.read([0])[0])
    assert (population.outputs, output_size(text), layers.outputs) == (outputs, outputs, outputs)
    assert population.recurrent == layers.recurrent == any(line.startswith("lstm") for line in then)
    assert dimension == sum(
        array.size
        for layer in layers.layers
        for array in (layer.kernel, layer.recurrent_kernel, layer.bias)
        if array is not None
    )
    for layer in layers.layers:  # initial weights: scaled noise, and biases 0
        assert layer.bias is None or not layer.bias.any()
