"""Load configurations from files, presets or tables, and report all of their problems at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from neuroevo.algorithms.base import Algorithm
from neuroevo.algorithms.registry import ALGORITHMS, find_algorithm
from neuroevo.config.named import named_code
from neuroevo.config.schema import SECTIONS, Config, Env
from neuroevo.config.sources import apply_all, name_object, parse, read, text_of
from neuroevo.config.suggestions import respell
from neuroevo.config.trust import Recorded, allowed, is_of_run
from neuroevo.config.uber2018 import Translation
from neuroevo.core.genome import GAUSSIAN
from neuroevo.core.problems import ConfigError, Problem, problems_of, refuse
from neuroevo.core.user_module import only
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.networks.network import Network, check


def load_config(path: Path | str, overrides: Sequence[str] | Mapping[str, Any] = (), *, trust: bool = False) -> Config:
    """Load and check the configuration in a TOML file, a JSON file of the 2018 code or a preset.

    Args:
        path: The file, or the preset's name. A file in a run's folder is loaded with load_run_config().
        overrides: Changes to its keys, such as ["training.seed=3"] or {"training.seed": 3}.
        trust: Allow external code and models referenced by a run that the user did not create.

    Raises:
        ConfigError: The configuration is invalid; the error lists all of its problems.
        NotTrustedError: The file belongs to a run that load_run_config() rejects.
        UserError: The file does not exist or cannot be read.
    """
    if is_of_run(path):
        return load_run_config(Path(path), overrides, trust=trust, trains=True)
    return _check(read(path, overrides), str(path))


def load_run_config(
    path: Path,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    recorded: Recorded | None = None,
    trust: bool = False,
    like: Config | None = None,
    trains: bool = False,
) -> Config:
    """Load and check the configuration in a run's folder, which may come from an untrusted source: docs/security.md.

    Args:
        path: The file.
        overrides: Changes by the user, as for load_config().
        recorded: The configuration in the run's database, used instead of the file.
        trust: Allow external code and models referenced by the configuration.
        like: A configuration of the user; its external code and models are trusted.
        trains: Whether the configuration is used to start or resume a run; False: the run is only inspected.

    Raises:
        ConfigError: The configuration is invalid; the error lists all of its problems.
        NotTrustedError: The configuration references external code, and the run was not started on this machine.
        UserError: The file does not exist or cannot be read.
    """
    recorded = recorded or Recorded(text_of(path))
    given, changed = parse(recorded.text, path, overrides)
    allowed(path, given.tables, changed, recorded.places, trust=trust, like=like, trains=trains)
    # A misspelt key is treated as the closest valid key, but only modules named by correctly spelt keys are imported.
    with only({each.module for each in named_code(given.tables) if each.module is not None}):
        return _check(given, str(path))


def make_config(tables: Mapping[str, Any], overrides: Sequence[str] | Mapping[str, Any] = ()) -> Config:
    """Check the configuration in tables.

    Args:
        tables: The sections by name, such as {"env": {"name": "pong"}, "training": {"generations": 3}}. A class or
            function may be given instead of its name "module:name", as in {"network": {"name": my_module.my_network}};
            for env.name, a subclass of gymnasium.Env or a function that makes an environment.
        overrides: Changes to keys, as for load_config().

    Raises:
        ConfigError: The configuration is invalid; the error lists all of its problems.
        UserError: An override is malformed.
    """
    own = {
        section: {key: name_object(f"{section}.{key}", value) for key, value in table.items()}
        if isinstance(table, Mapping)
        else table
        for section, table in (deepcopy(dict(tables)) if overrides else tables).items()
    }
    apply_all(own, overrides)
    return _check(Translation(own), "the configuration")


def _check(given: Translation, source: str) -> Config:
    """Make the Config. ConfigError: lists all problems, those of the translation and those found here."""
    algorithm_name, made, found = _make_sections(given.tables)
    environment: Environment | None = None
    if "env" in made:
        environment, wrong = registry.check(made["env"].name, made["env"].options)
        found += wrong
    if "network" in made:
        found += _network_problems(made["network"], environment)
    kind = made["algorithm"].mutation_kind if "algorithm" in made else GAUSSIAN
    if not kind.materialized and "network" in made and made["network"].dtype != "float32":
        reason = f"the mutations ({kind}) of {algorithm_name} require float32 networks, expected float32"
        found.append(Problem("network.dtype", reason, made["network"].dtype))
    own = made["algorithm"].own_networks if "algorithm" in made else None
    if own is not None and not own.integers and "network" in made and made["network"].dtype != "float32":
        reason = f"the networks of {algorithm_name} have layers that int8 does not support, expected float32"
        found.append(Problem("network.dtype", reason, made["network"].dtype))
    if own is not None and own.graphs and "hardware" in made and made["hardware"].device == "gpu":
        reason = f"the networks of {algorithm_name} are evaluated on the CPU only, expected cpu or auto"
        found.append(Problem("hardware.device", reason, "gpu"))
    if environment is not None and "algorithm" in made and made["algorithm"].needs_reference:
        normalized = "network" in made and made["network"].normalize_observations
        if environment.accelerated or normalized:
            what = "normalized observations" if normalized else "simulators on the accelerator"
            reason = f"safe mutations of {algorithm_name} do not support {what}; expected safe mutations to be off"
            found.append(Problem("algorithm", reason, algorithm_name))
    if environment is not None and "algorithm" in made and made["algorithm"].behavior:
        try:
            made["algorithm"] = made["algorithm"].on_measures(environment.measures)
        except ConfigError as error:
            found += [replace(problem, key=f"algorithm.{problem.key}") for problem in error.problems]
        if not environment.measures:
            reason = (
                f"{environment.given_name} has no behavior with these options, expected an algorithm without behaviors"
            )
            found.append(Problem("algorithm.name", reason, algorithm_name))
    found = [problem.renamed(given.names) for problem in found]
    reported = {problem.key for problem in given.problems}
    problems = given.problems + [problem for problem in found if problem.key not in reported]
    refuse(problems, source)
    assert environment is not None  # an unknown environment is a problem
    made["env"] = Env.of(environment)
    if made["training"].target == "solved":
        made["training"] = replace(made["training"], target=_solved_return(environment, source))
    return Config(**made, algorithm_name=algorithm_name)


def _solved_return(environment: Environment, source: str) -> float:
    """Return the mean return at which an environment counts as solved. ConfigError: it is unknown."""
    known = environment.solved_return
    if known is None:
        reason = f"{environment.given_name} defines no solved return with these options, expected a number"
        refuse([Problem("training.target", reason, "solved")], source)
    assert known is not None
    return known


def _network_problems(network: Network, env: Environment | None) -> list[Problem]:
    """Return the problems of a network; `env` is None if the environment is invalid."""
    if env is None:
        return check(network, "")
    return check(network, env.given_name, env.image_observations, env.continuous_actions)


def _make_sections(tables: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[Problem]]:
    """Return the algorithm's name, the valid sections, and the problems of the invalid ones."""
    problems: list[Problem] = []
    tables = respell(tables, "", keys_of_sections(), problems, "sections")
    algorithm_name, algorithm = _algorithm(tables, problems)
    keys = keys_of_sections([] if algorithm is None else [algorithm])
    made: dict[str, Any] = {}
    for name, kind in {**SECTIONS, "algorithm": algorithm}.items():
        table = tables.get(name, {})
        if not isinstance(table, Mapping):
            problems.append(Problem(name, f"expected a section [{name}]", table))
            continue
        if kind is None:
            continue
        where = f"keys of [{name}]"
        if name == "algorithm":
            where += f' with name = "{algorithm_name}"'
        table = respell(table, name, keys, problems, where)
        if name == "algorithm":
            table.pop("name", None)
        try:
            made[name] = kind(**table)
        except ValidationError as error:
            problems += problems_of(name, error)
    return algorithm_name, made, problems


def keys_of_sections(algorithms: Iterable[type[Algorithm]] = ALGORITHMS.values()) -> dict[str, list[str]]:
    """List the valid keys of each section for a set of algorithms.

    Args:
        algorithms: Classes of the algorithms whose keys [algorithm] may have.

    Returns:
        Keys by section.
    """
    keys = {name: _keys(kind) for name, kind in SECTIONS.items() if kind is not None}
    own = dict.fromkeys(key for kind in algorithms for key in _keys(kind))
    return {name: ["name", *own] if name == "algorithm" else keys[name] for name in SECTIONS}


def _keys(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def _algorithm(tables: Mapping[str, Any], problems: list[Problem]) -> tuple[str, type[Algorithm] | None]:
    """Return the algorithm's name and class; for an unknown name, None after adding to `problems`."""
    table = tables.get("algorithm", {})
    name = table.get("name", "ga") if isinstance(table, Mapping) else "ga"
    try:
        return str(name), find_algorithm(name)
    except ConfigError as error:
        problems += error.problems
        return str(name), None
