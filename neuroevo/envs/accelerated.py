"""What families of environments have in common whose simulators run on the accelerator, together with the networks.

Nothing of JAX is imported here; neuroevo/accelerated does that when episodes are played.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.family import EnvFamily

_EXTRA = "`pip install neuroevo[accelerated]` installs it"


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


class AcceleratedFamily(EnvFamily):
    """A family of such environments; EnvFamily says what the methods mean.

    Attributes:
        prefix: What its names begin with.
    """

    prefix: str

    continuous_actions = True
    tried_at_preflight = False  # it takes JAX and seconds
    accelerated = True
    behaviors = False

    def find(self, given_name: str) -> str | None:
        """The name itself where it has the prefix; whether there is such an environment is a problem's."""
        return given_name.strip() if given_name.strip().startswith(self.prefix) else None

    def options_type(self, name: str) -> type:  # noqa: ARG002 - those of a family's environments are the same
        """The class of the options."""
        return AcceleratedOptions

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """There may be no Brax, or lanes that devices cannot share."""
        found: list[Problem] = []
        if importlib.util.find_spec("brax") is None:
            found.append(Problem("env.name", f"Brax is not installed; {_EXTRA}", given_name))
        lanes = options.get("lanes", AcceleratedOptions.lanes)
        devices = options.get("devices", AcceleratedOptions.devices)
        if lanes % devices:
            found.append(Problem("env.options.lanes", f"expected a multiple of {devices}, as devices is", lanes))
        return found

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG002
        """UserError: the native core does not play it."""
        raise UserError(f"{name} is simulated on the accelerator; the native core, which this is for, does not play it")

    def image_observations(self, options: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Never."""
        return False
