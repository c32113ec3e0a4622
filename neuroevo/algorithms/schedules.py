"""How a number such as sigma changes during a run, in the syntax of Uber's 2018 code.

A plain number is constant. A table names a schedule:

    sigma = 0.002
    sigma = {type = "LinearSchedule", initial_p = 0.005, final_p = 0.001, schedule = 500, field = "iteration"}
    sigma = {type = "ExponentialSchedule", initial_p = 0.01, final_p = 1e-3, schedule = 2e8, field = "timesteps_so_far"}

The value goes from initial_p to final_p while `field` goes from 0 to `schedule`, and stays at final_p after that.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from neuroevo.core.settings import Positive, Positive32, nested_settings

Field = Literal["iteration", "timesteps_so_far"]


@nested_settings
class ConstantSchedule:
    """The same value throughout."""

    value: Positive32
    """The value."""
    type: Literal["ConstantSchedule"] = "ConstantSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """The value for the offspring made at the start of `generation`, after `steps` training steps."""
        return self.value


@nested_settings
class LinearSchedule:
    """Straight line from initial_p to final_p."""

    initial_p: Positive32
    """Value at the start."""
    final_p: Positive32
    """Value at the end and after it."""
    schedule: Positive
    """Length in generations or steps, as `field` says."""
    field: Field = "iteration"
    """What it follows: "iteration" (generations, the first is 0) or "timesteps_so_far" (population + validation)."""
    type: Literal["LinearSchedule"] = "LinearSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """The value for the offspring made at the start of `generation`, after `steps` training steps."""
        fraction = min((generation if self.field == "iteration" else steps) / self.schedule, 1.0)
        return (1.0 - fraction) * self.initial_p + fraction * self.final_p


@nested_settings
class ExponentialSchedule:
    """Straight line between the logarithms of initial_p and final_p: each generation changes it by the same ratio."""

    initial_p: Positive32
    """Value at the start."""
    final_p: Positive32
    """Value at the end and after it."""
    schedule: Positive
    """Length in generations or steps, as `field` says."""
    field: Field = "iteration"
    """What it follows: "iteration" (generations, the first is 0) or "timesteps_so_far" (population + validation)."""
    type: Literal["ExponentialSchedule"] = "ExponentialSchedule"
    """Name of the schedule."""

    def at(self, generation: int, steps: int) -> float:
        """The value for the offspring made at the start of `generation`, after `steps` training steps."""
        fraction = min((generation if self.field == "iteration" else steps) / self.schedule, 1.0)
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
    """The schedule's value for the offspring made at the start of `generation`, after `steps` training steps."""
    return schedule if isinstance(schedule, (int, float)) else schedule.at(generation, steps)
