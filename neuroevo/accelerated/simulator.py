"""Protocol of a simulator: pure functions on the arrays of one episode, which the lanes vectorize."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any, Protocol

import jax


class Simulator(Protocol):
    """Simulator whose methods JAX can compile and vmap.

    Attributes:
        state: Shapes and dtypes of a state, a tree of jax.ShapeDtypeStruct.
        observation_size: Number of values of an observation, n.
        action_size: Number of values of an action.
    """

    state: Any
    observation_size: int
    action_size: int

    def reset(self, key: jax.Array) -> Any:
        """Return the initial state of an episode.

        Args:
            key: Random key, uint32 [2], which determines everything random.
        """

    def observation(self, state: Any) -> jax.Array:
        """Return the observations of states [...], float32 [..., n]."""

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """Take a step.

        Args:
            state: The state before the step.
            action: The action, float32 [action_size], in [-1, 1].

        Returns:
            The next state, the reward, float32, and whether the episode is over, bool.
        """


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress MJX's output about optional packages, and the warning that Brax is not maintained (docs/brax.md)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
