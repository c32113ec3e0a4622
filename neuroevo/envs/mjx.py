"""Robots of the user's own on MJX, MuJoCo's physics on the accelerator: `mjx:PATH.xml`, a file of a MuJoCo model.

The task is that of Gymnasium's robots: to move along x, to stay up, and to spend little; or whatever the model's own
sensors measure. neuroevo/accelerated/mjx_task.py plays it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, Strict

from neuroevo.core.named_code import NamedCode, named_model
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.accelerated import AcceleratedEnvironment, AcceleratedOptions
from neuroevo.envs.mujoco_options import HealthyRange

_PREFIX = "mjx:"
_FILE = "xml_file"


def _weights(value: object) -> tuple[tuple[str, float], ...]:
    """Convert a table of numbers to pairs, sorted by their names; leave such pairs as they are."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, Mapping):
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in value.values())
        if numbers and all(isinstance(key, str) for key in value):
            return tuple((key, float(each)) for key, each in sorted(value.items()))
    raise ValueError("expected a table of numbers by names of sensors")


@settings
class MjxOptions(AcceleratedOptions):
    """Options of a robot of the user's own: the table [env.options] of a configuration."""

    xml_file: str | None = None
    """The model's file; left out, the one that the environment's name has."""
    frame_skip: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1000)] = 5
    """Physics steps per step, all with the step's action."""
    reset_noise_scale: Annotated[float, Strict(), Field(ge=0, le=1e6)] = 0.01
    """How far positions and velocities at an episode's start may be from the model's initial state."""
    main_body: Annotated[str, Field(min_length=1)] | None = None
    """The body whose speed and height count; left out, the first."""
    forward_reward_weight: Annotated[float, Strict()] = 1.0
    """Weight of the main body's speed along x, in m/s, in the reward."""
    ctrl_cost_weight: Annotated[float, Strict()] = 1e-3
    """Weight of the sum of squares of what actuators are told, which is a cost."""
    healthy_reward: Annotated[float, Strict()] = 1.0
    """Reward of a step after which the robot is healthy."""
    healthy_z_range: HealthyRange | None = None
    """Heights of the main body, in m, at which the robot is healthy; either end may be infinite. Elsewhere the episode
    ends. Left out: the robot is always healthy."""
    sensor_reward_weights: Annotated[tuple[tuple[str, float], ...], PlainValidator(_weights)] = ()
    """Weights of the model's sensors in the reward, a table {sensor = weight}; a sensor gives one number."""
    excluded_positions: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] | None = None
    """How many of the positions are not observed, from the first on; left out: x and y of a first joint that is free,
    or those of the first joints that slide along the ground without limits."""


class MjxRobot(AcceleratedEnvironment):
    """A user's robot on MJX."""

    family = "mjx"
    prefix = _PREFIX
    file_option = _FILE
    simulator = "neuroevo.accelerated.mjx_task"
    options_type = MjxOptions
    options: MjxOptions

    @classmethod
    def listing(cls) -> str:
        """Return the form of their names."""
        return "on the accelerator: mjx:PATH.xml, a MuJoCo model of one's own"

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the file of the name."""
        path = given_name.strip().removeprefix(_PREFIX)
        return {_FILE: path if path.startswith(("/", ".", "~")) else f"./{path}"}

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the model, which is always a user's file."""
        option = options.get(_FILE)
        if isinstance(option, str):
            return named_model(f"env.options.{_FILE}", option)
        return named_model("env.name", cls.named_options(given_name)[_FILE])

    def check(self) -> list[Problem]:
        """Report a missing file, too."""
        found = super().check()
        if self.options.xml_file is not None:
            if self.file is None:
                reason = "expected the path of a MuJoCo model, beginning with / . or ~"
                found.append(Problem(f"env.options.{_FILE}", reason, self.options.xml_file))
            elif not os.path.isfile(self.file.path):  # Path.is_file() raises where a name is too long
                found.append(Problem("env.name", f"there is no file {self.file.path}", self.given_name))
        return found
