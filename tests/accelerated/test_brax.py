"""Runs on Brax's environments: episodes equal those of Brax's functions, and resuming does not change a run."""

import base64
import json
import os
import re
import signal
import subprocess
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

import neuroevo
from neuroevo.analysis.exported_network import elite_network
from neuroevo.analysis.network_export import to_arrays
from neuroevo.analysis.policy import Policy
from neuroevo.analysis.web_page import write_page
from neuroevo.cli import app
from neuroevo.config.load import make_config
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.network import Network
from neuroevo.runs.reader import Elite
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.training_run import run
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.sweep import load_sweep
from tests.support.databases import query
from tests.support.runs import count_rows, results

# Of fewer than 4 lanes no half is compiled, which takes as long again; test_lanes has one.
ENV = {"name": "brax:inverted_pendulum", "options": {"lanes": 3, "max_episode_steps": 200}}
MLP = {"name": "mlp", "hidden": [8]}
TRAINING = {"seed": 3, "generations": 3, "validation_episodes": 2, "test_episodes": 3}
GA = {"name": "ga", "population": 24, "parents": 4, "sigma": 0.5, "validation_candidates": 2}
ES = {"name": "es", "population": 16, "sigma": 0.2}


def config(**changes):
    tables = {"env": ENV, "network": MLP, "algorithm": GA, "training": TRAINING}
    return make_config({**tables, **changes})


@pytest.fixture(scope="module", autouse=True)
def needs_brax():
    pytest.importorskip("brax")


@pytest.fixture(scope="module")
def own_functions():
    """Brax's reset and step of the environment, compiled."""
    import jax
    from brax.envs.inverted_pendulum import InvertedPendulum

    from neuroevo.accelerated.start import make_simulator

    environment = make_simulator(config().environment).environment  # some of which JAX has traced
    assert type(environment) is InvertedPendulum and environment.backend == "mjx"
    return jax.jit(environment.reset), jax.jit(environment.step)


@pytest.mark.slow
def test_episodes_are_those_of_brax_s_own_functions(own_functions):
    asked = [Episode(Genome(seed), 2**33 + seed, max_steps) for seed, max_steps in enumerate([0] * 10 + [3] * 10)]
    with make_evaluator(config()) as evaluator:
        outcomes = evaluator.evaluate(asked)
        thetas = [NativeWeights(evaluator.network_texts).theta(each.genome) for each in asked]
    reset, step = own_functions
    for index, (episode, theta) in enumerate(zip(asked, thetas, strict=True)):
        state, total, steps = reset(np.array(divmod(episode.seed, 2**32), np.uint32)), 0.0, 0
        while not state.done and steps < (episode.max_steps or 200):
            hidden = np.tanh(np.asarray(state.obs) @ theta[:32].reshape(4, 8) + theta[32:40])
            action = np.tanh(hidden @ theta[40:48].reshape(8, 1) + theta[48:])
            state = step(state, action)
            total, steps = total + float(state.reward), steps + 1
        assert (outcomes.steps[index], outcomes.returns[index]) == (steps, pytest.approx(total, rel=1e-5))
    assert len(set(outcomes.steps)) > 3


def test_a_run_that_goes_on_is_the_same(tmp_path):
    neuroevo.train(config(), out=tmp_path / "whole")
    rows = neuroevo.open_run(tmp_path / "whole").rows()
    assert len(rows) == 3 and len({tuple(row["fitness"]) for row in rows}) == 3
    neuroevo.train(config(training={**TRAINING, "generations": 1}), out=tmp_path / "parts")
    folder = RunFolder.resume(tmp_path / "parts", overrides=["training.generations=3"])
    with make_evaluator(folder.config) as evaluator, folder.open(["test"]):
        run(folder.config, evaluator, folder)
    assert results(tmp_path / "parts") == results(tmp_path / "whole")
    _, elite = neuroevo.open_run(tmp_path / "whole").elite()
    evaluation = neuroevo.evaluate(tmp_path / "whole", episodes=4)
    with make_evaluator(config()) as evaluator:
        again = evaluator.evaluate([Episode(elite.genome, seed) for seed in evaluation.seeds])
    np.testing.assert_array_equal(evaluation.outcomes.returns, again.returns)


@pytest.mark.thorough
def test_lanes_do_not_matter_here():
    asked = [Episode(Genome(1).child(seed, 0.5), seed) for seed in range(40)]
    returns = []
    for lanes in (16, 3):  # of 16 half play on at the end, of 3 all do
        with make_evaluator(config(env={**ENV, "options": {**ENV["options"], "lanes": lanes}})) as evaluator:
            returns.append(evaluator.evaluate(asked).returns)
    np.testing.assert_array_equal(*returns)
    assert len(set(returns[0])) > 10


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"env": {"name": "brax:antt"}}, "env.name"),
        ({"env": {"name": "brax:ant", "options": {"backend": "mujoco"}}}, "env.options.backend"),
        ({"env": {"name": "brax:ant", "options": {"lanes": 9, "devices": 2}}}, "env.options.lanes"),
        ({"network": {"name": "large_model"}}, "network.name"),
        ({"network": {**MLP, "dtype": "int8"}}, "network.dtype"),
    ],
)
def test_mistakes_in_a_configuration(changes, key):
    with pytest.raises(ConfigError) as caught:
        config(**changes)
    assert [problem.key for problem in caught.value.problems] == [key]


def test_what_has_no_accelerator(tmp_path):
    with pytest.raises(ConfigError) as caught:
        make_evaluator(config(cluster={"address": "local"}))
    assert [problem.key for problem in caught.value.problems] == ["cluster.address"]
    with pytest.raises(ConfigError) as caught:
        make_evaluator(config(hardware={"lanes": 2, "slots": 3, "engine": "native", "threads": 2}))
    assert [problem.key for problem in caught.value.problems] == ["hardware.lanes", "hardware.slots", "hardware.engine"]
    import jax

    other = "gpu" if jax.default_backend() == "cpu" else "cpu"
    with pytest.raises(ConfigError) as caught:
        make_evaluator(config(hardware={"device": other}))
    assert [problem.key for problem in caught.value.problems] == ["hardware.device"]
    with pytest.raises(UserError, match="no_such_module"):
        make_evaluator(config(env={"name": "brax:no_such_module:walker"}))


def test_a_sweep_over_an_option_that_does_not_exist(tmp_path):
    (tmp_path / "pendulum.toml").write_text(config().toml())
    file = tmp_path / "sweep.toml"
    file.write_text('[sweep]\nconfigs = "pendulum.toml"\n[sweep.space]\n"env.options.backend" = ["mjx", "sprin"]\n')
    with pytest.raises(ConfigError) as caught:
        load_sweep(file)
    assert "env.options.backend" in caught.value.problems[0].key


def test_an_elite_is_exported():
    made = config(network={**MLP, "normalize_observations": True})
    elite = Elite(Genome(5), Normalizer(0, np.arange(4.0), np.arange(1.0, 5.0)))
    arrays = to_arrays(elite_network(made, elite, 0))
    theta = NativeWeights([Network("mlp", hidden=(8,)).vector_text(4, 1)]).theta(Genome(5))
    np.testing.assert_array_equal(arrays["dense_1.kernel"], theta[:32].reshape(4, 8))
    np.testing.assert_array_equal(arrays["normalizer.mean"], elite.normalizer.mean)
    assert (arrays["action_low"].tolist(), arrays["action_high"].tolist()) == ([-1], [1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The path of a run of one generation."""
    path = tmp_path_factory.mktemp("trained") / "run"
    neuroevo.train(config(training={**TRAINING, "generations": 1}), out=path)
    return path


def test_a_page_shows_the_episodes_that_are_evaluated(own_functions, trained, tmp_path):
    evaluation = neuroevo.evaluate(trained, episodes=20)  # more than there are lanes
    reader = neuroevo.open_run(trained)
    assert reader.elite()[1].genome in reader.population().genomes
    with pytest.raises(UserError, match="behaviors of brax:"):
        reader.population(behaviors=True)
    elite = reader.elite()[1]
    made = write_page(reader.config, elite, evaluation.seeds, tmp_path / "elite.html", max_episode_steps=0)
    np.testing.assert_array_equal(made.outcomes.returns, evaluation.outcomes.returns)
    np.testing.assert_array_equal(made.outcomes.steps, evaluation.outcomes.steps)
    assert made.frames == evaluation.steps + 20
    packed = re.search('var system = "(.*?)"', (tmp_path / "elite.html").read_text()).group(1)
    shown = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert shown["opt"]["timestep"] == pytest.approx(0.04)
    angles = 2 * np.arcsin([frame["rot"][1][2] for frame in shown["states"]["x"]])  # of the pole
    assert len(angles) == made.frames
    ends = np.cumsum(evaluation.outcomes.steps + 1) - 1
    fallen = evaluation.outcomes.steps < 200
    assert fallen.any()
    assert np.abs(angles[ends[fallen]]).min() > 0.1  # it ends beyond 0.2; MJX's positions are those of a step before
    assert np.abs(np.delete(angles, ends)).max() <= 0.2
    reset, _ = own_functions
    starts = [0, *ends[:-1] + 1]
    for seed, start in zip(evaluation.seeds[:3], starts, strict=False):
        state = reset(np.array(divmod(seed, 2**32), np.uint32))
        np.testing.assert_allclose(shown["states"]["x"][start]["rot"], state.pipeline_state.x.rot, atol=1e-6)


def test_a_policy_plays_the_episodes_that_are_evaluated(own_functions, trained):
    opened = neuroevo.open_run(trained)
    evaluation, policy = opened.evaluate(episodes=3), opened.policy()
    reset, step = own_functions
    for index, seed in enumerate(evaluation.seeds):
        state, total, steps = reset(np.array(divmod(seed, 2**32), np.uint32)), 0.0, 0
        while not state.done and steps < 200:
            state = step(state, policy(np.asarray(state.obs)))
            total, steps = total + float(state.reward), steps + 1
        outcomes = evaluation.outcomes
        assert (outcomes.steps[index], outcomes.returns[index]) == (steps, pytest.approx(total, rel=1e-5))


def test_a_policy_with_bins_takes_the_best_one():
    made = config(network={**MLP, "action_bins": 5})
    elite, seen = Elite(Genome(5)), np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    theta = elite_network(made, elite, 0).theta
    hidden = np.tanh(seen @ theta[:32].reshape(4, 8) + theta[32:40])
    best = (hidden @ theta[40:80].reshape(8, 5) + theta[80:]).argmax(1)
    actions = Policy(made, elite)(seen)
    assert len(set(best)) > 1
    np.testing.assert_array_equal(actions[:, 0], np.array([-1, -0.5, 0, 0.5, 1], np.float32)[best])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--out", "elite.mp4"], "expected a name that ends in .html"),
        (["--out", "elite.html", "--members", "2"], "--members applies to videos only"),
    ],
)
def test_pages_and_videos_are_not_mixed_up(trained, options, reason):
    done = CliRunner().invoke(app, ["render", str(trained), *options])
    assert done.exit_code == 2 and reason in done.stderr


@pytest.mark.slow
@pytest.mark.thorough
def test_a_trial_that_is_killed_goes_on_to_the_same(tmp_path):
    made = config(algorithm=ES, training={"generations": 6, "test_episodes": 64})  # so many are played at once
    (tmp_path / "pendulum.toml").write_text(made.toml())
    (tmp_path / "sweep.toml").write_text('[sweep]\nconfigs = "pendulum.toml"\nseeds = [5]\n')
    sweep = load_sweep(tmp_path / "sweep.toml", out=tmp_path / "out")
    folder = sweep.out / sweep.points[0].folder
    neuroevo.train(made, {"training.seed": 5}, out=tmp_path / "whole")

    def kill_child():
        while count_rows(folder) < 2:
            time.sleep(0.02)
        child = subprocess.check_output(["pgrep", "-P", str(os.getpid()), "-f", str(folder)], text=True)
        os.kill(int(child), signal.SIGKILL)

    with ThreadPoolExecutor(1) as killer:
        killed = killer.submit(kill_child)
        (trial,) = run_sweep(sweep)
        killed.result(timeout=60)
    assert trial.status == "finished"
    assert len(query(folder, "SELECT ended FROM sessions")) == 2
    assert results(folder) == results(tmp_path / "whole")
