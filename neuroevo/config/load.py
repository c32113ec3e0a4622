"""A configuration from a file, a preset or tables: checked once, every problem reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from neuroevo.algorithms.base import Algorithm
from neuroevo.algorithms.registry import ALGORITHMS, find_algorithm
from neuroevo.config.schema import SECTIONS, Config
from neuroevo.config.sources import read
from neuroevo.config.suggestions import in_their_words, key_of, respell
from neuroevo.config.uber2018 import Translation
from neuroevo.core.errors import UserError
from neuroevo.core.problems import inline, value_problem
from neuroevo.envs import registry
from neuroevo.networks import architectures


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> Config:
    """The configuration in a TOML file, a 2018 JSON file or the preset called `path`, with overrides.

    overrides: such as "training.seed=3". UserError lists all problems.
    """
    return _check(read(path, overrides), str(path))


def make_config(tables: Mapping[str, Any]) -> Config:
    """A checked Config from TOML tables. UserError lists all problems."""
    return _check(Translation(dict(tables)), "the configuration")


def _check(given: Translation, source: str) -> Config:
    """The Config, or a UserError with all problems: the given ones, and others of other keys."""
    algorithm_name, made, found = _make_sections(given.tables)
    if "env" in made:
        found += registry.check(made["env"].name, made["env"].options)
    if "network" in made:
        name, options = (made["env"].name, made["env"].options) if "env" in made else ("", {})
        found += architectures.check(made["network"], name, *registry.kind_of(name, options))
    found = [in_their_words(problem, given.names) for problem in found]
    said = {key_of(problem) for problem in given.problems}
    problems = given.problems + [problem for problem in found if key_of(problem) not in said]
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UserError(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {source}:{lines}")
    env = made["env"]
    made["env"] = replace(env, options=registry.settled(env.name, env.options))
    return Config(**made, algorithm_name=algorithm_name)


def _make_sections(tables: Mapping[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """The algorithm's name, the sections that could be made, and what is wrong with the others."""
    problems: list[str] = []
    keys = {name: _keys(kind) for name, kind in SECTIONS.items()}
    keys["algorithm"] = list(dict.fromkeys(key for kind in ALGORITHMS.values() for key in _keys(kind)))
    tables = respell(tables, "", keys, problems, "sections")
    algorithm_name, algorithm = _algorithm(tables, problems)
    keys["algorithm"] = ["name", *_keys(algorithm)]
    made: dict[str, Any] = {}
    for name, kind in {**SECTIONS, "algorithm": algorithm}.items():
        table = tables.get(name, {})
        if not isinstance(table, Mapping):
            problems.append(f"{name} = {inline(table)}: expected a section [{name}]")
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
            problems += [value_problem(name, detail) for detail in error.errors()]
    return algorithm_name, made, problems


def _keys(kind: type | None) -> list[str]:
    return [field.name for field in fields(kind)] if kind else []


def _algorithm(tables: Mapping[str, Any], problems: list[str]) -> tuple[str, type[Algorithm] | None]:
    """Name and class of the algorithm; no class, after adding to `problems`, when there is none of that name."""
    table = tables.get("algorithm", {})
    name = table.get("name", "ga") if isinstance(table, Mapping) else "ga"
    try:
        return str(name), find_algorithm(name)
    except UserError as error:
        problems.append(f"algorithm.name = {inline(name)}: {error}")
        return str(name), None
