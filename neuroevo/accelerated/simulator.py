"""A simulator as the lanes need it: pure functions of arrays, of one episode at a time."""

from __future__ import annotations

from typing import Any, Protocol

import jax


class Simulator(Protocol):
    """Functions that JAX can compile and vmap.

    Attributes:
        state: Shapes and dtypes of a state, a tree of jax.ShapeDtypeStruct.
        observation_size: n.
        action_size: How many numbers an action has.
    """

    state: Any
    observation_size: int
    action_size: int

    def reset(self, key: jax.Array) -> Any:
        """The state at an episode's start.

        Args:
            key: What all that is random follows from, uint32 [2].
        """

    def observation(self, state: Any) -> jax.Array:
        """What a network sees of states [...], float32 [..., n]."""

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """One decision later.

        Args:
            state: Before it.
            action: float32 [action_size], in [-1, 1].

        Returns:
            The state, the reward, float32, and whether the episode is over, bool.
        """
