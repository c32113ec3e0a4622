"""Brax environments, such as `brax:ant`, which run on the accelerator together with the networks.

This module imports neither Brax nor JAX; neuroevo/accelerated does so when episodes are played. A user-defined
environment, which a module registers with brax.envs.register_environment, is named `brax:my_module:name`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from neuroevo.core.named_code import NamedCode, named_module
from neuroevo.core.problems import Problem, did_you_mean
from neuroevo.core.settings import settings
from neuroevo.envs.accelerated import AcceleratedEnvironment, AcceleratedOptions

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
    """Gymnasium task with the same robot, which the native core implements.

    Attributes:
        name: Name of the task.
        model: File name of Brax's model of the robot.
        alike: Number of leading observation values that have the same meaning in both tasks.
    """

    name: str
    model: str
    alike: int


COUNTERPARTS = {
    "ant": Counterpart("Ant-v5", "ant.xml", 27),  # Ant-v5 adds contact forces
    "halfcheetah": Counterpart("HalfCheetah-v5", "half_cheetah.xml", 17),
    "hopper": Counterpart("Hopper-v5", "hopper.xml", 11),
    "humanoid": Counterpart("Humanoid-v5", "humanoid.xml", 45),  # both add inertias, in different frames
    "inverted_double_pendulum": Counterpart("InvertedDoublePendulum-v5", "inverted_double_pendulum.xml", 8),
    "inverted_pendulum": Counterpart("InvertedPendulum-v5", "inverted_pendulum.xml", 4),
    "pusher": Counterpart("Pusher-v5", "pusher.xml", 23),
    "reacher": Counterpart("Reacher-v5", "reacher.xml", 6),  # Brax adds the tip's velocity, Gymnasium the joints'
    "swimmer": Counterpart("Swimmer-v5", "swimmer.xml", 8),
    "walker2d": Counterpart("Walker2d-v5", "walker2d.xml", 17),
}
"""Counterparts by Brax's names."""


@settings
class BraxOptions(AcceleratedOptions):
    """Options of Brax environments: the table [env.options] of a configuration."""

    backend: Literal["mjx", "generalized", "spring", "positional"] = "mjx"
    """Physics backend: mjx is MuJoCo's physics on the accelerator, which Brax's authors recommend; the others are
    Brax's own."""


class BraxEnvironment(AcceleratedEnvironment):
    """Brax environment."""

    family = "brax"
    noun = "on the accelerator"
    prefix = _PREFIX
    simulator = "neuroevo.accelerated.brax_simulator"
    options_type = BraxOptions

    @classmethod
    def names(cls) -> Sequence[str]:
        """Return Brax's built-in environments."""
        return [_PREFIX + task for task in TASKS]

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the module in the name, if any."""
        module = given_name.strip().removeprefix(_PREFIX).partition(":")
        return named_module("env.name", module[0]) if module[1] else []

    @property
    def module_and_task(self) -> tuple[str, str]:
        """The module that registers the environment, "" for Brax's built-in ones, and the environment's Brax name."""
        module, _, task = self.name.removeprefix(_PREFIX).rpartition(":")
        return module, task

    def check(self) -> list[Problem]:
        """Also report an unknown Brax environment."""
        module, task = self.module_and_task
        if module or task in TASKS:
            return super().check()
        reason = f"Brax has no environment '{task}'{did_you_mean(task, TASKS)} (it has {', '.join(TASKS)})"
        return [Problem("env.name", reason, self.given_name), *super().check()]
