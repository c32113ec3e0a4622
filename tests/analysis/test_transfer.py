"""Transfer of an elite between simulators of its robot, Brax and MuJoCo."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neuroevo
from neuroevo.analysis.evaluation import evaluate
from neuroevo.analysis.transfer import transfer
from neuroevo.config.load import make_config
from neuroevo.config.schema import Env
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.network import Network
from neuroevo.runs.reader import Elite

MLP = {"name": "mlp", "hidden": [8]}
ES = {"name": "es", "population": 16, "sigma": 0.2}
# With fewer than 4 lanes, no second program for half of them is compiled, which would double the time; see test_brax.
BRAX = Env("brax:inverted_pendulum", {"lanes": 3, "max_episode_steps": 150})


def config(env, **network):
    tables = {"env": {"name": env}, "network": {**MLP, **network}, "algorithm": ES, "training": {"generations": 1}}
    return make_config(tables)


def command(*words):
    return subprocess.run([sys.executable, "-m", "neuroevo", *words], capture_output=True, text=True)


@pytest.fixture(scope="module")
def balancing(tmp_path_factory):
    """A run on the native pendulum with Brax's model, whose elite balances it."""
    brax = pytest.importorskip("brax")
    model = Path(brax.__file__).parent / "envs" / "assets" / "inverted_pendulum.xml"
    env = {"name": "InvertedPendulum-v5", "options": {"max_episode_steps": 150, "xml_file": str(model)}}
    training = {"generations": 8, "test_episodes": 4, "validation_episodes": 5}
    algorithm = {"name": "ga", "population": 100, "parents": 10, "sigma": 0.5, "validation_candidates": 5}
    hardware = {"lanes": 2, "engine": "native"}  # not supported by Brax
    tables = {"env": env, "network": MLP, "algorithm": algorithm, "training": training, "hardware": hardware}
    return neuroevo.train(tables, out=tmp_path_factory.mktemp("run") / "native")


@pytest.mark.thorough
@pytest.mark.slow
def test_what_balances_here_balances_there_and_back(balancing):
    _, elite = balancing.elite()
    own = neuroevo.evaluate(balancing, episodes=4).summary.mean
    there = transfer(balancing.config, elite, BRAX)
    with there.evaluator as evaluator:
        assert evaluate(evaluator, there.elite, range(4)).summary.mean == pytest.approx(own, abs=30)
    assert (there.elite, there.config.env) == (elite, BRAX)
    assert "the 4 numbers of an observation have the same meaning" in there.note
    assert own > 100
    back = transfer(there.config, elite, balancing.config.env)
    with back.evaluator as evaluator:
        assert evaluate(evaluator, back.elite, range(4)).summary.mean == pytest.approx(own, abs=30)


def test_inputs_that_mean_something_else_there_are_left_out():
    """The first six numbers of Reacher's observations are common; Brax has 11 numbers and the native task 10."""
    pytest.importorskip("brax")
    rng = np.random.default_rng(0)
    normalizer = Normalizer(3, rng.normal(size=10), rng.uniform(1, 2, 10))
    moved = transfer(
        config("Reacher-v5", normalize_observations=True), Elite(Genome(5), normalizer), Env("brax:reacher")
    )
    moved.evaluator.close()
    before = NativeWeights([Network("mlp", hidden=(8,)).vector_text(10, 2)]).theta(Genome(5))
    after = moved.elite.genome.root.vector
    assert len(after) == len(before) + 8
    np.testing.assert_array_equal(after[:48], before[:48])  # the weights of six inputs
    assert not after[48:88].any()  # the weights of the other five
    np.testing.assert_array_equal(after[88:], before[80:])
    np.testing.assert_array_equal(moved.elite.normalizer.mean, [*normalizer.mean[:6], *[0] * 5])
    np.testing.assert_array_equal(moved.elite.normalizer.std, [*normalizer.std[:6], *[1] * 5])
    assert "the first 6 numbers" in moved.note and "5 more" in moved.note


def own_layers(layers):
    return make_config({"env": {"name": "Reacher-v5"}, "network": {"layers": layers}, "algorithm": ES,
                        "training": {"generations": 1}})  # fmt: skip


def test_a_bias_before_the_first_weights_is_of_inputs_too():
    pytest.importorskip("brax")
    moved = transfer(own_layers(["bias", "dense 3", "silu"]), Elite(Genome(5).child(6, 0.1), None), Env("brax:reacher"))
    moved.evaluator.close()
    text = Network(layers=["bias", "dense 3", "silu"]).vector_text(10, 2)
    before, after = NativeWeights([text]).theta(Genome(5).child(6, 0.1)), moved.elite.genome.root.vector
    np.testing.assert_array_equal(after[:11], [*before[:6], *[0] * 5])
    np.testing.assert_array_equal(after[11:29], before[10:28])
    assert not after[29:44].any()
    np.testing.assert_array_equal(after[44:], before[40:])


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        (["layer_norm", "dense 3"], "first layer normalizes the observation, expected one with weights"),
        (["lstm 3"], "lstm layers are not supported with a simulator on the accelerator"),
    ],
)
def test_networks_that_cannot_move(layers, reason):
    pytest.importorskip("brax")
    with pytest.raises(UserError, match=reason):
        transfer(own_layers(layers), Elite(Genome(5), None), Env("brax:reacher"))


def test_atari_has_no_other_simulator():
    tables = {"env": {"name": "Frostbite"}, "network": {"name": "model"}, "training": {"generations": 1}}
    with pytest.raises(UserError, match="Frostbite has no counterpart in another simulator, expected a run on a robot"):
        transfer(make_config({**tables, "algorithm": ES}), Elite(Genome(1)), Env("Hopper-v5"))


@pytest.mark.parametrize(
    ("env", "other", "reason"),
    [
        ("Hopper-v5", "brax:ant", "expected an environment of the run's robot: Hopper-v5 or brax:hopper"),
        ("Hopper-v5", "Walker2d-v5", "expected an environment of the run's robot"),
        ("hard_maze", "Hopper-v5", "expected an environment of the run's robot: HardMaze-v0"),
        ("Hopper-v5", "Hoper-v5", "did you mean Hopper-v5"),
    ],
)
def test_other_environments_are_refused(env, other, reason):
    with pytest.raises(UserError, match=reason):
        transfer(config(env), Elite(Genome(1)), Env(other))


@pytest.mark.thorough
@pytest.mark.slow
def test_the_command_says_what_is_seen(balancing):
    other = ["--env", BRAX.name, "--set", "env.options.lanes=3", "--set", "env.options.max_episode_steps=150"]
    run = command("evaluate", str(balancing.path), *other, "--episodes", "4", "--json")
    row = json.loads(run.stdout)
    assert (row["env"], row["trained_on"]) == ("brax:inverted_pendulum", "InvertedPendulum-v5")
    assert row["mean"] > 100
    assert "have the same meaning" in row["observations"]


def test_the_command_takes_options_of_the_environment_alone(balancing):
    run = command("evaluate", str(balancing.path), "--set", "training.seed=2")
    assert run.returncode == 2 and "expected env.options.KEY=VALUE" in run.stderr
