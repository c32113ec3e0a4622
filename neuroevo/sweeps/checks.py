"""What is wrong with a sweep: every problem that can be known before its first trial starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.sessions.fork import check_fork
from neuroevo.sweeps.implementations import function_of
from neuroevo.sweeps.points import SEED, config_of, probe
from neuroevo.sweeps.searches import PbtOptions, make_pruner, make_sampler, require_optuna
from neuroevo.sweeps.section import collected
from neuroevo.sweeps.settings import METRICS, NEUROEVO, PRUNERS, VALIDATION, SweepSettings
from neuroevo.sweeps.space import Choice, Space
from neuroevo.training.record import COLUMNS


def of_settings(chosen: SweepSettings, space: Space, changed: Collection[str]) -> list[Problem]:
    """Find the problems of what a sweep's file says, without its configurations.

    Args:
        chosen: That.
        space: The values that keys may have.
        changed: The keys that `set` and --set change.

    Returns:
        The problems.
    """
    own = {"env.name": "games"} if chosen.games else {}
    own |= {SEED: "seeds"} if chosen.seeds is not None else {}
    problems = [Problem(f"set {key}", f"sweep.{own[key]} says that") for key in sorted(changed) if key in own]
    problems += [Problem(f"sweep.space.{key}", "set says that") for key in space if key in changed]
    if SEED in own and SEED in space:
        problems.append(Problem(f"sweep.space.{SEED}", "sweep.seeds says that"))
    if "env.name" in space:
        problems.append(Problem("sweep.space.env.name", "sweep.games names what trials play"))
    if chosen.search == "grid":
        problems += [
            Problem(f"sweep.space.{key}", 'expected a list of values with search = "grid"')
            for key, values in space.items()
            if not isinstance(values, Choice)
        ]
        if chosen.trials is not None:
            problems.append(Problem("sweep.trials", "a grid has as many as combinations; leave it out", chosen.trials))
    else:
        if not space:
            problems.append(Problem("sweep.space", "expected at least one key"))
        if chosen.trials is None:
            problems.append(Problem("sweep.trials", f'missing, expected how many with search = "{chosen.search}"'))
        for key in ("configs", "games", "implementations"):
            given = getattr(chosen, key) or []
            if len(given) > 1:
                problems.append(Problem(f"sweep.{key}", f'expected one with search = "{chosen.search}"', given))
        if chosen.seeds is not None:
            reason = f'search = "{chosen.search}" draws one for each trial; leave it out, or set training.seed'
            problems.append(Problem("sweep.seeds", reason, chosen.seeds))
    others = [name for name in chosen.implementations if name != NEUROEVO]
    if others and (chosen.search == "pbt" or chosen.shared or chosen.cluster != "none"):
        reason = 'are processes of this machine, without forks; expected none with search = "pbt", shared or cluster'
        problems.append(Problem("sweep.implementations", reason, others))
    for name in others:
        with collected(problems):
            function_of(name)
    if chosen.search == "pbt" and SEED in space:
        problems.append(Problem(f"sweep.space.{SEED}", "a trial of pbt keeps its seed"))
    if chosen.search == "pbt" and chosen.pruner != "none":
        problems.append(Problem("sweep.pruner", "pbt ends no trial, expected none", chosen.pruner))
    return problems


def of_sweep(chosen: SweepSettings, space: Space, tables: Mapping[str, Any], base: Config) -> list[Problem]:
    """Find the problems of a sweep with one of its configurations.

    Args:
        chosen: What its file says, with a metric.
        space: The values that keys may have.
        tables: The configuration's.
        base: The configuration.

    Returns:
        The problems.
    """
    problems: list[Problem] = []
    if base.cluster.address != "none":
        reason = "a trial plays where the sweep puts it; sweep.cluster names the cluster"
        problems.append(Problem("cluster.address", reason, base.cluster.address))
    problems += probe(space, tables, chosen.seed)
    problems += _metric_problems(chosen, space, tables, base)
    problems += _optuna_problems(chosen)
    if chosen.search == "pbt":
        problems += _fork_problems(space, tables, base)
        if base.training.generations is None:
            reason = 'missing, expected how many with search = "pbt"'
            problems.append(Problem("training.generations", reason))
    return problems


def default_metric(base: Config) -> str:
    """Return the column that is to be large where the file does not say.

    Args:
        base: A configuration.
    """
    return VALIDATION if base.algorithm.validates else "fitness_mean"


def _optuna_problems(chosen: SweepSettings) -> list[Problem]:
    """Return what Optuna's sampler and pruner, or pbt, refuse of their options."""
    problems = []
    if chosen.search == "pbt":
        try:
            PbtOptions(**chosen.search_options)
        except (TypeError, ValueError) as error:
            problems.append(Problem("sweep.search_options", str(error), chosen.search_options))
    elif chosen.search not in ("grid", "random"):
        problems += _made("search", chosen.search, chosen.search_options)
    elif chosen.search_options:
        problems.append(Problem("sweep.search_options", f'search = "{chosen.search}" has none', chosen.search_options))
    if chosen.pruner != PRUNERS[0]:
        problems += _made("pruner", chosen.pruner, chosen.pruner_options)
    elif chosen.pruner_options:
        problems.append(Problem("sweep.pruner_options", "there is no pruner", chosen.pruner_options))
    return problems


def _made(kind: str, name: str, options: Mapping[str, Any]) -> list[Problem]:
    require_optuna()
    try:
        make_sampler(name, options, 0) if kind == "search" else make_pruner(name, options, None)
    except (TypeError, ValueError) as error:
        return [Problem(f"sweep.{kind}_options", str(error).partition("\n")[0], dict(options))]
    return []


def _metric_problems(chosen: SweepSettings, space: Space, tables: Mapping[str, Any], base: Config) -> list[Problem]:
    metric = chosen.metric or default_metric(base)
    if metric.startswith("test_") and metric in COLUMNS:
        reason = "known only generations later; expected a column that is known when its generation ends"
        return [Problem("sweep.metric", f"{reason}: {', '.join(METRICS)}", metric)]
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS)
        return [Problem("sweep.metric", f"no record has it{hint}; expected one of {', '.join(METRICS)}", metric)]
    if metric != VALIDATION or (chosen.search == "grid" and chosen.pruner == "none"):
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


def _fork_problems(space: Space, tables: Mapping[str, Any], base: Config) -> list[Problem]:
    problems: list[Problem] = []
    for key, values in space.items():
        for value in values.probes:
            try:
                check_fork(base, config_of(tables, {key: value}))
            except ConfigError as error:
                reason = f"{error.problems[0].reason}, as pbt needs it"
                if not any(problem.key == f"sweep.space.{key}" for problem in problems):
                    problems.append(Problem(f"sweep.space.{key}", reason, value))
    return problems
