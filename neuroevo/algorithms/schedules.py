"""Schedules of numbers such as sigma during a run, in the syntax of Uber's 2018 code.

A plain number is constant. A table describes a schedule:

    sigma = 0.002
    sigma = {type = "LinearSchedule", initial_p = 0.005, final_p = 0.001, schedule = 500, field = "iteration"}
    sigma = {type = "ExponentialSchedule", initial_p = 0.01, final_p = 1e-3, schedule = 2e8, field = "timesteps_so_far"}

The value changes from initial_p to final_p while `field` increases from 0 to `schedule`, and remains at final_p.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Tag

from neuroevo.algorithms.base import State
from neuroevo.core.settings import Positive, Positive32, nested_settings

Field = Literal["iteration", "timesteps_so_far"]


@nested_settings
class ConstantSchedule:
    """A constant value."""

    value: Positive32
    """The value."""
    type: Literal["ConstantSchedule"] = "ConstantSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """Return the value for the offspring made at the start of `generation`, after `steps` training steps."""
        return self.value


@nested_settings
class _Ramp:
    """Base class of schedules that change from one value to another."""

    initial_p: Positive32
    """Initial value."""
    final_p: Positive32
    """Value at the end of the schedule and after it."""
    schedule: Positive
    """Length of the schedule, in generations or steps according to `field`."""
    field: Field = "iteration"
    """Independent variable: "iteration" (the generation's number, from 0) or "timesteps_so_far" (the steps of
    population and validation episodes)."""

    def fraction(self, generation: int, steps: int) -> float:
        """Return the completed fraction of the schedule, in [0, 1]."""
        return min((generation if self.field == "iteration" else steps) / self.schedule, 1.0)


@nested_settings
class LinearSchedule(_Ramp):
    """Linear interpolation from initial_p to final_p."""

    type: Literal["LinearSchedule"] = "LinearSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """Return the value for the offspring made at the start of `generation`, after `steps` training steps."""
        fraction = self.fraction(generation, steps)
        return (1.0 - fraction) * self.initial_p + fraction * self.final_p


@nested_settings
class ExponentialSchedule(_Ramp):
    """Linear interpolation of the logarithm: every generation (or step) changes the value by the same ratio."""

    type: Literal["ExponentialSchedule"] = "ExponentialSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """Return the value for the offspring made at the start of `generation`, after `steps` training steps."""
        fraction = self.fraction(generation, steps)
        return self.initial_p ** (1.0 - fraction) * self.final_p**fraction


def _tag(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("type", "a table without type"))
    return getattr(value, "type", "number")


Schedule = Annotated[
    Annotated[Positive32, Tag("number")]
    | Annotated[ConstantSchedule, Tag("ConstantSchedule")]
    | Annotated[LinearSchedule, Tag("LinearSchedule")]
    | Annotated[ExponentialSchedule, Tag("ExponentialSchedule")],
    Discriminator(
        _tag,
        custom_error_type="schedule",
        custom_error_message="Input should be a number or a table with type ConstantSchedule, LinearSchedule or "
        "ExponentialSchedule",
    ),
]


def value_at(schedule: Schedule, generation: int, steps: int) -> float:
    """Return the value of a setting that may be a plain number or a schedule.

    Args:
        schedule: The setting.
        generation: Number of the current generation, from 0.
        steps: Training steps before that generation.

    Returns:
        The number itself, or the value of the schedule.
    """
    return schedule if isinstance(schedule, (int, float)) else schedule.at(generation, steps)


def scale_at(schedule: Schedule, state: State) -> float:
    """Return the value of a setting such as sigma in the generation after a state, rounded to float32."""
    return float(np.float32(value_at(schedule, state.generation, state.steps)))


def shortest(value: float) -> float:
    """Return the shortest decimal number with the same float32 value: 0.1, not 0.10000000149011612.

    Args:
        value: A float32 value, such as an algorithm's sigma.
    """
    return float(str(np.float32(value)))
