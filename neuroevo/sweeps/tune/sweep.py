"""A sweep: what its file says, checked before anything starts.

[sweep]
config = "inverted_pendulum"      # a preset or a file, those beside this file first
trials = 20
search = "random"                 # or "grid", "optuna"
scheduler = "none"                # or "asha", "pbt"

[sweep.space]
"algorithm.sigma" = {log_uniform = [1e-3, 1e-1]}
"network.hidden" = [[8], [16, 16]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from neuroevo.algorithms.base import Unvalidated
from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import read
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean, refuse
from neuroevo.core.settings import Count, Name, Positive, Seed, nested_settings, one_of, settings
from neuroevo.runs import preflight
from neuroevo.runs.fork import check_fork
from neuroevo.sweeps.runner import shares
from neuroevo.sweeps.section import beside, read_section
from neuroevo.sweeps.tune.points import (
    MAX_TRIALS,
    SEED,
    Values,
    all_points,
    config_of,
    grid_problems,
    probe,
    problems_of_user,
    with_seed,
)
from neuroevo.sweeps.tune.space import Choice, Range, parse_space
from neuroevo.training.record import COLUMNS

METRICS = tuple(name for name in COLUMNS if not name.startswith("test_") and name not in ("generation", "fitness"))
TIMES = ("steps_total", "seconds_total", "generation")
_VALIDATION = "validation_mean"


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
    """The share of trials, the worst, that go on from a checkpoint of one of as many best."""
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
    """Who ends trials early, or has them go on from others' checkpoints."""
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
    set: list[Name] = dataclass_field(default_factory=list)
    """Changes to the configuration, as --set takes them."""
    seed: Seed = 0
    """Values are drawn from it, and a training.seed for every trial."""
    address: Name = "local"
    """The Ray cluster whose machines play: "local" for this one alone, "auto", or HOST:PORT of its head. All of them
    need to see the same `out`."""
    out: Name | None = None
    """The sweep's folder; left out: runs/NAME, after the sweep's file."""


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
        settings: What its file says, with a metric.
        space: The values that keys may have.
        tables: Those of the configuration that all trials share.
        seed: What the trials' seeds are drawn from; None: they have the configuration's.
        points: Each trial's values, with its seed; None where the search chooses them as it goes.
        trials: How many trials there are.
        out: The sweep's folder, absolute.
    """

    settings: SweepSettings
    space: Mapping[str, Choice | Range]
    tables: Mapping[str, Any]
    seed: int | None
    points: list[Values] | None
    trials: int
    out: Path

    @property
    def metric(self) -> str:
        """The column that is to be large."""
        return self.settings.metric or _VALIDATION

    @property
    def budget(self) -> float | None:
        """That of the shared configuration in units of the scheduler's time."""
        return budget(self.tables, self.settings.time)


def load_sweep(
    path: Path | str, overrides: Sequence[str] = (), out: Path | None = None, concurrent: int | None = None
) -> Sweep:
    """Reads a sweep's file and checks every trial's configuration, as far as it is known.

    Args:
        path: The file.
        overrides: Changes to the configuration, after the sweep's own.
        out: The sweep's folder, instead of its own.
        concurrent: How many trials at a time, instead of its own.

    Returns:
        The sweep.

    Raises:
        ConfigError: The sweep or a configuration has problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    chosen = read_section(path, "sweep", SweepSettings)
    changes = [*chosen.set, *overrides]
    space, problems = parse_space(chosen.space)
    if not chosen.space:
        problems.append(Problem("sweep.space", "expected at least one key"))
    problems += [
        Problem(f"sweep.space.{key}", "set says that")
        for key in space
        if any(change.partition("=")[0].strip() == key for change in changes)
    ]
    source = beside(chosen.config, path.parent)
    try:
        base = load_config(source, changes)
    except UserError as error:
        refuse([*problems, *problems_of_user(error)], str(path))
        raise
    at_a_time = concurrent or chosen.concurrent
    tables = _with_threads(read(source, changes).tables, base, at_a_time)
    seed = None if any(change.partition("=")[0].strip() == SEED for change in changes) else chosen.seed
    problems += _problems(chosen, space, tables, base)
    refuse(problems, str(path))
    points = None
    if chosen.search != "optuna":
        try:
            points = all_points(space, tables, chosen.search, chosen.trials or 1, chosen.seed)
        except ConfigError as error:
            raise ConfigError(error.problems, error.source or str(path)) from None
        points = [with_seed(values, tables, seed, number) for number, values in enumerate(points)]
    metric = chosen.metric or _default_metric(base)
    folder = (out or Path(chosen.out or Path("runs") / path.stem)).absolute()
    said = {**{name: getattr(chosen, name) for name in SweepSettings.__dataclass_fields__}}
    final = SweepSettings(**{**said, "metric": metric, "concurrent": at_a_time})
    trials = len(points) if points is not None else chosen.trials or 1
    return Sweep(final, space, tables, seed, points, trials, folder)


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


def _problems(
    chosen: SweepSettings, space: Mapping[str, Choice | Range], tables: Mapping[str, Any], base: Config
) -> list[Problem]:
    """What is wrong with the sweep as a whole."""
    problems: list[Problem] = []
    if base.cluster.address is not None:
        reason = "a trial plays where Ray Tune puts it; sweep.address names the cluster"
        problems.append(Problem("cluster.address", reason, base.cluster.address))
    if chosen.search == "grid":
        problems += grid_problems(space, chosen.trials)
    elif chosen.trials is None:
        problems.append(Problem("sweep.trials", f'missing, expected how many with search = "{chosen.search}"'))
    problems += probe(space, tables, chosen.seed)
    problems += _metric_problems(chosen, space, tables, base)
    problems += _scheduler_problems(chosen, space, tables, base)
    problems += preflight.problems(base)
    return problems


def _default_metric(base: Config) -> str:
    return "fitness_mean" if isinstance(base.algorithm, Unvalidated) else _VALIDATION


def _metric_problems(
    chosen: SweepSettings, space: Mapping[str, Choice | Range], tables: Mapping[str, Any], base: Config
) -> list[Problem]:
    metric = chosen.metric or _default_metric(base)
    if metric.startswith("test_") and metric in COLUMNS:
        reason = "known only generations later; expected a column that is known when its generation ends"
        return [Problem("sweep.metric", f"{reason}: {', '.join(METRICS)}", metric)]
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS)
        return [Problem("sweep.metric", f"no record has it{hint}; expected one of {', '.join(METRICS)}", metric)]
    if metric != _VALIDATION:
        return []
    names = space.get("algorithm.name", Choice((base.algorithm_name,))).probes
    without = [name for name in names if _is_unvalidated(tables, name)]
    return [
        Problem("sweep.metric", f"{name} plays no validation episodes; expected fitness_mean or another column", metric)
        for name in without
    ]


def _is_unvalidated(tables: Mapping[str, Any], algorithm: Any) -> bool:
    try:
        return isinstance(config_of(tables, {"algorithm.name": algorithm}).algorithm, Unvalidated)
    except UserError:  # probe() reports it
        return False


def _scheduler_problems(
    chosen: SweepSettings, space: Mapping[str, Choice | Range], tables: Mapping[str, Any], base: Config
) -> list[Problem]:
    problems: list[Problem] = []
    needed = {"asha": chosen.asha.max_t, "pbt": chosen.pbt.perturbation_interval}
    if chosen.scheduler in needed and needed[chosen.scheduler] is None and budget(tables, chosen.time) is None:
        option = {"asha": "asha.max_t", "pbt": "pbt.perturbation_interval"}[chosen.scheduler]
        reason = f"missing, since the configuration has no budget in {chosen.time}"
        problems.append(Problem(f"sweep.{option}", reason))
    if chosen.scheduler == "asha":
        end = chosen.asha.max_t or budget(tables, chosen.time)
        if end is not None and chosen.asha.grace_period is not None and chosen.asha.grace_period > end:
            problems.append(
                Problem("sweep.asha.grace_period", f"expected at most max_t, {end:g}", chosen.asha.grace_period)
            )
    if chosen.scheduler != "pbt":
        return problems
    if chosen.search == "optuna":
        problems.append(Problem("sweep.search", "pbt chooses values itself; expected random or grid", chosen.search))
    for key, values in space.items():
        for value in values.probes:
            try:
                check_fork(base, config_of(tables, {key: value}))
            except ConfigError as error:
                found = [
                    Problem(f"sweep.space.{key}", f"{each.reason}, as pbt needs it", value) for each in error.problems
                ]
                if not any(problem.key == f"sweep.space.{key}" for problem in problems):
                    problems += found[:1]
    return problems


def _with_threads(tables: dict[str, Any], base: Config, concurrent: int) -> dict[str, Any]:
    """The tables with a trial's share of this machine's threads, unless they say how many."""
    share = shares(concurrent)[0]
    if share is None or base.hardware.threads is not None:
        return tables
    return {**tables, "hardware": {**tables.get("hardware", {}), "threads": share}}
