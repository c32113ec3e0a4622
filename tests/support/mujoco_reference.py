"""Gymnasium's own MuJoCo tasks, started where ours are."""

import gymnasium
import mujoco

from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool


class GymnasiumTask:
    """One of Gymnasium's tasks, without the wrappers of gymnasium.make: `start` puts it where an episode of ours is."""

    def __init__(self, name, **options):
        max_steps = options.pop("max_episode_steps", None)
        self.max_steps = max_steps or gymnasium.spec(name).max_episode_steps
        self.env = gymnasium.make(name, **options).unwrapped
        self.steps = 0

    def start(self, state):
        """Set a state, positions and then velocities, and return the observation."""
        model, data = self.env.model, self.env.data
        mujoco.mj_resetData(model, data)
        self.env.set_state(state[: model.nq], state[model.nq :])
        self.steps = 0
        return self.env._get_obs()

    def step(self, action):
        """Returns observation, reward, whether it terminated, and whether the episode is over."""
        observation, reward, terminated, _, _ = self.env.step(action)
        self.steps += 1
        return observation, reward, bool(terminated), bool(terminated) or self.steps >= self.max_steps


def make(name, slots=1, **options):
    return EnvPool(registry.resolve(name, options), slots)
