"""Brax's environments (Freeman et al. 2021, https://arxiv.org/abs/2106.13281), on Brax's own physics or on MJX."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from brax import envs
from brax.base import System, Transform
from jax import lax

from neuroevo.accelerated.simulator import quiet
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem
from neuroevo.envs.brax import BraxEnvironment


class BraxSimulator:
    """Brax environment that satisfies the Simulator protocol.

    Attributes:
        environment: The Brax environment.
        state: Shapes and dtypes of a state.
        observation_size: Number of values of an observation, n.
        action_size: Number of values of an action.
    """

    def __init__(self, environment: envs.Env):
        """Trace the environment for its shapes.

        Args:
            environment: A Brax environment, or an object with the same methods.
        """
        self.environment = environment
        # Functions with their own jit are traced once per process instead of in each program that calls them; for MJX,
        # whose step has thousands of operations, tracing takes seconds.
        self._reset, self._step = jax.jit(environment.reset), jax.jit(environment.step)
        state = jax.eval_shape(self._reset, jnp.zeros(2, jnp.uint32))
        # With strong dtypes, so that the initial state has the same dtypes as the later ones.
        self.state = jax.tree.map(_strong_shape, state)
        self.observation_size = self.observation(state).shape[-1]
        self.action_size = self.environment.action_size

    def reset(self, key: jax.Array) -> Any:
        """Return an initial state; see Simulator."""
        return self._strong(self._reset(key))

    def observation(self, state: Any) -> jax.Array:
        """Return the observation of a state; see Simulator."""
        return state.obs

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """Take a step; see Simulator."""
        after = self._strong(self._step(state, action))
        return after, after.reward, after.done > 0

    def bodies(self, state: Any) -> Transform:
        """Return the positions and rotations of the robot's bodies."""
        return state.pipeline_state.x

    def system(self) -> System:
        """Return the robot's model, for Brax's viewer."""
        return self.environment.sys

    def _strong(self, state: Any) -> Any:
        """Convert a state to the dtypes of self.state, which are not weak types of JAX."""
        return jax.tree.map(lambda leaf, like: lax.convert_element_type(leaf, like.dtype), state, self.state)


def _strong_shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=4)
def shared_simulator(task: str, backend: str) -> BraxSimulator:
    """Return the simulator of a Brax environment; the object is cached, so that JAX compiles it once.

    Args:
        task: Brax's name of the environment.
        backend: Brax's name of the physics engine.

    Raises:
        KeyError: Brax has no environment of this name.
    """
    with quiet():
        return BraxSimulator(envs.get_environment(task, backend=backend))


def make_simulator(env: BraxEnvironment) -> BraxSimulator:
    """Return the simulator of an environment, after importing the module that registers it.

    Args:
        env: The environment.

    Raises:
        UserError: The module cannot be imported.
        ConfigError: The environment does not exist.
    """
    module, task = env.module_and_task
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UserError(f"cannot import the module '{module}' of {env.given_name!r}: {error}") from error
    try:
        return shared_simulator(task, env.options.backend)
    except KeyError:
        reason = f"{module or 'Brax'} registers no environment '{task}'"
        raise ConfigError([Problem("env.name", reason, env.given_name)]) from None
