"""A run's configuration: sections of keys, checked once, every problem reported at once.

[env]
name = "frostbite"

[network]
name = "large_model"

[algorithm]
name = "ga"            # or module:class of your own; the other keys are its own fields, see neuroevo/algorithms/

[training]
timesteps = 250e6      # at least one of timesteps, generations and minutes

[hardware]             # may be left out
[checkpoints]          # may be left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import PlainValidator, ValidationError

from neuroevo import envs, networks
from neuroevo.algorithm_names import find_algorithm
from neuroevo.algorithms import ALGORITHMS, Algorithm
from neuroevo.config_files import read
from neuroevo.config_problems import in_their_words, key_of, respell, value_problem
from neuroevo.cutoff import parse_cutoff
from neuroevo.errors import UserError
from neuroevo.legacy import Translation
from neuroevo.limits import MAX_SLOTS
from neuroevo.networks import Network
from neuroevo.settings import Count, CountOrZero, Name, Positive, Seed, Slots, Steps, Threads, one_of, settings, whole
from neuroevo.toml_text import inline


def _checked_cutoff(value: object) -> object:
    parse_cutoff(whole(value))
    return whole(value)


@settings
class Env:
    """What is played."""

    name: Name
    """The environment; `neuroevo info` lists them."""
    options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Options of the environment's family, as a table [env.options]."""


@settings
class Training:
    """Episodes, budgets and the seed. Steps are decisions of the network; budgets are checked between generations."""

    seed: Seed = 0
    """Everything random in the run follows from it, in [0, 2**63)."""
    episodes: Count = 1
    """Episodes per genome; its fitness is their mean return."""
    cutoff: Annotated[int | str, PlainValidator(_checked_cutoff)] = 5000
    """Steps after which an episode in training or validation is cut off. Or "adaptive:start,fraction,ratio,max", which
    grows, or "env_default", only the environment's own limit."""
    validation_episodes: Count = 30
    """Episodes per candidate; the best mean is the elite."""
    test_episodes: CountOrZero = 200
    """Episodes of each generation's elite without cut-off; not counted in timesteps. 0 leaves them out."""
    timesteps: Steps | None = None
    """Ends the run after this many steps of population and validation episodes."""
    generations: Count | None = None
    """Ends the run after this many generations."""
    minutes: Positive | None = None
    """Ends the run after this wall time; results then depend on the machine's speed."""
    start_from: Name | None = None
    """Another run's folder, whose best genomes this run begins with instead of fresh ones."""

    def __post_init__(self) -> None:
        if self.timesteps is None and self.generations is None and self.minutes is None:
            raise ValueError("no budget: expected at least one of timesteps, generations and minutes")


@settings
class Hardware:
    """How the machine is used. Results do not depend on it. What is left out is chosen from the machine."""

    device: Annotated[str, one_of(("auto", "cpu", "gpu"))] = "auto"
    """Where networks are evaluated; "auto" takes a GPU where there is one that this version can use."""
    threads: Threads | None = None
    """Worker threads for emulators and networks."""
    lanes: Threads | None = None
    """Lanes: groups of slots that take turns, one's networks beside another's emulators."""
    slots: Slots | None = None
    """Slots (environments) per lane."""

    def __post_init__(self) -> None:
        lanes, slots = self.lanes or 1, self.slots or 1
        if lanes * slots > MAX_SLOTS:
            raise ValueError(f"slots = {slots}: expected at most {MAX_SLOTS // lanes} in each of {lanes} lanes")


@settings
class CheckpointSettings:
    """When checkpoints are written and how long they stay. Results do not depend on it."""

    every: Count = 1
    """Generations between checkpoints. One is also written when the run ends, is interrupted or terminated."""
    keep_last: Count = 3
    """How many of the newest stay."""
    keep_every: CountOrZero = 0
    """Those after every so many generations stay for good; 0: none of them."""


@settings
class Config:
    """A checked configuration."""

    env: Env
    network: Network
    algorithm: Any
    training: Training
    hardware: Hardware
    checkpoints: CheckpointSettings
    algorithm_name: str

    def tables(self) -> dict[str, dict[str, Any]]:
        """The configuration as TOML tables, with every default filled in and nothing that is None."""
        tables = {name: _plain(asdict(getattr(self, name))) for name in SECTIONS}
        tables["algorithm"] = {"name": self.algorithm_name, **tables["algorithm"]}
        return {name: table for name, table in tables.items() if table}

    def origin(self) -> dict[str, dict[str, Any]]:
        """The part of tables() that results depend on: without budgets, hardware, checkpoints and options such as
        workers of gymnasium: environments, and with what a file of the environment's holds now in place of its path.

        UserError: that file cannot be read.
        """
        tables = self.tables()
        training = {key: value for key, value in tables["training"].items() if key not in BUDGETS}
        return {
            "env": _plain({**tables["env"], **envs.deciding(self.env.name, self.env.options)}),
            "network": tables["network"],
            "algorithm": tables["algorithm"],
            "training": training,
        }

    def toml(self) -> str:
        """The configuration as TOML text that loads as the same configuration."""
        return tomli_w.dumps(self.tables())


BUDGETS = ("timesteps", "generations", "minutes")  # keys of [training] that only say when a run ends
SECTIONS = {
    "env": Env,
    "network": Network,
    "algorithm": None,
    "training": Training,
    "hardware": Hardware,
    "checkpoints": CheckpointSettings,
}


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """`table` without the keys whose value is None, which TOML cannot say; they are absent."""
    return {
        key: _plain(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None and value != {}
    }


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
        found += envs.check(made["env"].name, made["env"].options)
    if "network" in made:
        name, options = (made["env"].name, made["env"].options) if "env" in made else ("", {})
        found += networks.check(made["network"], name, *envs.kind_of(name, options))
    found = [in_their_words(problem, given.names) for problem in found]
    said = {key_of(problem) for problem in given.problems}
    problems = given.problems + [problem for problem in found if key_of(problem) not in said]
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UserError(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {source}:{lines}")
    env = made["env"]
    made["env"] = replace(env, options=envs.settled(env.name, env.options))
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
