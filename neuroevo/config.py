"""A run's configuration: a TOML file plus overrides, checked once, every problem reported at once.

[env]
name = "frostbite"

[network]
name = "large_model"

[algorithm]
name = "ga"            # the other keys are the algorithm's own fields, see neuroevo/algorithms/

[training]
timesteps = 250e6      # at least one of timesteps, generations and minutes

[hardware]             # may be left out
[checkpoints]          # may be left out
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import PlainValidator, ValidationError

from neuroevo.algorithms import ALGORITHMS, Algorithm
from neuroevo.cutoff import parse_cutoff
from neuroevo.errors import UserError, did_you_mean
from neuroevo.settings import Count, CountOrZero, Name, Positive, Seed, settings, whole

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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
class Network:
    """Who plays."""

    name: Name = "large_model"
    """The network; `neuroevo info` lists them."""


@settings
class Training:
    """Episodes, budgets and the seed. Steps are decisions of the network; budgets are checked between generations."""

    seed: Seed = 0
    """Everything random in the run follows from it, in [0, 2**63)."""
    episodes: Count = 1
    """Episodes per genome; its fitness is their mean return."""
    cutoff: Annotated[int | str, PlainValidator(_checked_cutoff)] = 5000
    """Steps after which an episode in training or validation is cut off, or "adaptive:start,fraction,ratio,max"."""
    validation_episodes: Count = 30
    """Episodes per candidate; the best mean is the elite."""
    test_episodes: CountOrZero = 200
    """Episodes of each generation's elite without cut-off; not counted in timesteps. 0 leaves them out."""
    timesteps: Count | None = None
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

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Where networks are evaluated; "auto" takes a GPU where there is one that this version can use."""
    threads: Count | None = None
    """Worker threads for emulators and networks."""
    lanes: Count | None = None
    """Lanes: groups of slots that take turns, one's networks beside another's emulators."""
    slots: Count | None = None
    """Slots (environments) per lane."""


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
        tables = {name: _plain(asdict(getattr(self, name))) for name in _SECTIONS}
        tables["algorithm"] = {"name": self.algorithm_name, **tables["algorithm"]}
        return {name: table for name, table in tables.items() if table}

    def origin(self) -> dict[str, dict[str, Any]]:
        """The part of tables() that results depend on: without budgets, hardware and checkpoints."""
        tables = self.tables()
        training = {key: value for key, value in tables["training"].items() if key not in BUDGETS}
        return {
            "env": tables["env"],
            "network": tables["network"],
            "algorithm": tables["algorithm"],
            "training": training,
        }

    def toml(self) -> str:
        """The configuration as TOML text that loads as the same configuration."""
        return tomli_w.dumps(self.tables())


BUDGETS = ("timesteps", "generations", "minutes")  # keys of [training] that only say when a run ends
_SECTIONS = {
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
    """The configuration in the TOML file at `path` with overrides ("training.seed=3"). UserError lists all problems."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    for override in overrides:
        _apply(tables, override)
    return make_config(tables, source=str(path))


def make_config(tables: Mapping[str, Any], source: str = "the configuration") -> Config:
    """A checked Config from TOML tables. UserError lists all problems."""
    problems = [
        f"{name}: there is no such section; expected one of {', '.join(_SECTIONS)}{did_you_mean(name, _SECTIONS)}"
        for name in tables
        if name not in _SECTIONS
    ]
    made: dict[str, Any] = {}
    algorithm_name = ""
    for name, kind in _SECTIONS.items():
        table = tables.get(name, {})
        if not isinstance(table, Mapping):
            problems.append(f"{name} = {_show(table)}: expected a section [{name}]")
            continue
        if name == "algorithm":
            algorithm_name, table = table.get("name", "ga"), {k: v for k, v in table.items() if k != "name"}
            kind = _algorithm(algorithm_name, problems)
            if kind is None:
                continue
        try:
            made[name] = kind(**table)
        except ValidationError as error:
            problems += [_problem(name, kind, detail) for detail in error.errors()]
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UserError(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {source}:{lines}")
    return Config(**made, algorithm_name=algorithm_name)


def _algorithm(name: object, problems: list[str]) -> type[Algorithm] | None:
    """The algorithm's class; None after adding to `problems` when there is none of that name."""
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    hint = did_you_mean(name, ALGORITHMS) if isinstance(name, str) else ""
    problems.append(f"algorithm.name = {_show(name)}: expected one of {', '.join(ALGORITHMS)}{hint}")
    return None


def _problem(section: str, kind: type, detail: Mapping[str, Any]) -> str:
    """One of pydantic's errors as `section.key = value: expected ...`."""
    tags = ("number", "int", "str", "ConstantSchedule", "LinearSchedule", "ExponentialSchedule")
    where = [str(part) for part in detail["loc"] if part not in tags]
    key = ".".join([section, *where])
    if detail["type"] == "unexpected_keyword_argument":
        keys = [field.name for field in fields(kind)]
        if len(where) > 1:
            return f"{key} = {_show(detail['input'])}: there is no such key"
        return (
            f"{key} = {_show(detail['input'])}: there is no such key{did_you_mean(where[0], keys)}"
            f" (keys of [{section}]: {', '.join(keys)})"
        )
    if detail["type"] == "missing":
        return f"{key}: missing, expected a value"
    expected = detail["msg"].removeprefix("Value error, ")
    for prefix in ("Input should be ", "String should have "):
        if expected.startswith(prefix):
            expected = f"expected {expected.removeprefix(prefix)}"
    if not where:
        separator = "." if " = " in expected.partition(":")[0] else ": "
        return f"{key}{separator}{expected}"
    return f"{key} = {_show(detail['input'])}: {expected}"


def _show(value: object) -> str:
    """A value as TOML writes it."""
    try:
        return tomli_w.dumps({"v": value}).removeprefix("v = ").strip() if not isinstance(value, dict) else str(value)
    except TypeError:
        return repr(value)


def _apply(tables: dict[str, Any], override: str) -> None:
    """Sets one KEY=VALUE in `tables`; a value that is not TOML and has no quotes or brackets is text."""
    key, equals, value = override.partition("=")
    key, value = key.strip(), value.strip()
    parts = key.split(".")
    if not equals or not all(parts) or len(parts) < 2:
        raise UserError(f"--set {override}: expected SECTION.KEY=VALUE, such as training.seed=3")
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError as error:
        if not value or any(character in value for character in "\"'[]{}\n="):
            raise UserError(f"--set {override}: the value is not valid TOML: {error}") from None
        parsed = {"value": value}
    if set(parsed) != {"value"}:
        raise UserError(f"--set {override}: expected one value")
    table = tables
    for depth, part in enumerate(parts[:-1]):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {override}: {'.'.join(parts[: depth + 1])} is {_show(table)}, not a table")
    table[parts[-1]] = parsed["value"]
