"""The example for Stable-Baselines3, if that is installed: its checks of vectors, and training with PPO."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="pip install stable-baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from experiments.examples.stable_baselines import NeuroevoVecEnv, speed, theirs, train


def test_a_game_is_seen_as_by_its_own_vectors():
    ours, own = NeuroevoVecEnv("ALE/Breakout-v5", 3), DummyVecEnv([theirs("ALE/Breakout-v5")] * 3)
    assert ours.action_space == own.action_space
    assert ours.observation_space.shape == own.observation_space.shape[1:] + own.observation_space.shape[:1]
    seen, expected = ours.reset(), own.reset()
    assert seen.dtype == expected.dtype and seen.shape == (3, 84, 84, 4)
    ours.close()


def test_ends_are_told_as_they_expect_it():
    vector = VecMonitor(NeuroevoVecEnv("Hopper-v5", 4, max_episode_steps=30))
    vector.seed(3)
    before, rng = vector.reset(), np.random.default_rng(0)
    returns, counted, truncated = np.zeros(4), 0, 0
    for _ in range(200):
        after, rewards, dones, infos = vector.step(rng.uniform(-1, 1, (4, 3)).astype(np.float32))
        returns += rewards
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"]
            assert last.shape == before[i].shape and (last != after[i]).any()
            assert infos[i]["episode"]["r"] == pytest.approx(returns[i], abs=1e-3)
            assert infos[i]["TimeLimit.truncated"] == (infos[i]["episode"]["l"] == 30)
            returns[i], counted, truncated = 0, counted + 1, truncated + infos[i]["TimeLimit.truncated"]
        assert not any("terminal_observation" in infos[i] for i in np.flatnonzero(~dones))
    assert counted > truncated > 0
    vector.close()


def test_seeds_are_taken():
    first, again, other = (NeuroevoVecEnv("Hopper-v5", 2) for _ in range(3))
    for vector, seed in ((first, 5), (again, 5), (other, 6)):
        vector.seed(seed)
    one, two, three = first.reset(), again.reset(), other.reset()
    np.testing.assert_array_equal(one, two)
    assert (one != three).any() and (first.reset() != one).any()


def test_ppo_learns_and_repeats():
    means = train("InvertedPendulum-v5", num_envs=8, batch=64, steps=16_384, seed=1)
    assert means[-1] > 3 * means[0]
    assert train("InvertedPendulum-v5", num_envs=8, batch=64, steps=1024, seed=1) == means[:2]


def test_ppo_plays_a_game():
    assert len(train("ALE/Pong-v5", num_envs=2, batch=16, steps=64)) == 2


def test_speed_is_told():
    rates = speed("InvertedPendulum-v5", num_envs=2, seconds=0.1, rounds=1)
    assert set(rates) == {"neuroevo", "DummyVecEnv", "SubprocVecEnv"} and min(rates.values()) > 0
