"""The keys of [sweep], and how they are read from a file."""

from __future__ import annotations

from dataclasses import field as dataclass_field
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, ValidationError

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, problems_of, refuse
from neuroevo.core.settings import Count, Name, Seed, cluster_address, one_of, settings, whole
from neuroevo.system.files import nearest_file
from neuroevo.system.reading import parse_toml, read_text
from neuroevo.training.record import COLUMNS

NEUROEVO = "neuroevo"
METRICS = tuple(name for name in COLUMNS if not name.startswith("test_") and name not in ("generation", "fitness"))
VALIDATION = "validation_mean"
SAMPLERS = {"random": "Random", "tpe": "TPE", "cmaes": "CmaEs", "qmc": "QMC"}  # what Optuna calls them
PRUNERS = {"none": "Nop", "asha": "SuccessiveHalving", "hyperband": "Hyperband", "median": "Median"}
MAX_TRIALS = 10_000  # every one is a training run, and a configuration to check first


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _seeds(value: object) -> list[int] | None:
    """Read how many seeds, from 0 on, or a list of them. ValueError: it is neither."""
    value = whole(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TRIALS:
        return list(range(value))
    given = value if isinstance(value, list) else []
    seeds = [seed for seed in given if type(seed) is int and 0 <= seed < 2**63]
    if not seeds or len(set(seeds)) < len(given):
        raise ValueError(f"expected how many, 1 to {MAX_TRIALS}, or a list of different seeds in [0, 2**63)")
    return seeds


Names = Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)]


@settings
class SweepSettings:
    """The keys of [sweep]."""

    configs: Names
    """Configurations: files, looked for beside the sweep's file first, and presets; a text where there is one."""
    games: Names | None = None
    """The environments that every configuration plays; left out, each plays its own env.name."""
    implementations: Names = dataclass_field(default_factory=lambda: [NEUROEVO])
    """What trains every configuration: "neuroevo", and functions of other implementations, "module:function"."""
    seeds: Annotated[list[int] | None, PlainValidator(_seeds)] = None
    """Number of seeds of a grid, from 0 on, or a list of them; by default seed 0. Other searches draw a seed for each
    trial."""
    set: list[Name] = dataclass_field(default_factory=list)
    """Changes to every configuration, as --set takes them: "training.total_steps=1e6"."""
    space: dict[str, Any] = dataclass_field(default_factory=dict)
    """Values that keys of the configuration may have."""
    search: Annotated[str, one_of(("grid", *SAMPLERS, "pbt"))] = "grid"
    """Search method: every combination of lists (grid), random values, a sampler of Optuna (tpe, cmaes, qmc), or
    population-based training (pbt)."""
    search_options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Arguments of Optuna's sampler, or interval, quantile and resample of pbt."""
    trials: Annotated[Count, Field(le=MAX_TRIALS)] | None = None
    """Number of trials; a grid has one for each combination."""
    pruner: Annotated[str, one_of(PRUNERS)] = "none"
    """Pruner of Optuna that ends trials which are worse than others at the same generation."""
    pruner_options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Arguments of Optuna's pruner, in generations."""
    metric: Name | None = None
    """What searches and pruners want to be large: a column of metrics.csv. Left out: validation_mean or, of an
    algorithm without validation episodes, fitness_mean."""
    normalize: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]] = dataclass_field(
        default_factory=dict
    )
    """For numbers over all games: of each game the scores that count as 0 and as 1, such as random and human play."""
    parallel: Count = 1
    """Number of trials in parallel, among which the machine's hardware threads are divided."""
    shared: bool = False
    """Whether all trials on a machine have their episodes played by one pipeline, through Ray, which takes less memory
    and fills the slots that one trial leaves idle."""
    cluster: Annotated[str, cluster_address("none", "local", "auto")] = "none"
    """The Ray cluster whose machines play: "none" for processes of this machine, "local", "auto", or HOST:PORT of its
    head. All machines need to see the same `out`."""
    seed: Seed = 0
    """Seed of random values, and of the seeds of trials that are not a grid's."""
    out: Name | None = None
    """Folder of all trials and of the report; by default runs/NAME, after the sweep's file."""


@settings
class PbtOptions:
    """The search_options of search = "pbt"."""

    interval: Count | None = None
    """Generations after which trials are compared; None: a tenth of those that they train."""
    quantile: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """The share of trials, the worst, that continue from a state of one of as many best."""
    resample: Annotated[float, Field(ge=0, le=1)] = 0.25
    """The probability that a value is then drawn again rather than changed a little."""


def read_settings(path: Path) -> SweepSettings:
    """Read the section [sweep] of a file, the only one that it may have.

    Raises:
        ConfigError: The file has problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    try:
        tables = parse_toml(read_text(path))
    except FileNotFoundError:
        raise UserError(f"there is no sweep file {path}{nearest_file(path, ('.toml',))}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    expected = "there is no such section; expected [sweep] alone"
    problems = [Problem(name, expected) for name in tables if name != "sweep"]
    table = tables.get("sweep", {})
    if not isinstance(table, dict):
        refuse([*problems, Problem("sweep", "expected a section [sweep]", table)], str(path))
    try:
        chosen = SweepSettings(**table)
    except ValidationError as error:
        problems += problems_of("sweep", error, keys=[each.name for each in fields(SweepSettings)])
    refuse(problems, str(path))
    return chosen
