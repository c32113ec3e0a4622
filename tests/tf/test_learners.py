"""The examples that learn in graphs: the collected data match the episodes."""

import numpy as np
import pytest
import tensorflow as tf

from experiments.examples import a2c, dqn
from neuroevo.tf import EnvPool


def test_a2c_sums_discounted_rewards_up_to_the_critic_s_value():
    """Episodes have three steps each, so that they end within a batch."""
    pool, again = (EnvPool("breakout", 4, seed=2, max_episode_steps=3) for _ in range(2))
    learner = a2c.Learner(pool, steps=7, updates=10)
    pool.reset(), again.reset()
    batch, _, episodes = learner._collect()
    rewards, ends = [], []
    for t in range(7):
        np.testing.assert_array_equal(again.observe(), batch.observations[t])
        step = again.step(batch.actions[t])
        rewards.append(np.sign(step.rewards))
        ends.append(step.terminated | step.truncated)
    follows = learner.model(again.observe())[1].numpy()[:, 0]
    for t in reversed(range(7)):
        follows = rewards[t] + 0.99 * np.where(ends[t], 0, follows)
        np.testing.assert_allclose(batch.returns[t], follows, rtol=1e-5)
    assert int(episodes) == np.sum(ends) == 8


def test_a2c_learns_in_one_call():
    pool = EnvPool("pong", 2, seed=1)
    learner = a2c.Learner(pool, steps=2, updates=10)
    before = [each.numpy() for each in learner.model.trainable_variables]
    pool.reset()
    learner.train(tf.constant(3))
    after = [each.numpy() for each in learner.model.trainable_variables]
    assert not any(np.array_equal(*pair) for pair in zip(before, after, strict=True))
    assert all(np.isfinite(each).all() for each in after)


def test_dqn_keeps_what_was_played():
    """The buffer holds 5 steps of each environment, so that the oldest of 8 steps are overwritten."""
    pool, again = (EnvPool("breakout", 3, seed=2, max_episode_steps=3) for _ in range(2))
    learner = dqn.Learner(pool, length=5, learning_starts=6, explored=4, target_every=4)
    first = [each.numpy() for each in learner.model.trainable_variables]
    pool.reset(), again.reset()
    played = []
    for t in range(8):
        learner.train(tf.constant(1))
        place = slice(t % 5 * 3, t % 5 * 3 + 3)
        seen = again.observe()
        step = again.step(learner._actions[place])
        played.append((seen, np.sign(step.rewards), step.terminated | step.truncated))
    for t in range(3, 8):
        place = slice(t % 5 * 3, t % 5 * 3 + 3)
        for variable, values in zip((learner._observations, learner._rewards, learner._ends), played[t], strict=True):
            np.testing.assert_array_equal(variable[place], tf.cast(values, variable.dtype))
    after = [each.numpy() for each in learner.model.trainable_variables]
    assert any(not np.array_equal(*pair) for pair in zip(first, after, strict=True))


@pytest.mark.parametrize(
    ("example", "options"), [(a2c.a2c, {}), pytest.param(dqn.dqn, {"buffer": 400}, marks=pytest.mark.thorough)]
)
def test_the_command_writes_a_curve(example, options, tmp_path):
    rows = example(frames=3000, num_envs=4, seed=1, out=tmp_path / "curve.csv", **options)
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0] == "frames,mean_return,episodes" and len(lines) == 1 + len(rows) and rows[-1][0] >= 3000
