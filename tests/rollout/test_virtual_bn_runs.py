"""Virtual batch normalization in rollouts and runs: the reference batch, the TensorFlow graph against the lane runner
and NumPy, resuming, replaying and exporting a run, and a damaged batch."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

from neuroevo.analysis.evaluation import evaluate
from neuroevo.analysis.replay import Replay
from neuroevo.cli import app
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds, raw
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.networks.architectures import input_line, model, to_text, virtual_bn
from neuroevo.rollout import reference_batch
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.tensorflow.lane_graph import lane_function
from neuroevo.runs.reader import RunReader
from neuroevo.runs.values import checksum
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.warm_start import first_state
from tests.support.databases import change, query
from tests.support.native_rollout import run_episodes
from tests.support.population_reference import ReferenceNetwork, noise
from tests.support.runs import config, read_rows, results, train

FROSTBITE = registry.resolve("frostbite")
SIGMA = float(np.float32(0.05))


@pytest.fixture(autouse=True)
def threads():
    before = library.get_threads()
    yield
    library.set_threads(before)


# The reference batch.


def shown(env, actions, seeds):
    """Return the observation after each step, and the number of episodes."""
    pool, batch, over, episodes = EnvPool(env, 2), [], True, 0
    for action in actions:
        if over:
            pool.reset([1], [seeds[episodes]], [0])
            episodes += 1
        _, dones = pool.step([1], action[None])
        batch.append(pool.observe([1])[0])
        over = dones[0]
    return np.stack(batch), episodes


@pytest.mark.parametrize("options", [{}, {"protocol": "gymnasium"}, {"repeat_action_probability": 0.25}])
def test_the_batch_is_consecutive_random_play(options):
    env = registry.resolve("frostbite", options)
    batch = reference_batch.draw_reference_batch(env, 5)
    assert (batch.shape, batch.dtype) == ((128, 84, 84, 4), np.uint8)
    assert np.array_equal(batch[1:, ..., :3], batch[:-1, ..., 1:])  # successive steps of one episode
    assert len({each.tobytes() for each in batch}) > 100
    assert np.array_equal(batch, reference_batch.draw_reference_batch(env, 5))
    assert np.array_equal(batch[:40], reference_batch.draw_reference_batch(env, 5, 40))
    assert not np.array_equal(batch, reference_batch.draw_reference_batch(env, 6))
    actions = np.array(draw_indices(128, 18, 5, 0, Purpose.REFERENCE), np.int32)
    expected, episodes = shown(env, actions, draw_seeds(1, 5, 1, 14))
    assert np.array_equal(batch, expected) and episodes == 1


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "hard_maze"])
def test_another_episode_follows_and_vectors_are_within_their_bounds(name):
    env, count = registry.resolve(name), 300
    pool = EnvPool(env, 1)
    uniform = (raw(count * pool.num_actions, 3, 0, 14) >> 11) / 2**53
    span = (pool.action_high - pool.action_low).astype(np.float64)
    actions = (pool.action_low + span * uniform.reshape(count, -1)).astype(np.float32)
    expected, episodes = shown(env, actions, draw_seeds(count, 3, 1, 14))
    batch = reference_batch.draw_reference_batch(env, 3, count)
    assert batch.dtype == np.float32 and np.array_equal(batch, expected.astype(np.float32))
    assert episodes > 10 if name == "InvertedPendulum-v5" else episodes == 1


def test_play_that_cannot_be_is_said():
    with pytest.raises(UserError, match="frostbite .*mode"):
        reference_batch.draw_reference_batch(registry.resolve("frostbite", {"mode": 77}), 0)


# Rollouts.


@pytest.fixture(scope="module")
def batch():
    return reference_batch.draw_reference_batch(FROSTBITE, 9, 24)


@pytest.fixture(scope="module")
def episodes():
    """Return episodes of parents, played from their rows by several lanes, of their children, and of new genomes."""
    parents = [Genome(1), Genome(2).child(5, SIGMA)]
    children = [parent.child(10 + i, SIGMA) for parent in parents for i in range(3)]
    genomes = [*parents * 3, *children, children[0], Genome(3), Genome(4).child(6, SIGMA).child(7, SIGMA), *parents]
    return [Episode(genome, 100 + i, 40 - i % 4) for i, genome in enumerate(genomes)]


def theta_of(genome, network):
    """Return weights in double precision."""
    theta, drawn = np.zeros(network.dimension), noise(genome.root, network.dimension)
    for part in network.parts:
        theta[part.begin : part.end] = part.scale * drawn[part.begin : part.end]
    for seed, scale, _ in genome.mutations:
        theta += scale * noise(seed, network.dimension)
    return theta


@pytest.fixture(scope="module")
def expected(episodes, batch):
    """Play step by step, checking every tenth step's outputs in double precision; return the returns and steps."""
    pool = EnvPool(FROSTBITE, 1)
    layers = virtual_bn(input_line("uint8", (84, 84, 4)), pool.num_actions)
    network, population = ReferenceNetwork(layers), Population([to_text(layers)], 1)
    population.set_reference(batch)
    played, thetas, actions = [], {}, set()
    for episode in episodes:
        genome = episode.genome
        if genome not in thetas:
            thetas[genome] = theta_of(genome, network)
        population.init([0], [0], [genome.root])
        for seed, scale, _ in genome.mutations:
            population.perturb([0], [0], [seed], [scale])
        population.prepare([0])
        pool.reset([0], [episode.seed], [episode.max_steps * pool.frame_skip])
        total, steps, done = 0.0, 0, False
        while not done:
            observation = pool.observe([0])
            outputs = population.forward([0], observation, pool.num_actions)[0]
            if steps % 10 == 0:
                exact = network.forward(thetas[genome], observation, batch)[0]
                assert np.abs(outputs - exact).max() <= 1e-5 * np.abs(exact).max()
            actions.add(int(outputs.argmax()))
            rewards, dones = pool.step([0], [outputs.argmax()])
            total, steps, done = total + rewards[0], steps + 1, dones[0]
        played.append((total, steps))
    assert len(actions) > 5 and len({total for total, _ in played}) > 3  # networks have different outcomes
    return played


def assert_played(outcomes, expected):
    assert list(zip(outcomes.returns.tolist(), outcomes.steps.tolist(), strict=True)) == expected


@pytest.mark.parametrize(("lanes", "slots", "threads_used"), [(1, 1, 1), (3, 5, 4)])
def test_engines_lane_runner_and_numpy_play_the_same(episodes, batch, expected, lanes, slots, threads_used, engine):
    layout = {"lanes": lanes, "slots": slots}
    options = {"threads": threads_used, "device": "cpu", "engine": engine, **layout}
    with LocalEvaluator("frostbite", "virtual_bn", reference_batch=batch, **options) as evaluator:
        assert_played(evaluator.evaluate(episodes), expected)
        assert_played(evaluator.evaluate(episodes[::-1]), expected[::-1])  # with rows that were used before
    runner = run_episodes(FROSTBITE, [virtual_bn], episodes, reference_batch=batch, **layout)
    assert_played(runner, expected)


def test_beside_a_network_without_it(batch, engine):
    both = [Episode(Genome(i // 2, network=i % 2).child(i, 0.01), i, 30) for i in range(8)]
    options = {"lanes": 2, "slots": 2, "device": "cpu", "engine": engine}
    with LocalEvaluator("frostbite", ["virtual_bn", "model"], reference_batch=batch, **options) as evaluator:
        together = evaluator.evaluate(both)
    runner = run_episodes(FROSTBITE, [virtual_bn, model], both, reference_batch=batch, lanes=1, slots=3)
    assert_played(together, list(zip(runner.returns.tolist(), runner.steps.tolist(), strict=True)))


def test_without_a_batch_the_evaluator_plays_one_from_seed_0(episodes, engine):
    with LocalEvaluator("frostbite", "virtual_bn", lanes=2, slots=1, device="cpu", engine=engine) as evaluator:
        own = evaluator.evaluate(episodes)
    given = reference_batch.draw_reference_batch(FROSTBITE, 0)
    runner = run_episodes(FROSTBITE, [virtual_bn], episodes, reference_batch=given, lanes=1, slots=4)
    assert_played(own, list(zip(runner.returns.tolist(), runner.steps.tolist(), strict=True)))


def test_graphs_have_only_the_ops_that_networks_need():
    plain, with_vbn, recurrent = (
        {node.op for each in (graph.node, *(f.node_def for f in graph.library.function)) for node in each}
        for needs in ((False, False), (True, False), (False, True))
        for graph in [lane_function(*_shown(), *needs).graph.as_graph_def()]
    )
    assert with_vbn - plain == {"PopulationPrepare", "ConcatV2"} and not plain - with_vbn
    assert recurrent - plain == {"PopulationClearStates"} and not plain - recurrent


def _shown():
    pool = EnvPool(FROSTBITE, 1)
    return tf.as_dtype(pool.observation_dtype), pool.observation_shape, tf.as_dtype(pool.action_dtype)


@pytest.mark.parametrize(
    "wrong", [np.zeros((8, 84, 84, 3), np.uint8), np.zeros((8, 84, 84, 4)), np.zeros((0, 84, 84, 4), np.uint8)]
)
def test_a_batch_of_something_else_is_refused(wrong):
    with pytest.raises(UserError, match=r"reference batch .*uint8 .*\['B', 84, 84, 4\]"):
        LocalEvaluator("frostbite", "virtual_bn", lanes=1, slots=1, reference_batch=wrong, device="cpu")


def test_not_in_integers():
    with pytest.raises(UserError, match='network.dtype = "int8": virtual_bn .*float32'):
        config(network={"name": "virtual_bn", "dtype": "int8"})


# Runs.

CHANGES = {
    "network": {"name": "virtual_bn"},
    "algorithm": {"sigma": 0.05},
    "training": {"max_episode_steps": 40, "generations": 3, "test_episodes": 4},
}
HARDWARE = {"threads": 1, "lanes": 1, "slots": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    train(RunFolder.create(path, config(**CHANGES, hardware=HARDWARE)))
    return path


@pytest.fixture
def copied(whole, tmp_path):
    """Return a function that copies the run and executes a statement in its database."""

    def copy(sql, *values):
        shutil.copytree(whole, tmp_path / "copy")
        assert change(tmp_path / "copy", sql, *values) == 1
        return tmp_path / "copy"

    return copy


def test_the_batch_is_kept(whole):
    ((data,),) = query(whole, "SELECT data FROM arrays JOIN run ON run.reference = arrays.id")
    batch = np.frombuffer(data, np.uint8).reshape(128, 84, 84, 4)
    assert np.array_equal(batch, reference_batch.draw_reference_batch(FROSTBITE, 4))  # the run's seed
    assert np.array_equal(RunReader(whole).reference_batch(), batch)
    assert len({row["fitness_mean"] for row in read_rows(whole)}) > 1


def test_a_run_goes_on_from_its_batch(whole, tmp_path):
    short = {**CHANGES, "training": {**CHANGES["training"], "generations": 1}}
    train(RunFolder.create(tmp_path / "run", config(**short, hardware=HARDWARE)))
    hardware = ["hardware.threads=2", "hardware.lanes=2", "hardware.slots=4"]
    train(RunFolder.resume(tmp_path / "run", ["training.generations=3", *hardware]))
    assert results(tmp_path / "run") == results(whole)


def test_another_batch_plays_otherwise(whole, tmp_path):
    once = {**CHANGES, "training": {**CHANGES["training"], "generations": 1}}
    folder = RunFolder.create(tmp_path / "run", config(**once, hardware=HARDWARE))
    folder.reference_batch = reference_batch.draw_reference_batch(registry.resolve("pong"), 0)
    train(folder)
    assert read_rows(tmp_path / "run")[0]["fitness"] != read_rows(whole)[0]["fitness"]


def test_evaluating_gives_what_the_tests_gave(whole):
    reader = RunReader(whole)
    with make_evaluator(reader.config, reader.reference_batch()) as evaluator:
        for generation, row in enumerate(reader.rows()):
            seeds = draw_seeds(4, 4, generation, Purpose.TEST_EPISODES)
            evaluation = evaluate(evaluator, reader.elite(generation)[1], seeds)
            assert (evaluation.summary.mean, evaluation.steps) == (row["test_mean"], row["steps_test"])


def test_the_commands_and_a_replay_play_with_the_batch(whole, tmp_path):
    reader = RunReader(whole)
    (_, elite), batch = reader.elite(), reader.reference_batch()

    def invoke(*arguments):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    row = json.loads(invoke("evaluate", whole, "--episodes", 3, "--max-episode-steps", 150, "--json")[-1])
    seeds = row["seeds"]
    episodes = [Episode(elite.genome, seed, 150) for seed in seeds]
    runner = run_episodes(FROSTBITE, [virtual_bn], episodes, reference_batch=batch, lanes=1, slots=2)
    assert row["returns"] == runner.returns.tolist() and row["steps"] == runner.steps.tolist()
    lines = invoke("render", whole, "--out", tmp_path / "a.gif", "--max-episode-steps", 150, "--scale", 1)
    assert lines[0] == f"episode 1, elite: return {runner.returns[0]:,.1f} in {runner.steps[0]:,} steps"
    replay = Replay(reader.config, [elite.genome, Genome(3)], reference_batch=batch)
    *_, moment = replay.play(seeds[1], 150)
    assert (moment.returns[0], moment.steps[0]) == (runner.returns[1], runner.steps[1])

    observations = reference_batch.draw_reference_batch(FROSTBITE, 77, 40)  # not those of the batch
    outputs = replay.population.forward([0] * 40, observations, 18)
    invoke("export", whole, "--out", tmp_path / "elite.keras")
    difference = keras.models.load_model(tmp_path / "elite.keras")(observations).numpy() - outputs
    assert np.abs(difference).max() <= 1e-5 * np.abs(outputs).max()  # both are as far from float64
    assert np.ptp(outputs, axis=0).min() > 1e-2


def array(values, cut=None):
    """Return a statement that replaces the batch by values without the last bytes, with a valid checksum."""
    shape, data = json.dumps(list(values.shape)), values.tobytes()[:cut]
    sql = "UPDATE arrays SET dtype = ?, shape = ?, data = ?, checksum = ? WHERE id = (SELECT reference FROM run)"
    return sql, values.dtype.str, shape, data, checksum(None, values.dtype.str, shape, data)


OF_THE_RUN = "WHERE id = (SELECT reference FROM run)"
EXPECTED = r"expected uint8 \[128, 84, 84, 4\]"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((f"DELETE FROM arrays {OF_THE_RUN}",), "damaged: array 1 is missing"),
        ((f"UPDATE arrays SET data = zeroblob(length(data)) {OF_THE_RUN}",), "damaged: array 1 is changed"),
        ((f"UPDATE arrays SET dtype = '|O' {OF_THE_RUN}",), "damaged: array 1 is changed"),
        ((f"UPDATE arrays SET shape = '[128, 84, 84, 4.0]' {OF_THE_RUN}",), "damaged: array 1 is changed"),
        (("UPDATE run SET reference = NULL",), "damaged: its table run is empty or has been changed"),
        (array(np.zeros((128, 84, 84, 4), np.uint8), -1), r"\[128, 84, 84, 4\] has 3,612,671 bytes"),
        (array(np.zeros((127, 84, 84, 4), np.uint8)), rf"is uint8 \[127, 84, 84, 4\], {EXPECTED}"),
        (array(np.zeros((128, 84, 84, 4), np.float32)), rf"is float32 \[128, 84, 84, 4\], {EXPECTED}"),
        (array(np.array(3, np.uint8)), rf"is uint8 \[\], {EXPECTED}"),
    ],
)
def test_a_bad_batch_is_an_error(copied, changes, message):
    path = copied(*changes)
    for call in (lambda: RunFolder.resume(path), lambda: RunReader(path).reference_batch()):
        with pytest.raises(UserError, match=message):
            call()
    result = CliRunner().invoke(app, ["evaluate", str(path)])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and str(path / "run.db") in result.stderr


def test_a_run_that_starts_from_another_takes_its_batch(whole, tmp_path):
    started = config(**{**CHANGES, "training": {**CHANGES["training"], "seed": 8, "start_from": str(whole)}})
    batch = RunReader(whole).reference_batch()
    assert np.array_equal(first_state(started)[1], batch)
    assert not np.array_equal(first_state(config(**{**CHANGES, "training": {"seed": 8, "generations": 1}}))[1], batch)
    folder = RunFolder.create(tmp_path / "next", started)
    with folder.open(["test"]):
        assert np.array_equal(RunReader(tmp_path / "next").reference_batch(), batch)
    assert np.array_equal(RunFolder.resume(tmp_path / "next").reference_batch, batch)


def test_a_network_without_vbn_keeps_none(tmp_path):
    with RunFolder.create(tmp_path / "run", config()).open(["test"]) as folder:
        assert folder.reference_batch is None
    assert query(tmp_path / "run", "SELECT reference FROM run") == [(None,)]
    assert RunReader(tmp_path / "run").reference_batch() is None
