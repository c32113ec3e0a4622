"""Options of the MuJoCo tasks: the keyword arguments of Gymnasium 1.3's v5 tasks, with the same defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, Strict

from neuroevo.core.settings import settings, whole


def _range(value: object) -> tuple[float, float]:
    """Validate a pair of numbers, either of which may be infinite."""
    given = value if isinstance(value, (list, tuple)) else ()
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in given)
    try:
        if numbers and len(given) == 2 and given[0] <= given[1]:
            return float(given[0]), float(given[1])
    except OverflowError:  # an integer of more than 308 digits
        pass
    raise ValueError("expected two numbers [low, high] with low <= high")


def _body(value: object) -> int | str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("expected the name of a body or its number, at least 0")


_Whole = Annotated[int, BeforeValidator(whole)]
_Weight = Annotated[float, Strict()]
_FrameSkip = Annotated[_Whole, Field(ge=1, le=1000, description="Physics steps per environment step.")]
_MaxSteps = Annotated[_Whole, Field(ge=1, le=10**9, description="Steps after which an episode is truncated.")]
_Model = Annotated[str, Field(min_length=1, description="File of the robot's model: one of Gymnasium's, or a path.")]
_Noise = Annotated[_Weight, Field(ge=0, le=1e6, description="Scale of the random perturbation of the initial state.")]
_Forward = Annotated[_Weight, Field(description="Reward weight of the speed along x, in m/s.")]
_Control = Annotated[_Weight, Field(description="Weight of the control cost, the sum of squared actions.")]
_Contact = Annotated[_Weight, Field(description="Weight of the contact cost, the sum of squared contact forces.")]
_Healthy = Annotated[_Weight, Field(description="Reward of a step after which the robot is healthy.")]
_Terminate = Annotated[bool, Field(description="End the episode when the robot is not healthy.")]
_Exclude = Annotated[bool, Field(description="Exclude the x position, and y if the robot has one, from observations.")]
_Include = Annotated[bool, Field(description="Include these values in observations.")]
_Range = Annotated[tuple[float, float], PlainValidator(_range)]
HealthyRange = Annotated[_Range, Field(description="Range in which the robot is healthy; either end may be infinite.")]
_ForceRange = Annotated[_Range, Field(description="Range to which contact forces are clipped.")]
_CostRange = Annotated[_Range, Field(description="Range to which the contact cost is clipped.")]
_Body = Annotated[int | str, PlainValidator(_body), Field(description="Body whose speed is measured: name or number.")]

_Behavior = Annotated[
    Literal["position", "contact"],
    Field(
        description="Behavior of an episode: the robot's final position (x, y), or the fraction of steps after which "
        "each foot touched the ground."
    ),
]


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
    behavior: _Behavior = "position"


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
    healthy_state_range: HealthyRange = (-100.0, 100.0)
    healthy_z_range: HealthyRange = (0.7, float("inf"))
    healthy_angle_range: HealthyRange = (-0.2, 0.2)
    reset_noise_scale: _Noise = 5e-3
    exclude_current_positions_from_observation: _Exclude = True
    behavior: _Behavior = "position"


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
    healthy_z_range: HealthyRange = (0.8, 2.0)
    healthy_angle_range: HealthyRange = (-1.0, 1.0)
    reset_noise_scale: _Noise = 5e-3
    exclude_current_positions_from_observation: _Exclude = True
    behavior: _Behavior = "position"


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
    healthy_z_range: HealthyRange = (0.2, 1.0)
    contact_force_range: _ForceRange = (-1.0, 1.0)
    reset_noise_scale: _Noise = 0.1
    exclude_current_positions_from_observation: _Exclude = True
    include_cfrc_ext_in_observation: _Include = True
    behavior: _Behavior = "position"


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
    healthy_z_range: HealthyRange = (1.0, 2.0)
    reset_noise_scale: _Noise = 1e-2
    exclude_current_positions_from_observation: _Exclude = True
    include_cinert_in_observation: _Include = True
    include_cvel_in_observation: _Include = True
    include_qfrc_actuator_in_observation: _Include = True
    include_cfrc_ext_in_observation: _Include = True
    behavior: _Behavior = "position"


@settings
class HumanoidStandupOptions:
    """Options of HumanoidStandup-v5: the table [env.options] of a configuration."""

    xml_file: _Model = "humanoidstandup.xml"
    frame_skip: _FrameSkip = 5
    max_episode_steps: _MaxSteps = 1000
    uph_cost_weight: Annotated[_Weight, Field(description="Has no effect, as in Gymnasium.")] = 1.0
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


TASKS: dict[str, type] = {  # name without version -> options class
    kind.__name__.removesuffix("Options"): kind
    for kind in (
        *(HalfCheetahOptions, AntOptions, HopperOptions, HumanoidOptions, InvertedPendulumOptions, Walker2dOptions),
        *(SwimmerOptions, InvertedDoublePendulumOptions, HumanoidStandupOptions, ReacherOptions, PusherOptions),
    )
}

FEET = {  # task with foot contacts as a possible behavior -> geoms of the feet
    "HalfCheetah": ("bfoot", "ffoot"),
    "Hopper": ("foot_geom",),
    "Walker2d": ("foot_geom", "foot_left_geom"),
    "Ant": ("left_ankle_geom", "right_ankle_geom", "third_ankle_geom", "fourth_ankle_geom"),
    "Humanoid": ("right_foot", "left_foot"),
}
