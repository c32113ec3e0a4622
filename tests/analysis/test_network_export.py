"""`neuroevo export`: outputs against the NumPy reference and the population's op, and episodes against `evaluate`, with
the files read in a process without neuroevo."""

import json
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from neuroevo.analysis import exported_network, keras_model, network_export, onnx_model
from neuroevo.analysis.evaluation import episode_seeds
from neuroevo.analysis.exported_network import Exported
from neuroevo.cli import app
from neuroevo.core.genome import Genome, to_json
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.networks.architectures import NETWORKS, input_line, to_text
from neuroevo.networks.layers import unpack_weights
from neuroevo.rollout import evaluator
from neuroevo.runs.reader import RunReader
from tests.ops.test_population_ops import CASES, layer_lists, observations_for, thetas_for
from tests.support.population_reference import OpPopulation, ReferenceNetwork
from tests.support.runs import new_run

SCREEN = input_line("uint8", (84, 84, 4))
GENOME = Genome(7).child(8, 0.002).child(9, 0.002)


def export_run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def real_observations(count):
    """Return observations of Frostbite during random play, uint8 [count, 84, 84, 4]."""
    pool, rng = EnvPool(registry.resolve("frostbite"), 4), np.random.default_rng(0)
    slots, seen = range(4), []
    pool.reset(slots, range(4), [0] * 4)
    while len(seen) * 4 < count:
        seen.append(pool.observe(slots))
        for _ in range(5):
            pool.step(slots, rng.integers(pool.num_actions, size=4))
    return np.concatenate(seen)[:count]


def op_outputs(text, genome, observations):
    """Return the outputs of the population's op, float32 [K, A], and the weights, both computed by the ops."""
    population = OpPopulation([text], 1)
    population.init([0], [0], [genome.root])
    for seed, scale, _ in genome.mutations:
        population.perturb([0], [0], [seed], [scale])
    return population.forward([0] * len(observations), observations), population.read([0])[0]


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "virtual_bn"])  # in test_virtual_bn.py
def test_outputs_equal_the_op_on_real_observations(name):
    text, observations = to_text(NETWORKS[name](SCREEN, 18)), real_observations(40)
    expected, theta = op_outputs(text, GENOME, observations)
    assert np.ptp(expected, axis=0).min() > 1e-3  # the outputs depend on the observations
    model = keras_model.to_keras(Exported(name, text, theta, GENOME, "frostbite"))
    assert {type(layer).__module__.split(".")[0] for layer in model.layers} == {"keras"}
    outputs = model(observations).numpy()
    # Outputs are about 0.03; the linear network's, sums of 28,224 products, are up to 1. The goal is 1e-5.
    assert np.abs(outputs - expected).max() < (1e-5 if name == "linear" else 1e-6)
    assert np.array_equal(outputs.argmax(1), expected.argmax(1))


# Odd strides and paddings, layers without bias, and separate biases: consecutive, at the input, after an activation.
ODD = [
    "input uint8 9 8 2; bias; bias; conv 5 4 3 3 same 1.0; tanh; bias; relu; conv 3 2 3 2 valid 1.0; bias; bias; relu",
    "input float32 7; bias; tanh; dense 5 1.0; dense 4 1.0; bias; tanh; dense 2 1.0;",
    "input float32 3 5; bias; relu; dense 3 1.0; bias",
    "input float32 2 3 4 5; tanh; bias",
    "input uint8 2 1 1; bias; conv 1 2 1 1 valid 1.0; dense 3 1.0",
    "input uint8 7 3 2; bias; conv 2 5 1 1 valid 1.0; bias",
    # Windows narrower than the stride, with and without padding.
    "input uint8 1 2 1; max_pool 1 1 2 same; dense 3 1.0",
    "input uint8 5 4 2; max_pool 2 1 3 same; conv 3 1 1 2 same 1.0; bias",
    "input uint8 7 8 3; avg_pool 3 2 4 same; conv 2 1 2 3 same 1.0; dense 2 1.0",
]


@pytest.mark.parametrize("text", [*(text for text, _ in CASES), *ODD])
def test_outputs_equal_numpy_for_any_layers(text, seed=3):
    rng = np.random.default_rng(seed)
    network = ReferenceNetwork([line.strip() for line in text.strip("; ").split(";")])
    theta, observations = thetas_for(network, 1, rng)[0], observations_for(network, 6, rng)
    exported = Exported("network", text, theta, GENOME, "none")
    model = keras_model.to_keras(exported)
    expected = network.forward(theta, observations)
    assert model.output_shape == (None, expected.shape[1])
    session = onnxruntime.InferenceSession(onnx_model.to_onnx(exported).SerializeToString())
    assert session.get_outputs()[0].shape == ["K", expected.shape[1]]
    (by_onnx,) = session.run(None, {"observation": observations})
    for outputs in (model(observations).numpy(), by_onnx):
        assert np.abs(outputs - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())


@settings(max_examples=10, deadline=None)
@given(layer_lists(), st.integers(0, 2**32))
def test_outputs_equal_numpy_for_random_layers(layers, seed):
    test_outputs_equal_numpy_for_any_layers("; ".join(layers), seed)


def test_environments_of_any_name(tmp_path):
    """A model's name must not contain / or :."""
    import tensorflow as tf

    for env in ("ALE/Frostbite-v5", "gymnasium:ALE/Pong-v5"):
        network = Exported(
            f"{env}_mlp_generation_0", "input float32 2; dense 3 1.0", np.ones(6, np.float32), GENOME, env
        )
        assert keras_model.to_keras(network).name == env.replace(":", "_").replace("/", "_") + "_mlp_generation_0"
        path = tmp_path / network.name.replace("/", "-")
        network_export.FORMATS["savedmodel"].save(network, path)
        (outputs,) = tf.saved_model.load(path).signatures["serving_default"](tf.constant([[1.0, 2.0]])).values()
        assert outputs.numpy().tolist() == [[3.0, 3.0, 3.0]]


@pytest.mark.parametrize(
    ("low", "high", "line_end"),
    [
        ([-2, -2], [0.4, 0.4], "are low + (clip(y, -1, 1) + 1) / 2 * (high - low), where low = -2.0 and high = 0.4"),
        ([-1, 0], [np.inf, 0.1], "/ 2 * (high - low), where low = [-1.0, 0.0] and high = [inf, 0.1], or y itself where "
         "high - low is not finite"),
        ([-3e38, 0], [3e38, np.inf], "an action's numbers are y"),
    ],
)  # fmt: skip
def test_bounds_are_printed(low, high, line_end):
    bounds = {"action_low": np.array(low, np.float32), "action_high": np.array(high, np.float32)}
    text, theta = "input float32 3; dense 2 1.0", np.ones(6, np.float32)
    line = exported_network.how_to_act(Exported("network", text, theta, GENOME, "none", **bounds))
    assert line.startswith("its output y is float32 [K, 2]; ") and line.endswith(line_end)


def test_a_theta_that_does_not_fit():
    text = "input float32 3; dense 2 1.0; bias"
    for size, message in [(7, "7 weights, too few"), (9, "9 weights, .* takes 8")]:
        with pytest.raises(ValueError, match=message):
            unpack_weights(text, np.zeros(size, np.float32))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A real run on Frostbite with the small network."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with evaluator.LocalEvaluator("frostbite", "model") as plays:
        training = {"seed": 0, "generations": 3, "max_episode_steps": 60, "validation_episodes": 2, "test_episodes": 0}
        new_run(path, plays, training=training, algorithm={"sigma": 0.005})
    assert RunReader(path).elite(0)[1] != RunReader(path).elite(2)[1]
    return path


@pytest.fixture(scope="module")
def exported(path, tmp_path_factory):
    """Paths of the run's elite in every format, by format."""
    folder = tmp_path_factory.mktemp("exported")
    paths = {form: folder / f"elite{chosen.suffix}" for form, chosen in network_export.FORMATS.items()}
    for form, out in paths.items():
        result = export_run(path, "--format", form, "--out", out)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == (
            f"wrote {out}: elite of generation 2, 1,008,450 weights, as {form}\n"
            "its output is float32 [K, 18]; the action is the index of the largest output, from 0\n"
        )
    assert sorted(folder.iterdir()) == sorted(paths.values())
    return paths


# Program that reads the exports without neuroevo.
ALONE = """
import sys
import numpy as np
sys.modules["neuroevo"] = None
keras_path, savedmodel_path, onnx_path, observations, out = sys.argv[1:]
observations = np.load(observations)
import onnxruntime
(of_onnx,) = onnxruntime.InferenceSession(onnx_path).run(["outputs"], {"observation": observations})
import tensorflow as tf
signature = tf.saved_model.load(savedmodel_path).signatures["serving_default"]
(of_savedmodel,) = signature(tf.constant(observations)).values()
import keras
of_keras = keras.models.load_model(keras_path).predict(observations, verbose=0)
np.savez(out, keras=of_keras, savedmodel=of_savedmodel, onnx=of_onnx)
assert not any(name.startswith("neuroevo.") for name in sys.modules)
"""


@pytest.fixture(scope="module")
def outputs_alone(exported, tmp_path_factory):
    """Outputs of the models without neuroevo, by format, and the common observations."""
    folder, observations = tmp_path_factory.mktemp("alone"), real_observations(30)
    np.save(folder / "observations.npy", observations)
    arguments = [
        *(exported[form] for form in ("keras", "savedmodel", "onnx")),
        folder / "observations.npy",
        folder / "outputs.npz",
    ]
    subprocess.run([sys.executable, "-c", ALONE, *map(str, arguments)], cwd=folder, check=True)
    with np.load(folder / "outputs.npz") as file:
        return dict(file), observations


@pytest.mark.parametrize("form", ["keras", "savedmodel", "onnx"])
def test_usable_without_this_package(path, outputs_alone, form):
    outputs, observations = outputs_alone[0][form], outputs_alone[1]
    genome = RunReader(path).elite()[1].genome
    layers = NETWORKS["model"](SCREEN, 18)
    expected, theta = op_outputs(to_text(layers), genome, observations)
    assert outputs.dtype == np.float32
    assert np.abs(outputs - expected).max() < 1e-6  # outputs are about 0.03; the goal is 1e-5
    assert np.abs(outputs - ReferenceNetwork(layers).forward(theta, observations)).max() < 1e-5


def test_the_exported_model_plays_as_evaluate(path, exported):
    """All episodes are played in parallel, with Keras evaluating the network."""
    import keras

    model = keras.models.load_model(exported["keras"])
    seeds, max_episode_steps = episode_seeds(6), 120
    pool = EnvPool(registry.resolve("frostbite"), len(seeds))
    live = np.arange(len(seeds))
    returns, steps = np.zeros(len(seeds)), np.zeros(len(seeds), np.int64)
    pool.reset(live, seeds, [max_episode_steps * pool.frame_skip] * len(seeds))
    while live.size:
        rewards, dones = pool.step(live, model(pool.observe(live)).numpy().argmax(axis=1))
        returns[live] += rewards
        steps[live] += 1
        live = live[~dones]
    result = CliRunner().invoke(
        app, ["evaluate", str(path), "--episodes", "6", "--max-episode-steps", str(max_episode_steps), "--json"]
    )
    row = json.loads(result.stdout)
    assert row["seeds"] == seeds
    assert row["returns"] == returns.tolist()
    assert row["steps"] == steps.tolist()
    assert max(returns) > 0


def test_arrays(path, exported):
    with np.load(exported["npz"], allow_pickle=False) as file:
        arrays = dict(file)
    assert {name: arrays[name].shape for name in list(arrays)[:8]} == {
        "conv_1.kernel": (8, 8, 4, 16), "conv_1.bias": (16,), "conv_2.kernel": (4, 4, 16, 32), "conv_2.bias": (32,),
        "dense_1.kernel": (11 * 11 * 32, 256), "dense_1.bias": (256,), "dense_2.kernel": (256, 18),
        "dense_2.bias": (18,),
    }  # fmt: skip
    assert list(arrays)[8:] == ["network", "dtype", "genome", "env"]
    genome = RunReader(path).elite()[1].genome
    assert json.loads(str(arrays["genome"])) == to_json(genome)
    assert str(arrays["network"]) == to_text(NETWORKS["model"](SCREEN, 18))
    assert str(arrays["env"]) == "frostbite"
    _, theta = op_outputs(str(arrays["network"]), genome, real_observations(1))
    assert np.array_equal(np.concatenate([array.ravel() for array in list(arrays.values())[:8]]), theta)


def test_another_generation_and_the_default_name(path):
    result = export_run(path, "--format", "npz", "--generation", 0)
    assert result.exit_code == 0, result.stderr
    out = path / "elite-000000.npz"
    with np.load(out, allow_pickle=False) as file:
        assert json.loads(str(file["genome"])) == to_json(RunReader(path).elite(0)[1].genome)
    out.unlink()


@pytest.mark.parametrize("form", network_export.FORMATS)
def test_what_is_there_is_replaced_only_by_force(path, exported, tmp_path, form):
    out = tmp_path / exported[form].name
    copy = shutil.copytree if exported[form].is_dir() else shutil.copy
    copy(exported[form], out)
    old = contents(tmp_path)
    result = export_run(path, "--format", form, "--out", out, "--generation", 0)
    assert result.exit_code == 2
    assert result.stderr == f"neuroevo: {out} exists already; pass --force to replace it, or --out for another name\n"
    assert contents(tmp_path) == old
    result = export_run(path, "--format", form, "--out", out, "--generation", 0, "--force")
    assert result.exit_code == 0, result.stderr
    new = contents(tmp_path)
    assert new.keys() == old.keys() and new != old


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("form", "there"), [("keras", True), ("savedmodel", True), ("npz", True), ("npz", False)])
def test_a_failed_export_changes_nothing(path, exported, tmp_path, monkeypatch, form, there):
    out = tmp_path / exported[form].name
    if there:
        (shutil.copytree if exported[form].is_dir() else shutil.copy)(exported[form], out)
    old = contents(tmp_path)
    chosen = network_export.FORMATS[form]

    def disk_full(network, aside):
        chosen.save(network, aside)
        assert aside.exists() and aside.parent == tmp_path
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(network_export.FORMATS, form, network_export.Format(chosen.suffix, chosen.mark, disk_full))
    result = export_run(path, "--format", form, "--out", out, "--force")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert contents(tmp_path) == old
    assert list(tmp_path.iterdir()) == [out] * there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "there is no run in absent"),
        (["RUN", "--format", "tflite"], "'tflite' is not one of 'keras', 'savedmodel', 'onnx', 'npz'"),
        (["RUN", "--generation", "3"], "expected one in [0, 2]"),
        (["RUN", "--out", "elite.h5"], "path is elite.h5, expected a name that ends in .keras, as the format is keras"),
        (["RUN", "--out", "absent/elite.keras"], "cannot write absent/elite.keras: there is no folder absent"),
        (["RUN", "--out", "/proc/elite.keras"], "cannot write /proc/elite.keras: No such file or directory"),
        (["RUN", "--format", "savedmodel", "--out", "RUN", "--force"], "expected a folder with saved_model.pb in it"),
    ],
)
def test_mistakes(path, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = contents(path)
    result = export_run(*(path if argument == "RUN" else argument for argument in arguments))
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr and result.stdout == ""
    assert contents(path) == before and list(tmp_path.iterdir()) == []


def test_a_folder_where_a_file_is_to_be(path, tmp_path):
    (tmp_path / "a.npz").mkdir()
    result = export_run(path, "--format", "npz", "--out", tmp_path / "a.npz", "--force")
    assert result.exit_code == 2
    assert result.stderr == f"neuroevo: {tmp_path / 'a.npz'} is a folder, expected a file or nothing\n"
