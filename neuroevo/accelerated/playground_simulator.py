"""MuJoCo Playground's tasks (Zakka et al. 2025, https://arxiv.org/abs/2502.08844), on MJX's physics in JAX."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
from brax.base import System, Transform
from brax.io import mjcf

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.simulator import quiet
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.envs.playground import PlaygroundTask

_FOR_POLICIES = "state"  # key of the policy's observation in tasks with separate observations for critics


class PlaygroundSimulator(BraxSimulator):
    """Playground task that satisfies the Simulator protocol."""

    def observation(self, state: Any) -> jax.Array:
        """Return the observation for policies; some tasks have another one for critics."""
        several = isinstance(state.obs, Mapping)
        return state.obs[_FOR_POLICIES] if several else state.obs

    def bodies(self, state: Any) -> Transform:
        """Return the positions and rotations of the robot's bodies."""
        return Transform(pos=state.data.xpos[..., 1:, :], rot=state.data.xquat[..., 1:, :])  # without the world body

    def system(self) -> System:
        """Return the robot's model, for Brax's viewer."""
        return mjcf.load_model(self.environment.mj_model)


def make_simulator(env: PlaygroundTask) -> PlaygroundSimulator:
    """Return the simulator of a task; the object is cached.

    Args:
        env: The task.

    Raises:
        UserError: Playground cannot make the task.
        ConfigError: Playground has no such task.
    """
    from mujoco_playground import registry  # an optional dependency

    task, known = env.task, registry.ALL_ENVS
    if task not in known:
        reason = f"MuJoCo Playground has no task '{task}'{did_you_mean(task, known)} (it has {', '.join(known)})"
        raise ConfigError([Problem("env.name", reason, env.given_name)])
    return _simulator(task)


@lru_cache(maxsize=4)
def _simulator(task: str) -> PlaygroundSimulator:
    from mujoco_playground import registry

    try:
        with quiet():
            return PlaygroundSimulator(registry.load(task, config_overrides={"impl": "jax"}))
    except (OSError, ValueError, NotImplementedError, RuntimeError, subprocess.SubprocessError) as error:
        raise UserError(f"Playground cannot make its task {task}: {error}") from error
