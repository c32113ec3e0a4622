"""EnvPool: episodes are identical to those of make_vec, also inside graphs and for subsets of the environments."""

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.envs.vector import make_vec
from neuroevo.tf import EnvPool

TOYS = "tests.support.gymnasium_toys:"


def actions_for(pool, steps, seed=0):
    rng = np.random.default_rng(seed)
    if pool.discrete:
        return rng.integers(pool.num_actions, size=(steps, pool.num_envs)).astype(np.int32)
    shape = (steps, pool.num_envs, pool.num_actions)
    return rng.uniform(pool.action_low, pool.action_high, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pong", {}),
        ("pong", {"max_episode_steps": 9}),
        ("Hopper-v5", {}),
        ("HalfCheetah-v5", {"max_episode_steps": 7}),
        ("hard_maze", {}),
    ],
)
def test_episodes_are_those_of_gymnasium_s_interface(name, options):
    """Only until the first episode ends: later episodes have their seeds in another order."""
    pool, vector = EnvPool(name, 3, **options), make_vec(name, 3, autoreset_mode="SameStep", **options)
    seeds = [5, 6, 7]
    pool.reset(seeds=tf.constant(seeds, tf.int64))
    observations, _ = vector.reset(seed=seeds)
    going = np.ones(3, bool)
    for actions in actions_for(pool, 40):
        np.testing.assert_array_equal(pool.observe().numpy()[going], observations[going])
        step = pool.step(actions)
        observations, rewards, terminated, truncated, _ = vector.step(actions)
        np.testing.assert_array_equal(step.rewards.numpy()[going], rewards.astype(np.float32)[going])
        np.testing.assert_array_equal(step.terminated.numpy()[going], terminated[going])
        np.testing.assert_array_equal(step.truncated.numpy()[going], (truncated & ~terminated)[going])
        going &= ~(terminated | truncated)
    assert going.all() == (name != "Hopper-v5" and not options)


def test_a_truncated_episode_is_not_terminated():
    pool = EnvPool("HalfCheetah-v5", 2, max_episode_steps=3)
    pool.reset()
    steps = [pool.step(actions) for actions in actions_for(pool, 6)]
    assert [step.truncated.numpy().tolist() for step in steps] == [[n % 3 == 2] * 2 for n in range(6)]
    assert not any(step.terminated.numpy().any() for step in steps)


def test_a_graph_plays_what_single_calls_play():
    actions = None
    outcomes = []
    for graph in (False, True):
        pool = EnvPool("Hopper-v5", 4, seed=3)
        actions = actions_for(pool, 60) if actions is None else actions

        def play(actions, pool=pool):
            rewards = tf.TensorArray(tf.float32, len(actions))
            for t in tf.range(len(actions)):
                rewards = rewards.write(t, pool.step(actions[t]).rewards)
            return rewards.stack(), pool.observe()

        pool.reset()
        outcomes.append((tf.function(play) if graph else play)(tf.constant(actions)))
    for single, traced in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(single, traced)
    assert outcomes[0][0].shape == (60, 4)


def test_no_pool_waits_for_another():
    """In one graph, TensorFlow orders the calls of one pool in program order, but not the calls of different pools."""
    one, other = (EnvPool("pong", 1) for _ in range(2))

    @tf.function
    def steps():
        for pool in (one, other, one):
            pool.step(tf.zeros([1], tf.int32))

    first, between, last = (op for op in steps.get_concrete_function().graph.get_operations() if op.type == "EnvStep")

    def awaited(op):
        return {op}.union(*map(awaited, [*op.control_inputs, *(tensor.op for tensor in op.inputs)]))

    assert first in awaited(last)
    assert not awaited(between) & {first, last} and between not in awaited(last)


def test_some_of_the_environments():
    """Environments are independent of each other, for any grouping into calls."""
    pool, together = EnvPool("Hopper-v5", 3), EnvPool("Hopper-v5", 3)
    seeds = tf.constant([1, 2, 3], tf.int64)
    for each in (pool, together):
        each.reset(seeds=seeds)
    actions = actions_for(pool, 1)[0]
    expected = together.step(actions).rewards.numpy()
    parts = [pool.step(actions[part], part).rewards.numpy() for part in (np.array([2]), np.array([0, 1]))]
    np.testing.assert_array_equal(np.concatenate(parts), expected[[2, 0, 1]])
    np.testing.assert_array_equal(pool.observe([1, 0]), together.observe().numpy()[[1, 0]])


def test_without_autoreset_an_episode_that_is_over_is_refused():
    pool = EnvPool("HalfCheetah-v5", 2, autoreset=False, max_episode_steps=1)
    pool.reset()
    assert pool.step(actions_for(pool, 1)[0]).truncated.numpy().all()
    last = pool.observe()
    with pytest.raises(tf.errors.InvalidArgumentError, match="slot 0 is not live"):
        pool.step(actions_for(pool, 1)[0])
    pool.reset(tf.constant([1]))
    assert pool.step(actions_for(pool, 1)[0][1:], tf.constant([1])).rewards.shape == [1]
    np.testing.assert_array_equal(pool.observe()[0], last[0])


def test_pools_of_equal_seeds_play_equal_episodes():
    seen = []
    for seed in (1, 1, 2):
        pool = EnvPool("Hopper-v5", 2, seed=seed)
        pool.reset()
        for actions in actions_for(pool, 50):  # long enough for episodes to end
            pool.step(actions)
        seen.append(pool.observe().numpy())
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])


def test_screens():
    pool = EnvPool("pong", 2)
    pool.reset()
    assert pool.render().shape == (2, 210, 160, 3)
    assert pool.observe().shape == (2, 84, 84, 4) and pool.observation_dtype == tf.uint8


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"name": "pongg"}, UserError, "did you mean pong"),
        ({"name": "pong", "frame_skp": 3}, ConfigError, "frame_skp"),
        ({"name": "brax:ant"}, UserError, "simulated by JAX"),
        ({"name": "pong", "num_envs": 0}, ValueError, "num_envs is 0"),
        ({"name": "pong", "max_episode_steps": 0}, ValueError, "max_episode_steps is 0"),
    ],
)
def test_mistakes(arguments, error, words):
    with pytest.raises(error, match=words):
        EnvPool(**{"num_envs": 1, **arguments})


def test_a_wrong_action_is_named():
    pool = EnvPool("pong", 1)
    pool.reset()
    with pytest.raises(tf.errors.InvalidArgumentError, match="action 9 of slot 0"):
        pool.step(tf.constant([9]))
