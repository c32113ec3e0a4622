"""The keys of [sweep], and the tables of options that schedulers have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field as dataclass_field
from typing import Annotated, Any

from pydantic import Field

from neuroevo.core.settings import Count, Name, Positive, Seed, cluster_address, nested_settings, one_of, settings
from neuroevo.sweeps.tune.points import MAX_TRIALS
from neuroevo.training.record import COLUMNS

METRICS = tuple(name for name in COLUMNS if not name.startswith("test_") and name not in ("generation", "fitness"))
TIMES = ("steps_total", "seconds_total", "generation")
VALIDATION = "validation_mean"


@nested_settings
class Asha:
    """Options of asynchronous successive halving, in units of `time`."""

    grace_period: Positive | None = None
    """No trial is stopped before; left out: a sixteenth of max_t."""
    max_t: Positive | None = None
    """When a trial ends; left out: its configuration's budget."""
    reduction_factor: Annotated[float, Field(gt=1)] = 4.0
    """Of this many trials that come to a rung one goes on; the next rung is this many times as far."""
    brackets: Count = 1
    """How many series of rungs there are, each with a later first one."""


@nested_settings
class Pbt:
    """Options of population-based training, in units of `time`."""

    perturbation_interval: Positive | None = None
    """How often a trial is compared with the others; left out: a tenth of the configuration's budget."""
    quantile_fraction: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """The share of trials, the worst, that go on from a state of one of as many best."""
    resample_probability: Annotated[float, Field(ge=0, le=1)] = 0.25
    """How likely a value is then drawn anew rather than changed by a fifth, or to a neighbor in its list."""
    synch: bool = False
    """Whether trials wait for each other at every interval."""


@settings
class SweepSettings:
    """The keys of [sweep]."""

    config: Name
    """The configuration of all trials: a file, looked for beside the sweep's file first, or a preset."""
    space: dict[str, Any]
    """The values that keys of the configuration may have, see neuroevo/sweeps/tune/space.py."""
    trials: Annotated[Count, Field(le=MAX_TRIALS)] | None = None
    """How many; of a grid, one of each point."""
    search: Annotated[str, one_of(("random", "grid", "optuna"))] = "random"
    """Who chooses the values."""
    scheduler: Annotated[str, one_of(("none", "asha", "pbt"))] = "none"
    """Who ends trials early, or has them go on from others' states."""
    asha: Asha = Asha()
    """Options of the scheduler asha."""
    pbt: Pbt = Pbt()
    """Options of the scheduler pbt."""
    metric: Name | None = None
    """What is to be large: a column of metrics.csv that is known when its generation ends. Left out: validation_mean
    or, of an algorithm without validation episodes, fitness_mean."""
    time: Annotated[str, one_of(TIMES)] = "steps_total"
    """What schedulers measure a trial's age by."""
    concurrent: Count = 1
    """Trials at a time. The machine's hardware threads are shared out among them."""
    shared: bool = True
    """Whether all trials on a machine have their episodes played by one pipeline, which takes less memory and fills the
    slots that one trial leaves idle, or each trial has a pipeline of its own."""
    set: list[Name] = dataclass_field(default_factory=list)
    """Changes to the configuration, as --set takes them."""
    seed: Seed = 0
    """Values are drawn from it, and a training.seed for every trial."""
    address: Annotated[str, cluster_address("local", "auto")] = "local"
    """The Ray cluster whose machines play: "local" for this one alone, "auto", or HOST:PORT of its head. All of them
    need to see the same `out`."""
    out: Name | None = None
    """The sweep's folder; left out: runs/NAME, after the sweep's file."""


def budget(tables: Mapping[str, Any], time: str) -> float | None:
    """Finds a configuration's budget.

    Args:
        tables: The configuration's.
        time: What it is measured by, one of TIMES.

    Returns:
        The budget in that unit; None if the configuration has none.
    """
    training = tables.get("training", {})
    key = {"steps_total": "total_steps", "seconds_total": "minutes", "generation": "generations"}[time]
    value = training.get(key)
    return None if value is None else float(value) * (60 if key == "minutes" else 1)
