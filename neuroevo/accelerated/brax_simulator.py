"""Brax's environments (Freeman et al. 2021, https://arxiv.org/abs/2106.13281), on Brax's own physics or on MJX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from brax.base import System, Transform
from brax.envs import Env
from jax import lax


class BraxSimulator:
    """An environment of Brax; satisfies the Simulator protocol.

    Attributes:
        environment: Brax's.
        state: Shapes and dtypes of a state.
        observation_size: n.
        action_size: How many numbers an action has.
    """

    def __init__(self, environment: Env):
        """Looks at the environment's shapes.

        Args:
            environment: One of Brax, or with the same functions.
        """
        self.environment = environment
        # Functions that are compiled by themselves are traced once in a process, not in each program that calls them;
        # for MJX, whose step has thousands of operations, that takes seconds.
        self._reset, self._step = jax.jit(environment.reset), jax.jit(environment.step)
        state = jax.eval_shape(self._reset, jnp.zeros(2, jnp.uint32))
        # With strong dtypes, so that the state has the same ones at the start as after steps.
        self.state = jax.tree.map(_strong_shape, state)
        self.observation_size = self.observation(state).shape[-1]
        self.action_size = self.environment.action_size

    def reset(self, key: jax.Array) -> Any:
        """See Simulator."""
        return self._strong(self._reset(key))

    def observation(self, state: Any) -> jax.Array:
        """See Simulator."""
        return state.obs

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """See Simulator."""
        after = self._strong(self._step(state, action))
        return after, after.reward, after.done > 0

    def bodies(self, state: Any) -> Transform:
        """Where a robot's bodies are, and how they are turned."""
        return state.pipeline_state.x

    def system(self) -> System:
        """The robot's model, for Brax's viewer."""
        return self.environment.sys

    def _strong(self, state: Any) -> Any:
        """The same with the dtypes of self.state, none of which JAX calls weak."""
        return jax.tree.map(lambda leaf, like: lax.convert_element_type(leaf, like.dtype), state, self.state)


def _strong_shape(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)  # type: ignore[no-untyped-call]
