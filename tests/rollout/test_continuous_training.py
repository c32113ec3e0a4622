"""Runs on MuJoCo tasks with the real evaluator: normalization, resuming, evaluation, export and failures."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.analysis.evaluation import evaluate
from neuroevo.benchmarks import rates
from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.networks.architectures import input_line, to_text
from neuroevo.networks.layers import unpack_weights
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder
from tests.support.pages import ROOT, blocks_of
from tests.support.runs import config, play, read_rows, results

GUIDE = ROOT / "docs" / "guides" / "looking.md"

SETTINGS = {
    "Hopper-v5": {"hidden": [16, 8], "normalize_observations": True},
    "HalfCheetah-v5": {"hidden": [12], "activation": "relu", "action_bins": 5},
}
GENERATIONS = 3


def changes(env, **more):
    return {
        "env": {"name": env},
        "network": {"name": "mlp", **SETTINGS[env]},
        "algorithm": {"population": 6, "parents": 2, "validation_candidates": 2, "sigma": 0.3},
        "training": {
            "max_episode_steps": 70,
            "episodes": 2,
            "validation_episodes": 3,
            "test_episodes": 5,
            "generations": GENERATIONS,
        },
        "hardware": {"threads": 2, "lanes": 2, "slots": 2},
        **more,
    }


def train(folder, evaluator=None):
    evaluator = evaluator or make_evaluator(folder.config)
    try:
        play(folder, evaluator)
    finally:
        evaluator.close()


@pytest.fixture(scope="module", params=SETTINGS)
def run(request, tmp_path_factory):
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    train(RunFolder.create(path, config(**changes(request.param))))
    assert len({row["fitness_mean"] for row in read_rows(path)}) == GENERATIONS
    return path


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    """A finished run whose observations are normalized."""
    path = tmp_path_factory.mktemp("runs") / "hopper"
    train(RunFolder.create(path, config(**changes("Hopper-v5"))))
    return path


def stepped(network, genomes, episodes, normalizer, seen):
    """Returns float64 [E] of episodes (genome, seed, steps), one after another, with NumPy between the native
    environment and network; every observation is appended to `seen`."""
    pool = EnvPool(registry.resolve("Hopper-v5"), 1)
    text = to_text(network.lines(input_line("float64", pool.observation_shape), pool.num_actions, True))
    population = Population([text], 1)
    returns = []
    for genome, seed, steps in episodes:
        population.init([0], [0], [genome.root])
        for noise, scale, _ in genome.mutations:
            population.perturb([0], [0], [noise], [scale])
        pool.reset([0], [seed], [steps * pool.frame_skip])
        total, done = 0.0, False
        while not done:
            observation = pool.observe([0])
            seen.append(observation[0])
            inputs = np.clip((observation - normalizer.mean) / normalizer.std, -5, 5).astype(np.float32)
            outputs = population.forward([0], inputs, pool.num_actions)
            half = (np.clip(outputs, np.float32(-1), np.float32(1)) + np.float32(1)) / np.float32(2)
            reward, (done,) = pool.step([0], pool.action_low + half * (pool.action_high - pool.action_low))
            total += reward[0]
        returns.append(total)
    return np.array(returns)


def test_statistics_and_fitness_are_those_of_a_replay_by_numpy(hopper):
    reader = RunReader(hopper)
    algorithm, seen = reader.config.algorithm, []
    elites, rows = [reader.elite(number)[1] for number in range(GENERATIONS)], read_rows(hopper)
    assert elites[0].normalizer == Normalizer(0, np.zeros(11), np.ones(11))
    algorithm_state = algorithm.init(4)
    for generation in range(GENERATIONS):
        normalizer = elites[generation].normalizer
        if generation:
            everything = np.array(seen)
            np.testing.assert_allclose(normalizer.mean, everything.mean(axis=0), rtol=1e-11, atol=1e-13)
            deviation = np.sqrt(np.maximum(everything.var(axis=0), 1e-2))
            np.testing.assert_allclose(normalizer.std, deviation, rtol=1e-10)
        if generation == GENERATIONS - 1:
            break
        genomes = algorithm.ask(algorithm_state)
        seeds = draw_seeds(12, 4, generation, Purpose.POPULATION_EPISODES)
        episodes = [(genome, seeds[2 * i + each], 70) for i, genome in enumerate(genomes) for each in range(2)]
        returns = stepped(reader.config.network, genomes, episodes, normalizer, seen)
        fitness = returns.reshape(6, 2).mean(axis=1)
        assert fitness.tolist() == rows[generation]["fitness"]
        algorithm_state = algorithm.tell(algorithm_state, EvaluatedPopulation(genomes, fitness))
        candidates = algorithm.candidates(algorithm_state)
        validation = np.array([float(candidate == elites[generation].genome) for candidate in candidates])
        algorithm_state = algorithm.tell_validation(algorithm_state, EvaluatedPopulation(candidates, validation))
    assert len(seen) > 500


class Interrupted(LocalEvaluator):
    """Evaluator that is interrupted at a call of submit(), in the middle of a batch."""

    calls = 0
    at = 0

    def submit(self, episodes, priority=0, on_results=None):
        self.calls += 1
        if self.calls > self.at:
            self.close()
            raise KeyboardInterrupt
        return super().submit(episodes, priority, on_results)


@pytest.mark.parametrize("call", range(0, 3 * GENERATIONS, 2))
def test_a_run_goes_on_from_any_interruption_on_other_hardware(hopper, tmp_path, call):
    whole, env = results(hopper), "Hopper-v5"
    lanes, slots, threads = [(1, 1, 1), (2, 3, 2), (3, 1, 2), (1, 4, 3)][call // 2 % 4]
    hardware = {"threads": threads, "lanes": lanes, "slots": slots}
    folder = RunFolder.create(tmp_path / "run", config(**changes(env, hardware=hardware)))
    network = folder.config.network
    evaluator = Interrupted(env, network, behavior=folder.config.recorded_behavior, **hardware)
    evaluator.at = call
    with pytest.raises(KeyboardInterrupt):
        train(folder, evaluator)
    folder = RunFolder.resume(tmp_path / "run")
    assert folder.state.generation == call // 3
    train(folder)
    assert results(tmp_path / "run") == whole


def test_evaluating_a_generation_gives_what_its_tests_gave(run):
    reader = RunReader(run)
    with make_evaluator(reader.config) as evaluator:
        for generation, row in enumerate(reader.rows()):
            _, elite = reader.elite(generation)
            seeds = draw_seeds(5, 4, generation, Purpose.TEST_EPISODES)
            evaluation = evaluate(evaluator, elite, seeds)
            assert (evaluation.summary.mean, evaluation.steps) == (row["test_mean"], row["steps_test"])
            other = evaluate(evaluator, replace(elite, normalizer=None), seeds)
            as_it_is = elite.normalizer is None or generation == 0  # mean 0 and standard deviation 1
            assert (other.summary.mean == evaluation.summary.mean) == as_it_is


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_commands(run, tmp_path):
    row = json.loads(invoke("evaluate", run, "--episodes", 4, "--generation", 1, "--json").stdout.splitlines()[-1])
    reader = RunReader(run)
    with make_evaluator(reader.config) as evaluator:
        assert evaluate(evaluator, reader.elite(1)[1], row["seeds"]).row()["returns"] == row["returns"]
    assert row["failures"] == {}
    wrong = invoke("render", run, "--out", tmp_path / "a.png")
    assert wrong.exit_code == 2 and "a.png" in wrong.stderr and list(tmp_path.iterdir()) == []
    info = invoke("info", "--games").stdout
    assert "tasks (11): HalfCheetah-v5, " in info


def observations_of(env, count=60):
    """Return observations of random play, float64 [count, n]."""
    pool, rng, seen = EnvPool(registry.resolve(env), 1), np.random.default_rng(0), []
    pool.reset([0], [1], [0])
    for step in range(count):
        seen.append(pool.observe([0])[0])
        _, (done,) = pool.step([0], rng.uniform(pool.action_low, pool.action_high, (1, pool.num_actions)))
        if done:
            pool.reset([0], [step], [0])
    return np.array(seen)


def acting(run, observations):
    """Return the last elite's outputs float32 [K, W] and actions float32 [K, A], by the native core, and the reader."""
    reader = RunReader(run)
    config, (_, elite) = reader.config, reader.elite()
    pool = EnvPool(registry.resolve(config.env.name), 1)
    text = to_text(config.network.lines(input_line("float64", pool.observation_shape), pool.num_actions, True))
    population = Population([text], 1)
    population.init([0], [0], [elite.genome.root])
    for noise, scale, _ in elite.genome.mutations:
        population.perturb([0], [0], [noise], [scale])
    seen = observations.astype(np.float32)
    if elite.normalizer is not None:
        seen = np.clip((observations - elite.normalizer.mean) / elite.normalizer.std, -5, 5).astype(np.float32)
        assert (np.abs(seen) == 5).any()  # clipping matters
    outputs = population.forward([0] * len(seen), seen, population.outputs)
    return outputs, pool.actions(outputs)


def clipped(env):
    """Observations of random play, including some outliers."""
    seen = observations_of(env)
    seen[::7] *= 50
    return seen


@pytest.mark.parametrize("form", ["keras", "savedmodel", "onnx"])
def test_an_exported_network_has_the_ops_outputs(run, tmp_path, form):
    env = load_config(run / "config.toml").env.name
    out = tmp_path / {"keras": "elite.keras", "savedmodel": "elite", "onnx": "elite.onnx"}[form]
    result = invoke("export", run, "--format", form, "--out", out)
    assert result.exit_code == 0, result.stderr
    seen = clipped(env)
    expected, _ = acting(run, seen)
    if form == "keras":
        import keras

        model = keras.models.load_model(out)
        assert {type(layer).__module__.split(".")[0] for layer in model.layers} == {"keras"}
        outputs = model(seen).numpy()
    elif form == "onnx":
        import onnxruntime

        (outputs,) = onnxruntime.InferenceSession(out).run(None, {"observation": seen})
    else:
        import tensorflow as tf

        (outputs,) = tf.saved_model.load(out).signatures["serving_default"](tf.constant(seen)).values()
        outputs = outputs.numpy()
    assert outputs.dtype == np.float32
    assert np.abs(outputs - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
    assert np.ptp(expected, axis=0).min() > 1e-2


def test_exported_arrays_are_enough_to_act(run, tmp_path):
    """Reproduced by NumPy from the archive alone, and by the policy of the guide."""
    env = load_config(run / "config.toml").env.name
    assert invoke("export", run, "--format", "npz", "--out", tmp_path / "a.npz").exit_code == 0
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        arrays = dict(file)
    seen = clipped(env)
    _, expected = acting(run, seen)
    x = seen
    if "normalizer.mean" in arrays:
        x = np.clip((x - arrays["normalizer.mean"]) / arrays["normalizer.std"], -5, 5)
    x = x.astype(np.float32)
    numbers = {}
    for line in str(arrays["network"]).split(";")[1:]:
        kind = line.split()[0]
        numbers[kind] = numbers.get(kind, 0) + 1
        if kind == "dense":
            x = x @ arrays[f"dense_{numbers[kind]}.kernel"] + arrays[f"dense_{numbers[kind]}.bias"]
        elif kind in ("tanh", "relu"):
            x = np.tanh(x) if kind == "tanh" else np.maximum(x, 0)
    low, high, bins = arrays["action_low"], arrays["action_high"], int(arrays["action_bins"])
    if bins:
        best = x.reshape(len(x), len(low), bins).argmax(axis=2)
        actions = low + best * (high - low) / (bins - 1)
    else:
        actions = low + (np.clip(x, -1, 1) + 1) / 2 * (high - low)
    assert ("normalizer.mean" in arrays, bins) == ((True, 0) if env == "Hopper-v5" else (False, 5))
    np.testing.assert_allclose(actions, expected, atol=1e-5)
    if not bins:
        names = {}
        exec(next(block.text for block in blocks_of(GUIDE) if "def policy" in block.text), names)
        np.testing.assert_allclose(names["policy"](tmp_path / "a.npz")(seen), expected, atol=1e-5)
    assert np.array_equal(low, EnvPool(registry.resolve(env), 1).action_low)


def test_what_export_says_is_enough_to_act(run, tmp_path):
    """Its formula is Python code with bit-identical results."""
    formula_line = invoke("export", run, "--out", tmp_path / "a.keras").stdout.splitlines()[1]
    outputs, expected = acting(run, clipped(load_config(run / "config.toml").env.name))
    rule = r"its output(?: y)? is float32 \[K, (\d+)\].* (low \+ .*), where low = (\S+) and high = (\S+)"
    count, formula, *bounds = re.fullmatch(rule, formula_line).groups()
    assert int(count) == outputs.shape[1]
    low, high = map(np.float32, bounds)  # the same for all numbers
    b = outputs.reshape(len(outputs), expected.shape[1], -1).argmax(axis=2).astype(np.float32)
    names = {"low": low, "high": high, "y": outputs, "b": b, "clip": np.clip}
    assert np.array_equal(eval(formula, names), expected)
    assert ("y" in formula, "b *" in formula) in ((True, False), (False, True))


def test_layers_of_a_policy():
    line = input_line("float64", (11,))
    assert line == "input float32 11"
    network = Network("mlp", hidden=[7, 9], activation="relu")
    dense = ["dense 7 1.0", "bias", "relu", "dense 9 1.0", "bias", "relu"]
    assert network.lines(line, 3, True) == [line, *dense, "dense 3 0.1", "bias", "tanh"]
    assert network.lines(line, 3, False) == [line, *dense, "dense 3 0.1", "bias"]
    assert replace(network, action_bins=4).lines(line, 3, True) == [line, *dense, "dense 12 0.1", "bias"]
    parts = unpack_weights(
        to_text(network.lines(line, 3, True)), np.zeros(11 * 7 + 7 + 7 * 9 + 9 + 9 * 3 + 3, np.float32)
    )
    assert (parts.outputs, parts.layers[-1].kind) == (3, "tanh")


BAD = Genome(0).child(1, 3e38)  # infinite weights: its actions are NaN


def test_a_failed_episode_is_told_of_and_leaves_the_others_alone(engine):
    good = [Episode(Genome(i), i, 50) for i in range(6)]
    mixed = [episode for one in good for episode in (one, Episode(BAD, one.seed, 50))]
    with LocalEvaluator("Hopper-v5", "mlp", lanes=2, slots=2, engine=engine) as evaluator:
        expected, outcomes = evaluator.evaluate(good), evaluator.evaluate(mixed)
        again = evaluator.evaluate(good)
    assert outcomes.failures == {2 * i + 1: "action[0] is nan, expected a finite number" for i in range(6)}
    assert outcomes.returns[::2].tolist() == expected.returns.tolist() == again.returns.tolist()
    assert (expected.failures, again.failures, expected.observation_sums) == ({}, {}, None)
    assert outcomes.steps[1::2].tolist() == [1] * 6
    assert outcomes.counted[1::2].tolist() == [expected.returns.min()] * 6


def test_a_run_in_which_some_fail(tmp_path):
    """Weights so large that a sum of them may be infinity less infinity."""
    more = changes("Hopper-v5", algorithm={"population": 30, "parents": 10, "validation_candidates": 2, "sigma": 7e37})
    more["training"] = {**more["training"], "generations": 4}
    train(RunFolder.create(tmp_path / "run", config(**more)))
    rows = read_rows(tmp_path / "run")
    failed = [row["failures_population"] for row in rows]
    assert failed[0] == 0 and any(0 < each < 60 for each in failed[1:])
    assert all(math.isfinite(value) for row in rows for value in row["fitness"])
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "episodes failed, the first: action[" in log and "] is nan, expected a finite number" in log


def test_a_run_in_which_all_fail_says_so(tmp_path):
    sigma = {"type": "LinearSchedule", "initial_p": 1e-3, "final_p": 3e38, "schedule": 1, "field": "iteration"}
    more = changes("Hopper-v5")
    more["algorithm"] = {**more["algorithm"], "sigma": sigma}
    (tmp_path / "some.toml").write_text(config(**more).toml())
    result = invoke("train", tmp_path / "some.toml", "--out", tmp_path / "run")
    assert result.exit_code == 1
    message = (
        "SimulationError: population of generation 1: all 12 episodes failed, the first: action[0] is nan, expected"
    )
    assert message in result.stderr
    assert len(read_rows(tmp_path / "run")) <= 1 and RunFolder.resume(tmp_path / "run").state.generation == 1


def test_normalizers_are_dropped_with_their_batches(engine):
    one, other = (Normalizer(0, np.full(11, mean), np.full(11, 2.0)) for mean in (0.0, 0.5))
    with LocalEvaluator("Hopper-v5", "mlp", lanes=1, slots=2, engine=engine) as evaluator:
        for _ in range(3):
            outcomes = evaluator.evaluate([Episode(Genome(0), 1, 20, each) for each in (one, other, None)])
            assert len(set(outcomes.returns)) == 3
            assert outcomes.observation_sums[0] == outcomes.steps[:2].sum()
        assert evaluator._playing == {}
        with pytest.raises(Exception, match="normalizer 0"):  # the normalizer was dropped
            evaluator._parts[0].drop_normalizers([0])


def test_another_run_to_start_from_and_random_search(hopper, tmp_path):
    more = changes("Hopper-v5")
    more["training"] = {**more["training"], "start_from": str(hopper), "generations": 1}
    more["algorithm"] = {"name": "random_search", "population": 4, "validation_candidates": 2}
    train(RunFolder.create(tmp_path / "run", config(**more)))
    expected = RunReader(hopper).state().observation_statistics.normalizer(0, 11)
    assert RunReader(tmp_path / "run").elite(0)[1].normalizer == expected
    more["env"] = {"name": "Swimmer-v5"}
    (tmp_path / "some.toml").write_text(config(**more).toml())
    result = invoke("train", tmp_path / "some.toml", "--out", tmp_path / "swimmer")
    assert result.exit_code == 2
    assert "observation statistics have 11 numbers, expected 8, the length of an observation" in result.stderr


def test_bench_rollout(monkeypatch):
    monkeypatch.setattr(rates, "WARM_UP_SECONDS", 0.2)
    result = rates.rollout("HalfCheetah", "mlp", 0.3, threads=2)
    assert result["game"] == "HalfCheetah-v5" and result["steps_per_s"] > 0
