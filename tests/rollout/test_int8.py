"""Integer networks through the ops, the C interface, the pipeline and the command line: bit-identical to each other and
to NumPy, with mostly the same actions as float32."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.genome import Genome, grow
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.population import Population
from neuroevo.networks import architectures
from neuroevo.networks.architectures import NETWORKS, input_line, to_text
from neuroevo.networks.network import Network
from neuroevo.networks.quantization import quantized
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.system.reading import tomllib
from tests.analysis.test_network_export import real_observations
from tests.ops.test_population_ops import SCREEN, observations_for, thetas_for
from tests.rollout.test_pipeline import LAYOUTS, assert_same, play, some_episodes
from tests.support.int8_reference import outputs, weight_exponent
from tests.support.native_rollout import run_episodes
from tests.support.population_reference import OpPopulation, ReferenceNetwork, bits
from tests.support.runs import count_rows


@st.composite
def integer_layer_lists(draw):
    """Small networks of every kind that can be evaluated in integers."""
    dims = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    layers, image = [input_line("uint8", dims)], dims if len(dims) == 3 else None
    for kind in draw(st.lists(st.sampled_from(["conv", "dense"]), max_size=4)):
        if kind == "conv" and image is not None:
            same = draw(st.booleans())
            kernel = [draw(st.integers(1, 6 if same else side)) for side in image[:2]]
            filters, stride = draw(st.integers(1, 70)), draw(st.integers(1, 4))
            layers.append(f"conv {filters} {kernel[0]} {kernel[1]} {stride} {'same' if same else 'valid'} 1.0")
            image = [-(-(side if same else side - k + 1) // stride) for side, k in zip(image, kernel, strict=False)]
        elif kind == "dense":
            layers.append(f"dense {draw(st.integers(1, 150))} 1.0")
            image = None
        else:
            continue
        layers += ["bias", "relu"] if draw(st.booleans()) else ["relu"]
    last = [["dense 3 1.0"], ["dense 3 1.0", "bias"], ["dense 3 1.0", "bias", "relu"]]
    return [*layers, *draw(st.sampled_from(last))]


@settings(max_examples=120, deadline=None)
@given(integer_layer_lists(), st.integers(1, 12), st.integers(0, 2**32), st.sampled_from([1.0, 1e-6, 3e4]))
def test_any_layer_list_equals_numpy(layers, count, seed, size):
    rng, network, text = np.random.default_rng(seed), ReferenceNetwork(layers), to_text(layers)
    thetas = thetas_for(network, 2, rng) * np.float32(size)
    observations = observations_for(network, count, rng)
    observations[rng.random(observations.shape) < 0.3] = 0
    rows = rng.integers(2, size=count)
    expected = np.array([outputs(layers, thetas[row], seen) for row, seen in zip(rows, observations, strict=True)])
    for backend in ("cpu", "reference"):
        population = OpPopulation([text], 2, backend, "int8")
        population.assign([0, 1], [0, 0], thetas)
        assert np.array_equal(bits(population.forward(rows, observations)), bits(expected))
        assert np.array_equal(bits(population.read([1, 0])), bits(thetas[::-1]))
    population = Population([text], 2, dtype="int8", float_rows=1)
    population.assign([0, 1], [0, 0], thetas)
    assert np.array_equal(bits(population.forward(rows, observations, expected.shape[1])), bits(expected))


@pytest.mark.parametrize("name", ["large_model", "model", "nature_dqn"])
def test_the_networks_equal_numpy(name):
    layers = NETWORKS[name](SCREEN, 18)
    population = OpPopulation([to_text(layers)], 3, dtype="int8", float_rows=2)
    population.init([0], [0], [5])
    population.perturb([1, 2], [0, 0], [6, 6], [0.02, 0.02])
    seen = real_observations(2)
    expected = [outputs(layers, population.read([1])[0], observation) for observation in seen]
    assert np.array_equal(bits(population.forward([1, 1], seen)), bits(np.array(expected)))
    assert np.array_equal(bits(population.forward([2, 2], seen)), bits(np.array(expected)))


def test_actions_are_mostly_those_of_float32():
    """On 160 observations of Frostbite with LargeModels of 30 mutations: 97 to 98% in a trial beforehand."""
    mutations, networks = 30, 5
    text, seen = to_text(NETWORKS["large_model"](SCREEN, 18)), real_observations(160)
    alike = []
    for seed in range(networks):
        exact, integers = (Population([text], 1, dtype=dtype) for dtype in ("float32", "int8"))
        exact.init([0], [0], [seed])
        zeros = [0] * mutations
        exact.perturb(zeros, zeros, [1000 * seed + i for i in range(mutations)], [0.002] * mutations)
        integers.assign([0], [0], exact.read([0]))
        made = {
            "float32": exact.forward([0] * len(seen), seen, 18),
            "int8": integers.forward([0] * len(seen), seen, 18),
        }
        alike.append((made["int8"].argmax(1) == made["float32"].argmax(1)).mean())
        # The part of the outputs that depends on the observation.
        ours, theirs = (outputs - outputs.mean(0) for outputs in made.values())
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.98
    assert np.mean(alike) > 0.95, alike


def int8(name):
    """Return the int8 version of the network with a name."""
    return Network(name, dtype="int8")


EPISODES = some_episodes(12, max_steps=40)


@pytest.fixture(scope="module")
def expected():
    """Return the outcomes of the runner without TensorFlow, one episode after another, with the reference backend."""
    library.set_threads(1)
    recipe = registry.resolve("frostbite")
    small = {"lanes": 1, "slots": 1, "backend": "reference", "dtype": "int8"}
    return run_episodes(recipe, [architectures.model], EPISODES, **small)


@pytest.mark.parametrize(("lanes", "slots", "threads"), LAYOUTS)
def test_episodes_are_the_same_in_any_layout(expected, lanes, slots, threads, engine):
    assert_same(play(int8("model"), EPISODES, lanes, slots, threads=threads, engine=engine), expected)


def test_the_runner_without_tensorflow_equals_the_oracle(expected):
    library.set_threads(3)
    options = {"lanes": 2, "slots": 8, "dtype": "int8"}
    assert_same(run_episodes(registry.resolve("frostbite"), [architectures.model], EPISODES, **options), expected)


def test_episodes_are_not_those_of_float32(expected):
    other = play("model", EPISODES, 1, 4)
    assert list(other.returns) != list(expected.returns) or list(other.steps) != list(expected.steps)


def test_rows_without_float_weights_say_so():
    population = Population(["input uint8 4; dense 3 1.0"], 3, dtype="int8", float_rows=1)
    population.init([0, 1, 2], [0, 0, 0], [1, 2, 3])
    population.perturb([2, 1], [0, 1], [5, 6], [1.0, 1.0])
    for call in (lambda: population.read([1]), lambda: population.perturb([0], [2], [1], [1.0])):
        with pytest.raises(NativeError, match=r"row [12] .*float32 weights .*\[0, 1\)"):
            call()
    with pytest.raises(NativeError, match=r"float_rows is 4, .*\[0, 3\]"):
        Population(["input uint8 4; dense 3 1.0"], 3, dtype="int8", float_rows=4)
    with pytest.raises(NativeError, match="dtype is 'int4', .*'float32' or 'int8'"):
        Population(["input uint8 4; dense 3 1.0"], 3, dtype="int4")


def test_a_network_that_cannot_be_integers_is_refused_before_anything_is_played(tmp_path):
    layers = NETWORKS["mlp"](SCREEN, 18)
    reason = "network 0 cannot be evaluated as int8: layer 3 'tanh' is not supported, expected relu"
    with pytest.raises(NativeError, match=reason):
        Population([to_text(layers)], 1, dtype="int8")
    with pytest.raises(UserError, match='network.dtype = "int8": mlp .*tanh'):
        LocalEvaluator("frostbite", int8("mlp"))
    sets = ["network.name=mlp", "network.dtype=int8"]
    words = [word for change in sets for word in ("--set", change)]
    result = CliRunner().invoke(app, ["train", "smoke", *words, "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert 'network.dtype = "int8": mlp has tanh between its layers, expected a network with relu' in result.stderr
    assert not (tmp_path / "run").exists()


weights = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20)


@settings(deadline=None)
@given(weights, st.sampled_from([1.0, 1e-3, 1e-20]))
def test_quantized_is_what_numpy_makes_of_the_rules(values, scale):
    values = np.array(values, np.float32) * np.float32(scale)
    whole, exponent = quantized(values)
    assert exponent == weight_exponent(values) and whole.dtype == np.int8
    expected = np.clip(np.rint(values.astype(np.float64) * 2.0**exponent), -127, 127)
    assert np.array_equal(whole, expected)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run in integers from the command line."""
    path = tmp_path_factory.mktemp("int8") / "run"
    sets = ["network.dtype=int8", "algorithm.population=6", "training.max_episode_steps=30", "training.generations=3"]
    result = CliRunner().invoke(
        app, ["train", "smoke", "--out", str(path), *(word for change in sets for word in ("--set", change))]
    )
    assert result.exit_code == 0, result.stderr
    assert "model in int8 (" in result.stdout
    return path


def invoke(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_run_remembers_that_it_is_of_integers(run):
    assert load_config(run / "config.toml").network.dtype == "int8"
    network = tomllib.loads((run / "config.toml").read_text())["network"]
    assert (network["name"], network["dtype"]) == ("model", "int8")
    with pytest.raises(UserError, match="^network.dtype .*int8 .*float32"):
        RunFolder.resume(run, ["network.dtype=float32"])


def test_a_run_replays_in_integers(run):
    config = load_config(run / "config.toml")
    assert count_rows(run) == 3
    row = json.loads(invoke("evaluate", run, "--episodes", 3, "--max-episode-steps", 40, "--json").splitlines()[-1])
    assert (row["network"], row["dtype"]) == ("model", "int8")
    from neuroevo.analysis.evaluation import episode_seeds, evaluate
    from neuroevo.analysis.replay import Replay
    from neuroevo.runs.reader import RunReader

    _, elite = RunReader(run).elite()
    with LocalEvaluator("frostbite", int8("model")) as evaluator:
        assert evaluate(evaluator, elite, episode_seeds(3), 40).row()["returns"] == row["returns"]
    replay = Replay(config, [elite.genome])
    for moment in replay.play(episode_seeds(3)[0], 40):
        last = moment
    assert (last.returns[0], last.steps[0]) == (row["returns"][0], row["steps"][0])


def test_an_exported_network_has_what_it_played_with(run, tmp_path):
    output = invoke("export", run, "--format", "npz", "--out", tmp_path / "elite.npz")
    assert "the run used int8; these are the float32 weights, which mostly choose the same actions" in output
    arrays = np.load(tmp_path / "elite.npz")
    assert str(arrays["dtype"]) == "int8"
    # The arrays alone play like the run: integers as weights, divided by 2^k, are the same integers again.
    layers, parts = str(arrays["network"]).split("; "), []
    for name in ("conv_1", "conv_2", "dense_1", "dense_2"):
        exact = arrays[f"{name}.kernel_int8"] * 2.0 ** -int(arrays[f"{name}.exponent"])
        assert np.abs(exact - arrays[f"{name}.kernel"]).max() <= 2.0 ** -int(arrays[f"{name}.exponent"]) / 2
        parts += [exact.ravel(), arrays[f"{name}.bias"]]
    theta, seen = np.concatenate(parts).astype(np.float32), real_observations(3)
    genome = json.loads(str(arrays["genome"]))
    population = Population([str(arrays["network"])], 1, dtype="int8")
    population.init([0], [0], [genome["root"]])
    for seed, scale in genome["mutations"]:
        population.perturb([0], [0], [seed], [scale])
    expected = [outputs(layers, theta, observation) for observation in seen]
    assert np.array_equal(bits(population.forward([0] * 3, seen, len(expected[0]))), bits(np.array(expected)))


def test_genomes_of_two_networks_in_integers():
    genomes = [Genome(3), Genome(3, network=1).child(4, 0.02), Genome(5, network=1)]
    from neuroevo.core.episode import Episode

    episodes = [Episode(genome, 9, 40) for genome in genomes]
    both = play([int8("model"), int8("nature_dqn")], episodes, 2, 2)
    for network, name in enumerate(("model", "nature_dqn")):
        chosen = [i for i, genome in enumerate(genomes) if genome.network == network]
        alone = [Episode(grow(Genome(genomes[i].root), genomes[i].mutations), 9, 40) for i in chosen]
        outcomes = play(int8(name), alone, 1, 1)
        assert list(outcomes.returns) == [both.returns[i] for i in chosen]
        assert list(outcomes.steps) == [both.steps[i] for i in chosen]
