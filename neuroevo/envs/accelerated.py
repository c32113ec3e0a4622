"""Base class of environments whose simulators run on the accelerator, together with the networks.

This module does not import JAX; neuroevo/accelerated does so when episodes are played.
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
    """Options common to all accelerated environments."""

    max_episode_steps: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 1000
    """Steps after which an episode is cut off."""
    lanes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 20)] = 256
    """Number of episodes simulated in parallel, over all devices. The last bits of some simulators, and thus results,
    depend on it (such as Ant on mjx)."""
    devices: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 10)] = 1
    """Number of JAX devices that share the lanes; on a machine without a GPU, number of cores. Results depend on it as
    they do on lanes."""


class AcceleratedEnvironment(Environment):
    """Environment whose simulator runs on the accelerator."""

    continuous_actions = True
    tried_at_preflight = False  # needs JAX and takes seconds
    image_observations = False
    options_type: type = AcceleratedOptions

    def check(self) -> list[Problem]:
        """Report a missing Brax package, and a number of lanes that is not a multiple of devices."""
        found: list[Problem] = []
        if message := missing("accelerated", "brax"):
            found.append(Problem("env.name", message, self.given_name))
        lanes, devices = self.options.lanes, self.options.devices
        if lanes % devices:
            found.append(Problem("env.options.lanes", f"expected a multiple of devices, {devices}", lanes))
        return found

    def native_options(self) -> Mapping[str, Any]:
        """Raise UserError: the native core does not support the environment."""
        raise UserError(f"{self.name} is simulated on the accelerator, not supported by the native core")
