"""Settings of a sweep, the keys of [sweep], and their parser."""

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
SAMPLERS = {"random": "Random", "tpe": "TPE", "cmaes": "CmaEs", "qmc": "QMC"}  # Optuna's names
PRUNERS = {"none": "Nop", "asha": "SuccessiveHalving", "hyperband": "Hyperband", "median": "Median"}
MAX_TRIALS = 10_000  # each is a training run, and its configuration is checked first


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _seeds(value: object) -> list[int] | None:
    """Parse a number of seeds, which then start at 0, or a list of seeds. Raise ValueError if it is neither."""
    value = whole(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_TRIALS:
        return list(range(value))
    given = value if isinstance(value, list) else []
    seeds = [seed for seed in given if type(seed) is int and 0 <= seed < 2**63]
    if not seeds or len(set(seeds)) < len(given):
        raise ValueError(f"expected their number, 1 to {MAX_TRIALS}, or a list of different seeds in [0, 2**63)")
    return seeds


Names = Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)]


@settings
class SweepSettings:
    """Settings of a sweep, the keys of [sweep]."""

    configs: Names
    """Configurations: files, searched first next to the sweep's file, and presets; a list or a single string."""
    games: Names | None = None
    """Environments on which every configuration is trained; by default each configuration's own env.name."""
    implementations: Names = dataclass_field(default_factory=lambda: [NEUROEVO])
    """Implementations that train every configuration: "neuroevo", and functions of other modules, "module:function"."""
    seeds: Annotated[list[int] | None, PlainValidator(_seeds)] = None
    """Number of seeds of a grid, starting at 0, or a list of seeds; by default seed 0. Other searches draw a seed for
    each trial."""
    set: list[Name] = dataclass_field(default_factory=list)
    """Overrides for every configuration in the form of --set: "training.total_steps=1e6"."""
    space: dict[str, Any] = dataclass_field(default_factory=dict)
    """Search space: for each key of the configuration, a list of values or a range."""
    search: Annotated[str, one_of(("grid", *SAMPLERS, "pbt"))] = "grid"
    """Search method: every combination of lists (grid), random values, a sampler of Optuna (tpe, cmaes, qmc), or
    population-based training (pbt)."""
    search_options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Arguments of Optuna's sampler, or `interval`, `quantile` and `resample` of pbt."""
    trials: Annotated[Count, Field(le=MAX_TRIALS)] | None = None
    """Number of trials; a grid has one trial per combination."""
    pruner: Annotated[str, one_of(PRUNERS)] = "none"
    """Optuna pruner, which stops trials that are worse than other trials at the same generation."""
    pruner_options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Arguments of Optuna's pruner, in generations."""
    metric: Name | None = None
    """Column of metrics.csv that searches and pruners maximize. Default: validation_mean or, for an algorithm without
    validation episodes, fitness_mean."""
    normalize: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]] = dataclass_field(
        default_factory=dict
    )
    """Score normalization for aggregates over games: for each game the scores mapped to 0 and 1, such as the scores of
    random and human play."""
    parallel: Count = 1
    """Number of trials trained in parallel; they share the machine's hardware threads equally."""
    cluster: Annotated[str, cluster_address("none", "local", "auto")] = "none"
    """Ray cluster on which trials run: "none" for processes of this machine, "local", "auto", or HOST:PORT of its head.
    All machines need access to the same `out`."""
    seed: Seed = 0
    """Seed of the search, and of the trials' seeds if the search is not a grid."""
    out: Name | None = None
    """Folder of all trials and of the report; by default runs/NAME, where NAME is that of the sweep's file."""


@settings
class PbtOptions:
    """Options of population-based training, the search_options of search = "pbt"."""

    interval: Count | None = None
    """Generations between exchanges; None: a tenth of training.generations."""
    quantile: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """Fraction of trials, the worst, that continue as forks of trials from the same fraction of the best."""
    resample: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Probability that a value of a fork is resampled instead of perturbed."""


def read_settings(path: Path) -> SweepSettings:
    """Read the section [sweep] of a file, which may have no other section.

    Raises:
        ConfigError: The file is invalid; lists all problems.
        UserError: The file does not exist or cannot be read.
    """
    try:
        tables = parse_toml(read_text(path))
    except FileNotFoundError:
        raise UserError(f"there is no sweep file {path}{nearest_file(path, ('.toml',))}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    expected = "unknown section, expected only [sweep]"
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
