"""Gymnasium's own environments, playing the episodes that ours play under its vector interface."""

import gymnasium
import mujoco
import numpy as np

from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from tests.support.atari_reference import GymnasiumEnv
from tests.support.population_reference import philox


def episode_seeds(seed):
    """The seeds of an environment's episodes, by the documentation in vector_env.h: itself, then Philox's words."""
    yield seed
    for episode in range(1, 1000):
        words = philox(np.array([[episode, 0, 0, 0]], np.uint64), (seed & 0xFFFFFFFF, seed >> 32))[0]
        yield (int(words[0]) | int(words[1]) << 32) >> 1


class TheirGame(gymnasium.Env):
    """Gymnasium's preprocessing around ale-py, playing the episodes that ours does."""

    def __init__(self, game, seed, max_steps, sticky=0.0):
        self.reference = GymnasiumEnv(game, loaded={"sticky": sticky})
        self.seeds, self.max_frames = episode_seeds(seed), 4 * max_steps
        self.observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 4), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(self.reference.actions))

    def infos(self):
        ale = self.reference.ale
        return {"lives": ale.lives(), "episode_frame_number": ale.getEpisodeFrameNumber()}

    def reset(self, *, seed=None, options=None):
        return self.reference.reset(next(self.seeds), self.max_frames), self.infos()

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.reference._env.step(action)
        return np.moveaxis(observation, 0, -1), reward, terminated, truncated, self.infos()


class TheirCartPole(gymnasium.Wrapper):
    """CartPole with the seeds of our episodes, as far as it takes them."""

    def __init__(self, seed, max_steps):
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=max_steps))
        self.seeds = episode_seeds(seed)

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=next(self.seeds) % 2**31)


class TheirHopper(gymnasium.Wrapper):
    """Gymnasium's Hopper, begun where ours begins, without its infos."""

    def __init__(self, seed, max_steps):
        super().__init__(gymnasium.make("Hopper-v5", max_episode_steps=max_steps))
        self.seeds, self.starts = episode_seeds(seed), EnvPool(registry.resolve("Hopper"), 1)

    def reset(self, *, seed=None, options=None):
        self.env.reset(seed=0)  # and the clock of its time limit
        task = self.env.unwrapped
        self.starts.reset([0], [next(self.seeds)], [0])
        state = self.starts.state([0])[0]
        mujoco.mj_resetData(task.model, task.data)
        task.set_state(state[: task.model.nq], state[task.model.nq :])
        return task._get_obs(), {}

    def step(self, action):
        return *self.env.step(action)[:4], {}


def assert_alike(found, expected, tolerance):
    """Equal to Gymnasium's, dictionaries key by key, arrays of objects element by element."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_alike(found[key], value, tolerance)
    elif expected is None:
        assert found is None
    elif expected.dtype == object:
        assert found.dtype == object and found.shape == expected.shape
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, tolerance)
    else:
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert np.abs(found.astype(float) - expected.astype(float)).max(initial=0) <= tolerance
