"""What is wrong with a sweep: every problem that can be known before its first trial starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.runs import preflight
from neuroevo.runs.fork import check_fork
from neuroevo.sweeps.tune.points import config_of, grid_problems, probe
from neuroevo.sweeps.tune.settings import METRICS, VALIDATION, SweepSettings, budget
from neuroevo.sweeps.tune.space import Choice, Range
from neuroevo.training.record import COLUMNS


def problems_of_sweep(
    chosen: SweepSettings, space: Mapping[str, Choice | Range], tables: Mapping[str, Any], base: Config
) -> list[Problem]:
    """Find the problems of a sweep as a whole.

    Args:
        chosen: What its file says.
        space: The values that keys may have.
        tables: Those of the configuration that all trials share.
        base: That configuration.

    Returns:
        The problems.
    """
    problems: list[Problem] = []
    if base.cluster.address != "none":
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


def default_metric(base: Config) -> str:
    """Chooses what is to be large where the file does not say.

    Args:
        base: The configuration that all trials share.

    Returns:
        The column.
    """
    return VALIDATION if base.algorithm.validates else "fitness_mean"


def _metric_problems(
    chosen: SweepSettings, space: Mapping[str, Choice | Range], tables: Mapping[str, Any], base: Config
) -> list[Problem]:
    metric = chosen.metric or default_metric(base)
    if metric.startswith("test_") and metric in COLUMNS:
        reason = "known only generations later; expected a column that is known when its generation ends"
        return [Problem("sweep.metric", f"{reason}: {', '.join(METRICS)}", metric)]
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS)
        return [Problem("sweep.metric", f"no record has it{hint}; expected one of {', '.join(METRICS)}", metric)]
    if metric != VALIDATION:
        return []
    names = space.get("algorithm.name", Choice((base.algorithm_name,))).probes
    return [
        Problem("sweep.metric", f"{name} plays no validation episodes; expected fitness_mean or another column", metric)
        for name in names
        if _is_unvalidated(tables, name)
    ]


def _is_unvalidated(tables: Mapping[str, Any], algorithm: Any) -> bool:
    try:
        return not config_of(tables, {"algorithm.name": algorithm}).algorithm.validates
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
