"""The base class of environments whose simulators run on the accelerator, together with the networks.

Nothing of JAX is imported here; neuroevo/accelerated does that when episodes are played.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from neuroevo.core.errors import UserError
from neuroevo.core.extras import missing
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.environment import Environment


@settings
class AcceleratedOptions:
    """Options that all of them have."""

    max_episode_steps: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 1000
    """Steps after which an episode is cut off."""
    lanes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 20)] = 256
    """How many episodes are simulated side by side, on all devices together. The last bits of some simulators depend on
    it (Ant's, on mjx), and so do results there."""
    devices: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 10)] = 1
    """How many of JAX's devices share the lanes; on a machine without a GPU, how many cores. Results depend on it as on
    lanes."""


class AcceleratedEnvironment(Environment):
    """An environment whose simulator runs on the accelerator."""

    continuous_actions = True
    tried_at_preflight = False  # it takes JAX and seconds
    image_observations = False
    options_type: type = AcceleratedOptions

    def check(self) -> list[Problem]:
        """Report that Brax is not installed, and lanes that devices cannot share."""
        found: list[Problem] = []
        if message := missing("accelerated", "brax"):
            found.append(Problem("env.name", message, self.given_name))
        lanes, devices = self.options.lanes, self.options.devices
        if lanes % devices:
            found.append(Problem("env.options.lanes", f"expected a multiple of {devices}, as devices is", lanes))
        return found

    def native_options(self) -> Mapping[str, Any]:
        """UserError: the native core does not play it."""
        raise UserError(f"{self.name} is simulated on the accelerator, not supported by the native core")
