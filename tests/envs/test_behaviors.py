"""Behaviors of episodes: the graph and the lane runner record those of environments stepped from Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Batch, Episode, EpisodeResults, Outcomes
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.genome import Genome, grow
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.submission import pack
from neuroevo.networks.architectures import input_line, model, to_text
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.atari_reference import ReferenceEnv
from tests.support.native_rollout import run_episodes

LAYOUTS = [(1, 1, 1), (2, 3, 2), (3, 2, 4)]  # lanes, slots of each, threads
PLANS = [Behavior(), Behavior(samples=9), Behavior(1, 4), Behavior(7, 5), Behavior(1000, 2)]


def mlp(observation: str, actions: int) -> list[str]:
    """Return the network of the evaluator for vector actions."""
    return Network("mlp").lines(observation, actions, True)


def stepped(env: str, episodes: list[Episode]) -> list[np.ndarray]:
    """Return the behaviors after each step of the episodes, each [steps, B], played one after another."""
    pool = EnvPool(registry.resolve(env), 1)
    line = input_line(pool.observation_dtype.name, pool.observation_shape)
    population = Population([to_text(mlp(line, pool.num_actions))], 1)
    played = []
    for episode in episodes:
        population.init([0], [0], [episode.genome.root])
        for seed, scale, _ in episode.genome.mutations:
            population.perturb([0], [0], [seed], [scale])
        pool.reset([0], [episode.seed], [episode.max_steps * pool.frame_skip])
        states, done = [], False
        while not done:
            outputs = population.forward([0], pool.observe_normalized([0]), population.outputs)
            _, (done,) = pool.step([0], pool.actions(outputs))
            states.append(pool.behavior([0])[0])
        played.append(np.array(states))
    return played


def sampled(states: np.ndarray, plan: Behavior) -> np.ndarray:
    """Return the recorded behavior of an episode with states [steps, B] after its steps."""
    if plan.every == 0:
        return states[-1].ravel()
    return np.concatenate([states[min(plan.every * n, len(states)) - 1].ravel() for n in range(1, plan.samples + 1)])


def maze_episodes() -> list[Episode]:
    return [Episode(grow(Genome(i % 7), ((i, 0.5),) * (i % 3)), i, 1 + 3 * i) for i in range(20)]


@pytest.fixture(scope="module")
def maze_states() -> list[np.ndarray]:
    states = stepped("hard_maze", maze_episodes())
    assert [len(each) for each in states] == [1 + 3 * i for i in range(20)]
    assert len({tuple(each[-1]) for each in states}) > 15  # the robots go to different places
    return states


@pytest.mark.parametrize("plan", PLANS)
def test_positions_in_the_maze_in_any_layout(maze_states: list[np.ndarray], plan: Behavior, engine: str) -> None:
    expected = np.stack([sampled(states, plan) for states in maze_states])
    for lanes, slots, threads in LAYOUTS:
        layout = {"lanes": lanes, "slots": slots, "threads": threads}
        with LocalEvaluator("hard_maze", "mlp", behavior=plan, engine=engine, **layout) as evaluator:
            assert evaluator.behavior_size == expected.shape[1]
            for _ in range(2):
                graph = evaluator.evaluate(maze_episodes()).behaviors
                assert graph.dtype == np.float64 and np.array_equal(graph, expected)
            assert evaluator.evaluate([]).behaviors.shape == (0, expected.shape[1])
        library.set_threads(threads)
        played = run_episodes(
            registry.resolve("hard_maze"), [mlp], maze_episodes(), lanes=lanes, slots=slots, behavior=plan
        )
        assert played.behaviors.dtype == np.float64 and np.array_equal(played.behaviors, expected)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_memory_of_the_console_is_that_of_ale_py(dtype: str, engine: str) -> None:
    """A trajectory of RAM beyond the end of some episodes, compared with ale-py after the same actions."""
    episodes = [Episode(Genome(seed), seed, 12 + 9 * seed) for seed in range(4)]
    pool, game = EnvPool(registry.resolve("frostbite"), 1), ReferenceEnv("frostbite")
    line = input_line("uint8", pool.observation_shape)
    population = Population([to_text(model(line, pool.num_actions))], 1, dtype=dtype)
    expected = []
    for episode in episodes:
        population.init([0], [0], [episode.genome.root])
        frames = episode.max_steps * pool.frame_skip
        pool.reset([0], [episode.seed], [frames])
        game.reset(episode.seed, frames)
        rams, done = [], False
        while not done:
            (action,) = pool.actions(population.forward([0], pool.observe([0]), pool.num_actions))
            pool.step([0], [action])
            _, done = game.step(action)
            rams.append(game.ale.getRAM())
        expected.append(sampled(np.array(rams), Behavior(8, 4)))
    assert len(np.unique(np.array(expected), axis=0)) == 4
    network = Network("model", dtype=dtype)
    with LocalEvaluator("frostbite", network, lanes=2, slots=2, behavior=Behavior(8, 4), engine=engine) as evaluator:
        assert evaluator.behavior_size == 4 * 128
        behaviors = evaluator.evaluate(episodes).behaviors
    assert behaviors.dtype == np.uint8 and np.array_equal(behaviors, expected)


def test_episodes_that_fail_and_batches_beside_each_other(engine: str) -> None:
    bad = Genome(0).child(1, 3e38).child(2, 3e38).child(3, 3e38)  # some outputs are NaN
    first = [Episode(bad if i % 4 == 1 else Genome(i), i, 10 + i) for i in range(12)]
    urgent = [Episode(Genome(50 + i), i, 5) for i in range(6)]
    states = stepped("Hopper-v5", [e for e in first if e.genome != bad] + urgent)
    with LocalEvaluator("Hopper-v5", "mlp", lanes=2, slots=2, behavior=Behavior(2, 3), engine=engine) as evaluator:
        later = evaluator.submit(first, 5)
        soon = evaluator.wait(evaluator.submit(urgent, 1))
        later = evaluator.wait(later)
    assert sorted(later.failures) == [1, 5, 9] and not soon.failures
    good = [i for i in range(12) if i not in later.failures]
    expected = np.stack([sampled(each, Behavior(2, 3)) for each in states])
    assert np.array_equal(later.behaviors[good], expected[: len(good)])
    assert np.array_equal(soon.behaviors, expected[len(good) :])
    assert not later.behaviors[[1, 5, 9]].any()


def test_nothing_is_recorded_unasked() -> None:
    with LocalEvaluator("hard_maze", "mlp", lanes=1, slots=2) as evaluator:
        assert evaluator.behavior_size == 0
        assert evaluator.evaluate(maze_episodes()[:3]).behaviors is None
    played = run_episodes(registry.resolve("hard_maze"), [mlp], maze_episodes()[:3], lanes=1, slots=1)
    assert played.behaviors is None


@pytest.mark.parametrize(
    ("env", "plan", "message"),
    [
        ("gymnasium:CartPole-v1", Behavior(), "CartPole-v1 cannot be recorded: behavior is not supported"),
        ("hard_maze", Behavior(-1), "every is -1, expected 0 (at the end) or a number of steps"),
        ("hard_maze", Behavior(4, 0), "samples is 0, expected 1 to 1048576 of 16 bytes each"),
        ("hard_maze", Behavior(4, 1048577), "samples is 1048577, expected 1 to 1048576 of 16 bytes each"),
        ("freeway", Behavior(4, 131073), "samples is 131073, expected 1 to 131072 of 128 bytes each"),
    ],
)
def test_what_cannot_be_recorded(env: str, plan: Behavior, message: str, engine: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        LocalEvaluator(env, "model" if env == "freeway" else "mlp", lanes=1, slots=1, behavior=plan, engine=engine)
    with pytest.raises(NativeError, match=re.escape(message.split(": ")[-1])):
        EnvPool(registry.resolve(env), 1).record_behaviors(plan.every, plan.samples)


def test_the_op_and_the_c_interface() -> None:
    recipe, pool = registry.resolve("hard_maze"), EnvPool(registry.resolve("hard_maze"), 2)
    handle = load_ops().env_pool_make(family=recipe.family, options=list(recipe.options), slots=2)
    pool.record_behaviors(2, 3)
    load_ops().env_record_behaviors(handle, 2, 3)
    assert pool.behavior_size == 6
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=2, first_row=0)
    submission = pack([Episode(Genome(1), seed) for seed in (3, 4)], frame_skip=1, dimensions=[1], first_id=70)
    load_ops().episode_queue_submit(queue, **submission.arrays(), priority=0)
    load_ops().episode_queue_take(queue, 0)
    slots, seeds, frames = (np.array(each, np.int64) for each in ([0, 1], [3, 4], [3, 8]))
    pool.reset(slots, seeds, frames)
    load_ops().env_reset(handle, slots, seeds, frames, np.zeros(0, np.int64))
    states = []
    for step in range(3):
        actions = np.array([[0.5 * step, 1], [1, 1]], np.float32)
        pool.step(slots, actions)
        stepped = load_ops().env_step(handle, slots, actions)
        load_ops().episode_queue_put(queue, handle, 0, slots, stepped.rewards, stepped.dones)
        states.append(pool.behavior([0])[0])
    expected = np.concatenate([states[1], states[2], states[2]])
    results = load_ops().episode_queue_results(queue, 1, 0)
    assert results.episode_ids.numpy().tolist() == [70] and results.behaviors.dtype == tf.uint8
    assert np.array_equal(results.behaviors.numpy().view(np.float64), expected[None])
    with pytest.raises(NativeError, match="slot 0 .*already reset"):
        pool.record_behaviors()
    with pytest.raises(tf.errors.InvalidArgumentError, match="slot 0 .*already reset"):
        load_ops().env_record_behaviors(handle, 0, 1)
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"has shape \[1\], expected \[\]|rank 0"):
        load_ops().env_record_behaviors(handle, [0], 1)


def results_of(ids: list[int], failures: list[str], behaviors: np.ndarray) -> EpisodeResults:
    count = len(ids)
    return EpisodeResults(
        np.array(ids), np.zeros(count), np.ones(count, np.int64), failures, np.zeros((count, 0)), behaviors
    )


def test_a_batch_keeps_the_behaviors_of_its_episodes() -> None:
    batch, rows = Batch(3, 2, np.uint8), np.arange(6, dtype=np.uint8).reshape(3, 2)
    assert np.array_equal(batch.outcomes.behaviors, np.zeros((3, 2)))
    batch.book(results_of([2, 0], ["", "broke"], rows[:2]))
    rows[:] = 99  # callers may reuse the array
    expected = np.array([[2, 3], [0, 0], [0, 1]], np.uint8)
    outcomes: Outcomes = batch.outcomes
    assert outcomes.behaviors.dtype == np.uint8 and np.array_equal(outcomes.behaviors, expected)
    assert outcomes.failures == {0: "broke"} and batch.left == 1
    without = Batch(1)
    without.book(results_of([0], [""], np.zeros((1, 0), np.uint8)))
    assert without.behaviors is None
