"""The protocol of a simulator, pure functions of the arrays of one episode, which the lanes vectorize."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
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
        """Return the state at the start of an episode.

        Args:
            key: uint32 [2], from which everything random follows.
        """

    def observation(self, state: Any) -> jax.Array:
        """Return the observations of states [...], float32 [..., n]."""

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """Return what follows from an action.

        Args:
            state: The state before it.
            action: float32 [action_size], in [-1, 1].

        Returns:
            The state, the reward, float32, and whether the episode is over, bool.
        """


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress MJX's output about optional packages, and the warning that Brax is not maintained (docs/brax.md)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
