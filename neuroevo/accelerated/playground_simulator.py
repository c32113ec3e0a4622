"""MuJoCo Playground's tasks (Zakka et al. 2025, https://arxiv.org/abs/2502.08844), on MJX's physics in JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from brax.base import System, Transform
from brax.io import mjcf

from neuroevo.accelerated.brax_simulator import BraxSimulator

_FOR_POLICIES = "state"  # of the observations of a task that has several, for policies and for critics


class PlaygroundSimulator(BraxSimulator):
    """A task of Playground; satisfies the Simulator protocol."""

    def observation(self, state: Any) -> jax.Array:
        """What policies see, of a task that shows critics more."""
        several = isinstance(state.obs, Mapping)
        return state.obs[_FOR_POLICIES] if several else state.obs

    def bodies(self, state: Any) -> Transform:
        """See BraxSimulator."""
        return Transform(pos=state.data.xpos[..., 1:, :], rot=state.data.xquat[..., 1:, :])  # but the world's

    def system(self) -> System:
        """See BraxSimulator."""
        return mjcf.load_model(self.environment.mj_model)
