"""Brax's environments, `brax:ant`, whose simulators run on the accelerator together with the networks.

Nothing of Brax or JAX is imported here; neuroevo/accelerated does that when episodes are played. A user's own
environment, which a module registers with brax.envs.register_environment, is `brax:my_module:name`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean
from neuroevo.core.settings import settings, whole
from neuroevo.envs.family import EnvFamily

EXTRA = "`pip install neuroevo[accelerated]` installs it"
TASKS = (
    "ant",
    "halfcheetah",
    "hopper",
    "humanoid",
    "humanoidstandup",
    "inverted_double_pendulum",
    "inverted_pendulum",
    "pusher",
    "reacher",
    "swimmer",
    "walker2d",
)
_PREFIX = "brax:"


@dataclass(frozen=True)
class Counterpart:
    """Gymnasium's task of the same robot, which the native core plays.

    Attributes:
        name: Its name.
        model: The file of Brax's model of the robot.
        alike: How many numbers of both observations are the same, from the first on.
    """

    name: str
    model: str
    alike: int


COUNTERPARTS = {
    "ant": Counterpart("Ant-v5", "ant.xml", 27),  # ours goes on with contact forces
    "halfcheetah": Counterpart("HalfCheetah-v5", "half_cheetah.xml", 17),
    "hopper": Counterpart("Hopper-v5", "hopper.xml", 11),
    "humanoid": Counterpart("Humanoid-v5", "humanoid.xml", 45),  # both go on, with inertias of other frames
    "inverted_double_pendulum": Counterpart("InvertedDoublePendulum-v5", "inverted_double_pendulum.xml", 8),
    "inverted_pendulum": Counterpart("InvertedPendulum-v5", "inverted_pendulum.xml", 4),
    "pusher": Counterpart("Pusher-v5", "pusher.xml", 23),
    "reacher": Counterpart("Reacher-v5", "reacher.xml", 6),  # then Brax has the tip's speed, ours that of the joints
    "swimmer": Counterpart("Swimmer-v5", "swimmer.xml", 8),
    "walker2d": Counterpart("Walker2d-v5", "walker2d.xml", 17),
}
"""By Brax's names."""


@settings
class BraxOptions:
    """Options of Brax's environments: the table [env.options] of a configuration."""

    backend: Literal["mjx", "generalized", "spring", "positional"] = "mjx"
    """Which physics: mjx is MuJoCo's own on the accelerator, which Brax's authors recommend; the others are Brax's."""
    max_episode_steps: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 1000
    """Steps after which an episode is cut off."""
    lanes: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 20)] = 256
    """How many episodes are simulated side by side, on all devices together. The last bits of some simulators depend on
    it (Ant's, on mjx), and so do results there."""
    devices: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 10)] = 1
    """How many of JAX's devices share the lanes; on a machine without a GPU, how many cores. Results depend on it as on
    lanes."""


class BraxFamily(EnvFamily):
    """Brax's environments; EnvFamily says what the methods mean."""

    name = "brax"
    continuous_actions = True
    tried_at_preflight = False  # it takes JAX and seconds
    accelerated = True

    def find(self, given_name: str) -> str | None:
        """The name itself where it has the family's prefix; whether there is such an environment is a problem's."""
        return given_name.strip() if given_name.strip().startswith(_PREFIX) else None

    def options_type(self, name: str) -> type:  # noqa: ARG002 - the options of all environments are the same
        """The class of the options."""
        return BraxOptions

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:
        """There may be no such environment, no Brax, or lanes that devices cannot share."""
        found: list[Problem] = []
        task = name.removeprefix(_PREFIX)
        if ":" not in task and task not in TASKS:
            known = ", ".join(TASKS)
            reason = f"Brax has no environment '{task}'{did_you_mean(task, TASKS)} (it has {known})"
            found.append(Problem("env.name", reason, given_name))
        elif importlib.util.find_spec("brax") is None:
            found.append(Problem("env.name", f"Brax is not installed; {EXTRA}", given_name))
        lanes, devices = options.get("lanes", BraxOptions.lanes), options.get("devices", BraxOptions.devices)
        if lanes % devices:
            found.append(Problem("env.options.lanes", f"expected a multiple of {devices}, as devices is", lanes))
        return found

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:  # noqa: ARG002
        """UserError: the native core does not play it."""
        raise UserError(f"{name} is simulated on the accelerator; the native core, which this is for, does not play it")

    def image_observations(self, options: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def listing(self) -> str:
        """How they are named."""
        return f"on the accelerator ({len(TASKS)}): {', '.join(_PREFIX + task for task in TASKS)}"
