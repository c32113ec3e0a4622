"""Recurrent networks: steps against NumPy, rollouts against the exported Keras model, both engines, and commands."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import neuroevo
from neuroevo.analysis import keras_model, network_export
from neuroevo.analysis.exported_network import Exported, how_to_act
from neuroevo.cli import app
from neuroevo.core.episode import Episode
from neuroevo.core.errors import NativeError
from neuroevo.core.genome import Genome
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.networks.layers import unpack_weights
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from tests.support.population_reference import bits
from tests.support.runs import config, results

FLAT = "input float32 7; dense 9 1.0; tanh; lstm 12 1.0; dense 4 1.0; bias; lstm 5 1.0; dense 3 1.0"
ATARI = Network(layers=["conv 8 8x8/4 same", "relu", "max_pool 2x2", "lstm 24 std=3", "dense 16", "silu"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_step(layers, x, state):
    """float64 [outputs] of one observation; state: h and c of each lstm layer by its name, which change."""
    for layer in layers:
        if layer.kind == "lstm":
            h, c = state.setdefault(layer.name, np.zeros((2, len(layer.recurrent_kernel))))
            i, f, g, o = np.split(x @ layer.kernel + h @ layer.recurrent_kernel + layer.bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            x = sigmoid(o) * np.tanh(c)
            state[layer.name] = x, c
            continue
        if layer.kernel is not None:
            x = x.reshape(-1) @ layer.kernel.astype(np.float64)
        if layer.bias is not None:
            x = x + layer.bias
        if layer.kind == "tanh":
            x = np.tanh(x)
    return x


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_every_step_is_numpy_s(backend, seed=3):
    rng = np.random.default_rng(seed)
    population = Population([FLAT], 3, backend)
    assert population.recurrent
    population.init([0, 1], [0, 0], [1, 2])
    population.perturb([0, 1], [0, 1], [3, 4], [0.1, 0.1])
    layers = [unpack_weights(FLAT, theta).layers for theta in population.read([0, 1])]
    rows, states = [1, 0, 1], [2, 0, 1]
    population.clear_states(range(3))
    expected_states = [{}, {}, {}]
    for step in range(40):
        if step == 25:  # one slot begins a new episode
            population.clear_states([0])
            expected_states[1] = {}
        seen = rng.normal(size=(3, 7)).astype(np.float32)
        outputs = population.forward(rows, seen, 3, states)
        for k in range(3):
            expected = numpy_step(layers[rows[k]], seen[k].astype(np.float64), expected_states[k])
            np.testing.assert_allclose(outputs[k], expected, rtol=1e-4, atol=2e-6)


def test_states_are_checked():
    population = Population([FLAT], 2)
    population.init([0], [0], [1])
    seen = np.zeros((1, 7), np.float32)
    with pytest.raises(
        NativeError, match="networks are recurrent, and there are 0 states, expected 1, one for each row"
    ):
        population.forward([0], seen, 3)
    with pytest.raises(NativeError, match="state 1 was never cleared: call ClearStates when an episode begins"):
        population.forward([0], seen, 3, [1])
    with pytest.raises(NativeError, match=r"state 2 is out of range \[0, 2\)"):
        population.clear_states([2])
    with pytest.raises(ValueError, match="states"):
        population.forward([0], seen, 3, [[0, 1]])


def plays(engine, lanes, slots, episodes):
    with LocalEvaluator("frostbite", ATARI, engine=engine, lanes=lanes, slots=slots) as evaluator:
        return evaluator.evaluate(episodes)


@pytest.fixture(scope="module")
def episodes():
    genomes = [Genome(seed).child(seed + 9, 0.05) for seed in (1, 2, 3)]
    return [Episode(genome, seed, max_steps=220) for genome in genomes for seed in (11, 12)]


@pytest.fixture(scope="module")
def played(episodes):
    return plays("native", 1, 1, episodes)


def test_rollouts_equal_those_of_the_exported_keras_model(episodes, played):
    """More than 1,000 steps, across episode boundaries."""
    import tensorflow as tf

    with LocalEvaluator("frostbite", ATARI, lanes=1, slots=1) as evaluator:
        (text,) = evaluator.network_texts
        thetas = {episode.genome: evaluator.weights.theta(episode.genome) for episode in episodes}
    pool = EnvPool(registry.resolve("frostbite"), 1)
    chosen, models = set(), {}
    for genome, theta in thetas.items():
        model = keras_model.to_keras(Exported("lstm", text, theta, genome, "frostbite"))
        assert {type(layer).__module__.split(".")[0] for layer in model.layers} == {"keras"}
        models[genome] = tf.function(model)
    for k, episode in enumerate(episodes):
        step = models[episode.genome]
        states = {f"lstm_1_{part}": tf.zeros((1, 24)) for part in ("h", "c")}
        pool.reset([0], [episode.seed], [4 * episode.max_steps])
        returned, steps, done = 0.0, 0, False
        while not done:
            found = step({"observation": tf.constant(pool.observe([0])), **states})
            action = int(tf.argmax(found["outputs"][0]))
            states = {name: found[name] for name in states}
            chosen.add(action)
            (reward,), (done,) = pool.step([0], np.array([action]))
            returned, steps = returned + reward, steps + 1
        assert (returned, steps) == (played.returns[k], played.steps[k])
    assert played.steps.sum() > 1000 and len(chosen) > 1


@pytest.mark.parametrize(("engine", "lanes", "slots"), [("native", 2, 3), ("tensorflow", 2, 2), ("tensorflow", 1, 5)])
def test_neither_engine_nor_lanes_change_a_rollout(episodes, played, engine, lanes, slots):
    """Slots are reused by other episodes, whose networks must not see the earlier states."""
    found = plays(engine, lanes, slots, episodes)
    assert np.array_equal(bits(found.returns), bits(played.returns))
    assert np.array_equal(found.steps, played.steps)


def test_memory_matters(episodes, played):
    """The same weights without a recurrent state have other outcomes."""
    with LocalEvaluator("frostbite", ATARI, lanes=1, slots=1) as evaluator:
        (text,) = evaluator.network_texts
    pool, population = EnvPool(registry.resolve("frostbite"), 1), Population([text], 1)
    returns = []
    for episode in episodes:
        population.init([0], [0], [episode.genome.root])
        for seed, scale, _ in episode.genome.mutations:
            population.perturb([0], [0], [seed], [scale])
        pool.reset([0], [episode.seed], [4 * episode.max_steps])
        returned, done = 0.0, False
        while not done:
            population.clear_states([0])
            outputs = population.forward([0], pool.observe([0]), population.outputs, [0])
            (reward,), (done,) = pool.step([0], pool.actions(outputs))
            returned += reward
        returns.append(returned)
    assert returns != played.returns.tolist()


def test_a_run_is_trained_resumed_rendered_and_exported(tmp_path):
    changes = {
        "env": {"name": "HardMaze-v0"},
        "network": {"layers": ["dense 8", "layer_norm", "gelu", "lstm 6"]},
        "training": {"generations": 2, "max_episode_steps": 50, "validation_episodes": 2, "test_episodes": 2},
    }
    changes["training"] |= {"seed": 5}
    run = neuroevo.train(config(**changes), out=tmp_path / "run")
    again = neuroevo.train(run.path / "config.toml", {"training.generations": 3}, out=tmp_path / "run", resume=True)
    whole = {**changes, "training": {**changes["training"], "generations": 3}}
    other = neuroevo.train(config(**whole), out=tmp_path / "whole")
    assert results(again.path) == results(other.path)
    command = CliRunner()
    result = command.invoke(app, ["evaluate", str(run.path), "--episodes", "3", "--json"])
    assert result.exit_code == 0, result.stderr
    returns = json.loads(result.stdout)["returns"]
    play = ["--episodes", "1", "--max-episode-steps", "50", "--out", str(tmp_path / "video.mp4")]
    result = command.invoke(app, ["render", str(run.path), *play])
    assert result.exit_code == 0, result.stderr
    result = command.invoke(app, ["export", str(run.path), "--format", "npz", "--out", str(tmp_path / "elite.npz")])
    assert result.exit_code == 0, result.stderr
    expected = "; the network is recurrent: its inputs lstm_1_h, lstm_1_c, ... are zeros at the start of an episode"
    assert expected in result.stdout
    with np.load(tmp_path / "elite.npz") as arrays:
        assert arrays["lstm_1.kernel"].shape == (8, 24) and arrays["lstm_1.recurrent_kernel"].shape == (6, 24)
    assert len(returns) == 3


@pytest.mark.parametrize("form", ["keras", "savedmodel", "onnx"])
def test_exports_go_through_files(tmp_path, form):
    import keras
    import tensorflow as tf

    population = Population([FLAT], 1)
    population.init([0], [0], [8])
    population.clear_states([0])
    network = Exported("lstm", FLAT, population.read([0])[0], Genome(8), "none")
    assert "lstm_1_h" in how_to_act(network)
    path = tmp_path / f"elite{network_export.FORMATS[form].suffix}"
    network_export.FORMATS[form].save(network, path)
    if form == "onnx":
        step = _onnx_step(path)
    else:
        model = keras.models.load_model(path) if form == "keras" else tf.saved_model.load(path)
        step = model if form == "keras" else model.serve
    sizes = {"lstm_1_h": 12, "lstm_1_c": 12, "lstm_2_h": 5, "lstm_2_c": 5}
    states = {name: tf.zeros((1, size)) for name, size in sizes.items()}
    rng = np.random.default_rng(1)
    for _ in range(5):
        seen = rng.normal(size=(1, 7)).astype(np.float32)
        found = step({"observation": tf.constant(seen), **states})
        states = {name: found[name] for name in states}
        np.testing.assert_allclose(found["outputs"], population.forward([0], seen, 3, [0]), rtol=1e-4, atol=1e-6)


def _onnx_step(path):
    """Return a function from inputs to outputs, by the names that Keras has for them."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]

    def step(inputs):
        outputs = session.run(names, {name: np.asarray(each) for name, each in inputs.items()})
        return {name.removesuffix("_next"): each for name, each in zip(names, outputs, strict=True)}

    return step
