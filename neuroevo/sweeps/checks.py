"""Validation of a sweep before its first trial starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

from pydantic import ValidationError

from neuroevo.config.load import make_config
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.extras import require
from neuroevo.core.problems import ConfigError, Problem, did_you_mean, problems_in, problems_of
from neuroevo.sessions.fork import check_fork
from neuroevo.sweeps.implementations import function_of
from neuroevo.sweeps.searches import draw, make_pruner, make_sampler
from neuroevo.sweeps.settings import METRICS, NEUROEVO, VALIDATION, SweepSettings
from neuroevo.sweeps.space import LIST, SEED, Space
from neuroevo.training.record import COLUMNS

_CONTEXTS = 16  # random points with which each value of a key is combined


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Append the problems of a UserError to `problems`, without duplicates."""
    try:
        yield
    except UserError as error:
        problems += [problem for problem in problems_in(error) if problem not in problems]


def attempt(tables: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[Config | None, list[Problem]]:
    """Make the configuration of a trial.

    Args:
        tables: Tables of the configuration that all trials share.
        values: Values that replace those of the tables, such as {"algorithm.sigma": 0.01}.

    Returns:
        The configuration and no problems, or None and the problems of the values.
    """
    try:
        return make_config(tables, values), []
    except ConfigError as error:
        return None, list(error.problems)
    except UserError as error:  # a part of a key before the last is not a table
        return None, [Problem("sweep.space", str(error))]


def probe(space: Space, tables: Mapping[str, Any]) -> tuple[list[tuple[str, Any, Config]], list[Problem]]:
    """Try all values of each list and both ends of each range, one key at a time.

    A value that is rejected may be valid together with other values of the space. It is then tried at several random
    points of the space, and has to be valid at one of them.

    Returns:
        Triples of a key, a value and a configuration with it; and the problems of the values that are always rejected.
    """
    accepted: list[tuple[str, Any, Config]] = []
    problems: list[Problem] = []
    for key, domain in space.items():
        for value in domain.values:
            points = (draw(space, seed) for seed in range(_CONTEXTS) if len(space) > 1)
            attempts = (attempt(tables, {**point, key: value}) for point in chain([{}], points))
            config, refused = next(attempts)
            config = config or next((other for other, _ in attempts if other), None)
            if config:
                accepted.append((key, value, config))
            else:
                problems += [problem for problem in refused if problem not in problems]
    return accepted, problems


def of_settings(chosen: SweepSettings, space: Space, changed: Collection[str]) -> list[Problem]:
    """Return the problems of a sweep's settings that are independent of its configurations.

    Args:
        chosen: The settings of the sweep's file.
        space: The search space.
        changed: The keys that `set` and --set change.
    """
    search, grid, pbt = f'search = "{chosen.search}"', chosen.search == "grid", chosen.search == "pbt"
    others = [name for name in chosen.implementations if name != NEUROEVO]
    own = {"env.name": "games"} if chosen.games else {}
    own |= {SEED: "seeds"} if chosen.seeds is not None else {}
    problems = [Problem(f"set {key}", f"already set by sweep.{own[key]}") for key in sorted(changed) if key in own]

    def refuse_if(wrong: object, key: str, reason: str, *value: object) -> None:
        if wrong:
            problems.append(Problem(f"sweep.{key}", reason, *value))

    for key, domain in space.items():
        refuse_if(key in changed, f"space.{key}", "already set by sweep.set or --set")
        refuse_if(key == SEED and SEED in own, f"space.{key}", "already set by sweep.seeds")
        refuse_if(key == SEED and pbt, f"space.{key}", "a trial of pbt keeps its seed")
        refuse_if(key == "env.name", f"space.{key}", "not supported, use sweep.games")
        refuse_if(grid and domain.kind != LIST, f"space.{key}", f"expected a list of values with {search}")
    if grid:
        reason = "a grid has one trial per combination; remove this key"
        refuse_if(chosen.trials is not None, "trials", reason, chosen.trials)
    else:
        refuse_if(not space, "space", "expected at least one key")
        refuse_if(chosen.trials is None, "trials", f"missing, expected the number of trials with {search}")
        for key in ("configs", "games", "implementations"):
            given = getattr(chosen, key) or []
            refuse_if(len(given) > 1, key, f"expected one with {search}", given)
        reason = f"{search} draws a seed for each trial; remove this key, or set training.seed"
        refuse_if(chosen.seeds is not None, "seeds", reason, chosen.seeds)
    reason = 'run as processes of this machine, without forks; not supported with search = "pbt" or cluster'
    refuse_if(others and (pbt or chosen.cluster != "none"), "implementations", reason, others)
    for name in others:
        with collected(problems):
            function_of(name)
    refuse_if(pbt and chosen.pruner != "none", "pruner", "not supported with pbt, expected none", chosen.pruner)
    makers: list[tuple[str, Callable[..., object], int | None]]
    makers = [("search", make_sampler, 0), ("pruner", make_pruner, None)]
    for kind, make, number in makers:
        name, options = getattr(chosen, kind), getattr(chosen, f"{kind}_options")
        if name in ("grid", "none"):
            refuse_if(options, f"{kind}_options", f'{kind} = "{name}" has no options', options)
            continue
        require("sweep", "optuna")
        try:
            make(name, options, number)
        except ValidationError as error:
            problems += problems_of(f"sweep.{kind}_options", error)
        except (TypeError, ValueError) as error:
            refuse_if(True, f"{kind}_options", str(error).partition("\n")[0], options)
    return problems


def of_sweep(chosen: SweepSettings, space: Space, tables: Mapping[str, Any], base: Config) -> list[Problem]:
    """Return the problems of a sweep's settings (with a metric) for one configuration and its tables."""
    accepted, problems = probe(space, tables)
    if base.cluster.address != "none":
        reason = "not supported in sweeps; set sweep.cluster instead"
        problems.append(Problem("cluster.address", reason, base.cluster.address))
    metric = str(chosen.metric)
    if metric not in METRICS:
        expected = f"expected one of {', '.join(METRICS)}"
        reason = f"not a valid metric{did_you_mean(metric, METRICS)}; {expected}"
        if metric.startswith("test_") and metric in COLUMNS:
            reason = f"available only generations later; {expected}"
        problems.append(Problem("sweep.metric", reason, metric))
    elif metric == VALIDATION and (chosen.search != "grid" or chosen.pruner != "none"):
        for config in [config for key, _, config in accepted if key == "algorithm.name"] or [base]:
            if not config.algorithm.validates:
                name = config.algorithm_name
                reason = f"{name} plays no validation episodes; expected fitness_mean or another column"
                problems.append(Problem("sweep.metric", reason, metric))
    if chosen.search == "pbt":
        for key, value, config in accepted:
            try:
                check_fork(base, config)
            except ConfigError as error:
                problem = Problem(f"sweep.space.{key}", f"{error.problems[0].reason}, as pbt requires", value)
                problems += [problem] if all(each.key != problem.key for each in problems) else []
        if base.training.generations is None:
            problems.append(Problem("training.generations", 'missing, expected a number with search = "pbt"'))
    return problems
