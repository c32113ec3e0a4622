"""What is wrong with a sweep: every problem that can be known before its first trial starts."""

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

_CONTEXTS = 16  # points whose other values a key's values are tried with


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Append the problems of a UserError to `problems`, once."""
    try:
        yield
    except UserError as error:
        problems += [problem for problem in problems_in(error) if problem not in problems]


def attempt(tables: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[Config | None, list[Problem]]:
    """Make the configuration of a trial.

    Args:
        tables: Those of the configuration that all trials share.
        values: Other values of its keys, such as {"algorithm.sigma": 0.01}.

    Returns:
        The configuration, or None and why no trial can have these values.
    """
    try:
        return make_config(tables, values), []
    except ConfigError as error:
        return None, list(error.problems)
    except UserError as error:  # a part of a key before the last is not a table
        return None, [Problem("sweep.space", str(error))]


def probe(space: Space, tables: Mapping[str, Any]) -> tuple[list[tuple[str, Any, Config]], list[Problem]]:
    """Try all values of a list and both ends of a range, one key at a time.

    Where the configuration refuses one, other keys of the space may be why: it is then tried with theirs from several
    points of the space, one of which has to accept it.

    Returns:
        Keys, values and a configuration that accepts each; and what is wrong with the values that are never accepted.
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
    """Find the problems of what a sweep's file says, without its configurations.

    Args:
        chosen: The file's settings.
        space: The values that keys may have.
        changed: The keys that `set` and --set change.
    """
    search, grid, pbt = f'search = "{chosen.search}"', chosen.search == "grid", chosen.search == "pbt"
    others = [name for name in chosen.implementations if name != NEUROEVO]
    own = {"env.name": "games"} if chosen.games else {}
    own |= {SEED: "seeds"} if chosen.seeds is not None else {}
    problems = [Problem(f"set {key}", f"sweep.{own[key]} says that") for key in sorted(changed) if key in own]

    def refuse_if(wrong: object, key: str, reason: str, *value: object) -> None:
        if wrong:
            problems.append(Problem(f"sweep.{key}", reason, *value))

    for key, domain in space.items():
        refuse_if(key in changed, f"space.{key}", "set says that")
        refuse_if(key == SEED and SEED in own, f"space.{key}", "sweep.seeds says that")
        refuse_if(key == SEED and pbt, f"space.{key}", "a trial of pbt keeps its seed")
        refuse_if(key == "env.name", f"space.{key}", "sweep.games names what trials play")
        refuse_if(grid and domain.kind != LIST, f"space.{key}", f"expected a list of values with {search}")
    if grid:
        reason = "a grid has as many as combinations; leave it out"
        refuse_if(chosen.trials is not None, "trials", reason, chosen.trials)
    else:
        refuse_if(not space, "space", "expected at least one key")
        refuse_if(chosen.trials is None, "trials", f"missing, expected how many with {search}")
        for key in ("configs", "games", "implementations"):
            given = getattr(chosen, key) or []
            refuse_if(len(given) > 1, key, f"expected one with {search}", given)
        reason = f"{search} draws one for each trial; leave it out, or set training.seed"
        refuse_if(chosen.seeds is not None, "seeds", reason, chosen.seeds)
    ray = chosen.shared or chosen.cluster != "none"
    reason = 'are processes of this machine, without forks; expected none with search = "pbt", shared or cluster'
    refuse_if(others and (pbt or ray), "implementations", reason, others)
    for name in others:
        with collected(problems):
            function_of(name)
    refuse_if(pbt and chosen.pruner != "none", "pruner", "pbt ends no trial, expected none", chosen.pruner)
    makers: list[tuple[str, Callable[..., object], int | None]]
    makers = [("search", make_sampler, 0), ("pruner", make_pruner, None)]
    for kind, make, number in makers:
        name, options = getattr(chosen, kind), getattr(chosen, f"{kind}_options")
        if name in ("grid", "none"):
            refuse_if(options, f"{kind}_options", f'{kind} = "{name}" has none', options)
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
    """Find the problems of a sweep's settings, which have a metric, with one of its configurations and its tables."""
    accepted, problems = probe(space, tables)
    if base.cluster.address != "none":
        reason = "a trial plays where the sweep puts it; sweep.cluster names the cluster"
        problems.append(Problem("cluster.address", reason, base.cluster.address))
    metric = str(chosen.metric)
    if metric not in METRICS:
        expected = f"expected one of {', '.join(METRICS)}"
        reason = f"no record has it{did_you_mean(metric, METRICS)}; {expected}"
        if metric.startswith("test_") and metric in COLUMNS:
            reason = f"known only generations later; {expected}"
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
                problem = Problem(f"sweep.space.{key}", f"{error.problems[0].reason}, as pbt needs it", value)
                problems += [problem] if all(each.key != problem.key for each in problems) else []
        if base.training.generations is None:
            problems.append(Problem("training.generations", 'missing, expected how many with search = "pbt"'))
    return problems
