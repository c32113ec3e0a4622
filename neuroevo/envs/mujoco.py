"""The MuJoCo tasks: their names, their options, and the models that Gymnasium brings for them.

The tasks are version v5 of Gymnasium 1.3's, and their options its keywords, with its defaults.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, Strict

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.names import key_of, option_text

FAMILY = "mujoco"
SCREENS, VECTOR = False, True  # observations are images, actions are vectors
FILE = "xml_file"  # the option that may be the path of a file


def _range(value: object) -> tuple[float, float]:
    """A pair of numbers, of which either may be infinite."""
    numbers = isinstance(value, (list, tuple)) and all(
        isinstance(each, (int, float)) and not isinstance(each, bool) for each in value
    )
    try:
        if numbers and len(value) == 2 and value[0] <= value[1]:
            return float(value[0]), float(value[1])
    except OverflowError:  # an integer of more than 308 digits
        pass
    raise ValueError("expected two numbers [low, high] with low <= high")


def _body(value: object) -> int | str:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, str))
        or value == ""
        or (value != str(value) and value < 0)
    ):
        raise ValueError("expected a body's name or its number, at least 0")
    return value


_Whole = Annotated[int, BeforeValidator(whole)]
_Weight = Annotated[float, Strict()]
_FrameSkip = Annotated[_Whole, Field(ge=1, le=1000, description="Physics steps per step, all with the step's action.")]
_MaxSteps = Annotated[_Whole, Field(ge=1, le=10**9, description="Steps after which an episode is cut off.")]
_Model = Annotated[str, Field(min_length=1, description="File of the robot's model: one of Gymnasium's, or a path.")]
_Noise = Annotated[_Weight, Field(ge=0, le=1e6, description="How far a start may be from the model's initial state.")]
_Forward = Annotated[_Weight, Field(description="Weight of the speed along x, in m/s, in the reward.")]
_Control = Annotated[_Weight, Field(description="Weight of the sum of squares of an action, which is a cost.")]
_Contact = Annotated[_Weight, Field(description="Weight of the sum of squares of the contact forces, which is a cost.")]
_Healthy = Annotated[_Weight, Field(description="Reward of a step after which the robot is healthy.")]
_Terminate = Annotated[bool, Field(description="Whether the episode ends when the robot is not healthy.")]
_Exclude = Annotated[bool, Field(description="Whether the place along x, and y where there is one, is not observed.")]
_Include = Annotated[bool, Field(description="Whether these numbers, of each body, are observed.")]
_Range = Annotated[tuple[float, float], PlainValidator(_range)]
_HealthyRange = Annotated[_Range, Field(description="Where the robot is healthy; either end may be infinite.")]
_ForceRange = Annotated[_Range, Field(description="Contact forces are cut off at these ends.")]
_CostRange = Annotated[_Range, Field(description="The cost of contacts is cut off at these ends.")]
_Body = Annotated[int | str, PlainValidator(_body), Field(description="The body whose speed counts: name or number.")]


@settings
class HalfCheetahOptions:
    """Options of HalfCheetah-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "half_cheetah.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.0
    ctrl_cost_weight: _Control = 0.1
    reset_noise_scale: _Noise = 0.1
    exclude_current_positions_from_observation: _Exclude = True


@settings
class SwimmerOptions:
    """Options of Swimmer-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "swimmer.xml"
    frame_skip: _FrameSkip = 4
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.0
    ctrl_cost_weight: _Control = 1e-4
    reset_noise_scale: _Noise = 0.1
    exclude_current_positions_from_observation: _Exclude = True


@settings
class HopperOptions:
    """Options of Hopper-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "hopper.xml"
    frame_skip: _FrameSkip = 4
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.0
    ctrl_cost_weight: _Control = 1e-3
    healthy_reward: _Healthy = 1.0
    terminate_when_unhealthy: _Terminate = True
    healthy_state_range: _HealthyRange = (-100.0, 100.0)
    healthy_z_range: _HealthyRange = (0.7, float("inf"))
    healthy_angle_range: _HealthyRange = (-0.2, 0.2)
    reset_noise_scale: _Noise = 5e-3
    exclude_current_positions_from_observation: _Exclude = True


@settings
class Walker2dOptions:
    """Options of Walker2d-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "walker2d_v5.xml"
    frame_skip: _FrameSkip = 4
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.0
    ctrl_cost_weight: _Control = 1e-3
    healthy_reward: _Healthy = 1.0
    terminate_when_unhealthy: _Terminate = True
    healthy_z_range: _HealthyRange = (0.8, 2.0)
    healthy_angle_range: _HealthyRange = (-1.0, 1.0)
    reset_noise_scale: _Noise = 5e-3
    exclude_current_positions_from_observation: _Exclude = True


@settings
class AntOptions:
    """Options of Ant-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "ant.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.0
    ctrl_cost_weight: _Control = 0.5
    contact_cost_weight: _Contact = 5e-4
    healthy_reward: _Healthy = 1.0
    main_body: _Body = 1
    terminate_when_unhealthy: _Terminate = True
    healthy_z_range: _HealthyRange = (0.2, 1.0)
    contact_force_range: _ForceRange = (-1.0, 1.0)
    reset_noise_scale: _Noise = 0.1
    exclude_current_positions_from_observation: _Exclude = True
    include_cfrc_ext_in_observation: _Include = True


@settings
class HumanoidOptions:
    """Options of Humanoid-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "humanoid.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    forward_reward_weight: _Forward = 1.25
    ctrl_cost_weight: _Control = 0.1
    contact_cost_weight: _Contact = 5e-7
    contact_cost_range: _CostRange = (-float("inf"), 10.0)
    healthy_reward: _Healthy = 5.0
    terminate_when_unhealthy: _Terminate = True
    healthy_z_range: _HealthyRange = (1.0, 2.0)
    reset_noise_scale: _Noise = 1e-2
    exclude_current_positions_from_observation: _Exclude = True
    include_cinert_in_observation: _Include = True
    include_cvel_in_observation: _Include = True
    include_qfrc_actuator_in_observation: _Include = True
    include_cfrc_ext_in_observation: _Include = True


@settings
class HumanoidStandupOptions:
    """Options of HumanoidStandup-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "humanoidstandup.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    uph_cost_weight: Annotated[_Weight, Field(description="Changes nothing, as in Gymnasium.")] = 1.0
    ctrl_cost_weight: _Control = 0.1
    impact_cost_weight: _Contact = 5e-7
    impact_cost_range: _CostRange = (-float("inf"), 10.0)
    reset_noise_scale: _Noise = 1e-2
    exclude_current_positions_from_observation: _Exclude = True
    include_cinert_in_observation: _Include = True
    include_cvel_in_observation: _Include = True
    include_qfrc_actuator_in_observation: _Include = True
    include_cfrc_ext_in_observation: _Include = True


@settings
class InvertedPendulumOptions:
    """Options of InvertedPendulum-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "inverted_pendulum.xml"
    frame_skip: _FrameSkip = 2
    max_episode_steps: _MaxSteps = 1000
    reset_noise_scale: _Noise = 0.01


@settings
class InvertedDoublePendulumOptions:
    """Options of InvertedDoublePendulum-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "inverted_double_pendulum.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    healthy_reward: _Healthy = 10.0
    reset_noise_scale: _Noise = 0.1


@settings
class ReacherOptions:
    """Options of Reacher-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "reacher.xml"
    frame_skip: _FrameSkip = 2
    max_episode_steps: _MaxSteps = 50
    reward_dist_weight: Annotated[_Weight, Field(description="Weight of the fingertip's distance from the target.")] = (
        1.0
    )
    reward_control_weight: _Control = 1.0


@settings
class PusherOptions:
    """Options of Pusher-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "pusher_v5.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 100
    reward_near_weight: Annotated[_Weight, Field(description="Weight of the arm's distance from the object.")] = 0.5
    reward_dist_weight: Annotated[_Weight, Field(description="Weight of the object's distance from the goal.")] = 1.0
    reward_control_weight: _Control = 0.1


TASKS: dict[str, type] = {  # name without version -> its options
    kind.__name__.removesuffix("Options"): kind
    for kind in (
        *(HalfCheetahOptions, AntOptions, HopperOptions, HumanoidOptions, InvertedPendulumOptions, Walker2dOptions),
        *(SwimmerOptions, InvertedDoublePendulumOptions, HumanoidStandupOptions, ReacherOptions, PusherOptions),
    )
}


def find(name: str) -> str | None:
    """The task of that name: HalfCheetah-v5, HalfCheetah, half_cheetah, halfcheetah. Other versions are other tasks."""
    return _tasks_by_key().get(key_of(re.sub(r"-v5$", "", name.strip())))


def near(name: str) -> tuple[str, Mapping[str, str]]:
    """For suggestions: what of the name to compare, and the known names by what to compare them by."""
    return key_of(re.sub(r"-v\d+$", "", name.strip())), _tasks_by_key()


def options_of(task: str) -> type:
    """The class of the task's options."""
    return TASKS[task.removesuffix("-v5")]


def problems(task: str, given_name: str, values: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG001
    """What else is wrong, of a task that was found and options that are right by themselves."""
    xml_file = values.get("xml_file", options_of(task)().xml_file)
    try:
        model_path(xml_file)
    except UserError as error:
        return [Problem("env.options.xml_file", str(error), xml_file)]
    return []


def native_options(task: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """What the native family takes, from options that options_of(task) has checked. UserError: the model is missing."""
    given = {name: value for name, value in values.items() if name != "xml_file"}
    model = model_path(values.get("xml_file", options_of(task)().xml_file))
    texts = (f"{name}={option_text(value)}" for name, value in given.items())
    return (f"task={task.removesuffix('-v5')}", f"model={model}", *texts)


@functools.cache
def _tasks_by_key() -> dict[str, str]:
    return {key_of(task): f"{task}-v5" for task in TASKS}


def model_path(xml_file: str) -> Path:
    """The model's file, found as Gymnasium does: one of its own unless it begins with / . or ~. UserError: missing."""
    try:
        path = Path(xml_file).expanduser().resolve() if xml_file.startswith((".", "/", "~")) else _asset(xml_file)
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # no permission, no such user's home, no file's name at all
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: {error}") from None
    if not found:
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: there is no {path}")
    return path


def _asset(name: str) -> Path:
    """Where Gymnasium would keep a model of that name. UserError: there is no Gymnasium."""
    gymnasium = find_spec("gymnasium")
    if gymnasium is None:
        raise UserError("the MuJoCo models come with gymnasium, which is not installed")
    return Path(gymnasium.submodule_search_locations[0], "envs", "mujoco", "assets", name)
