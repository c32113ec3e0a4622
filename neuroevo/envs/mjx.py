"""User-defined robots on MJX, MuJoCo's physics on the accelerator: `mjx:PATH.xml` names a MuJoCo model file.

As in Gymnasium's tasks, the reward is for moving along x and staying healthy, minus a control cost; sensors of the
model can add terms. The task is implemented in neuroevo/accelerated/mjx_task.py.
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
    """Convert a table of numbers to pairs sorted by name; return a tuple of pairs unchanged."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, Mapping):
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in value.values())
        if numbers and all(isinstance(key, str) for key in value):
            return tuple((key, float(each)) for key, each in sorted(value.items()))
    raise ValueError("expected a table of numbers by names of sensors")


@settings
class MjxOptions(AcceleratedOptions):
    """Options of a user-defined robot: the table [env.options] of a configuration."""

    xml_file: str | None = None
    """Path of the model; by default the path in the environment's name."""
    frame_skip: Annotated[int, BeforeValidator(whole), Field(ge=1, le=1000)] = 5
    """Physics steps per environment step; the action is repeated in each."""
    reset_noise_scale: Annotated[float, Strict(), Field(ge=0, le=1e6)] = 0.01
    """Scale of the random perturbation of initial positions and velocities."""
    main_body: Annotated[str, Field(min_length=1)] | None = None
    """Body whose speed and height are measured; by default the first body."""
    forward_reward_weight: Annotated[float, Strict()] = 1.0
    """Reward weight of the main body's speed along x, in m/s."""
    ctrl_cost_weight: Annotated[float, Strict()] = 1e-3
    """Weight of the control cost, the sum of squares of the control signals."""
    healthy_reward: Annotated[float, Strict()] = 1.0
    """Reward of a step after which the robot is healthy."""
    healthy_z_range: HealthyRange | None = None
    """Range of heights of the main body, in m, in which the robot is healthy; either end may be infinite. The episode
    ends outside the range. By default the robot is always healthy."""
    sensor_reward_weights: Annotated[tuple[tuple[str, float], ...], PlainValidator(_weights)] = ()
    """Reward weights of sensors of the model, a table {sensor = weight}; each sensor must be scalar."""
    excluded_positions: Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**6)] | None = None
    """Number of leading position values excluded from observations; by default x and y of a free first joint, or the
    positions of leading unlimited slide joints along the ground."""


class MjxRobot(AcceleratedEnvironment):
    """User-defined robot on MJX."""

    family = "mjx"
    prefix = _PREFIX
    file_option = _FILE
    simulator = "neuroevo.accelerated.mjx_task"
    options_type = MjxOptions
    options: MjxOptions

    @classmethod
    def listing(cls) -> str:
        """Return the form of the names."""
        return "on the accelerator: mjx:PATH.xml, a user-defined MuJoCo model"

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the path in the name as the option xml_file."""
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
        """Also report a missing or invalid model path."""
        found = super().check()
        if self.options.xml_file is not None:
            if self.file is None:
                reason = "expected the path of a MuJoCo model, starting with / . or ~"
                found.append(Problem(f"env.options.{_FILE}", reason, self.options.xml_file))
            elif not os.path.isfile(self.file.path):  # Path.is_file() raises an exception for too long names
                found.append(Problem("env.name", f"there is no file {self.file.path}", self.given_name))
        return found
