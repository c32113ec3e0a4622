"""The keys of [sweep]."""

from __future__ import annotations

from dataclasses import field as dataclass_field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator

from neuroevo.core.settings import Count, Name, Seed, cluster_address, one_of, settings, whole
from neuroevo.training.record import COLUMNS

NEUROEVO = "neuroevo"
METRICS = tuple(name for name in COLUMNS if not name.startswith("test_") and name not in ("generation", "fitness"))
VALIDATION = "validation_mean"
SEARCHES = ("grid", "random", "tpe", "cmaes", "qmc", "pbt")
PRUNERS = ("none", "asha", "hyperband", "median")
MAX_TRIALS = 10_000  # every one is a training run, and a configuration to check first
_MAX_SEEDS = MAX_TRIALS


def checked_seeds(value: object) -> list[int]:
    """Read how many seeds, from 0 on, or a list of them. ValueError: it is neither."""
    value = whole(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_SEEDS:
        return list(range(value))
    given = value if isinstance(value, list) else []
    seeds = [seed for seed in given if type(seed) is int and 0 <= seed < 2**63]
    if not seeds or len(set(seeds)) < len(given):
        raise ValueError(f"expected how many, 1 to {_MAX_SEEDS}, or a list of different seeds in [0, 2**63)")
    return seeds


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _seeds(value: object) -> list[int] | None:
    return None if value is None else checked_seeds(value)


@settings
class SweepSettings:
    """The keys of [sweep]."""

    configs: Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)]
    """Configurations: files, looked for beside the sweep's file first, and presets; a text where there is one."""
    games: Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)] | None = None
    """The environments that every configuration plays; left out, each plays its own env.name."""
    implementations: Annotated[list[Name], BeforeValidator(_listed), Field(min_length=1)] = dataclass_field(
        default_factory=lambda: [NEUROEVO]
    )
    """What trains every configuration: "neuroevo", and functions of other implementations, "module:function"."""
    seeds: Annotated[list[int] | None, PlainValidator(_seeds)] = None
    """Number of seeds of a grid, from 0 on, or a list of them; by default seed 0. Other searches draw a seed for each
    trial."""
    set: list[Name] = dataclass_field(default_factory=list)
    """Changes to every configuration, as --set takes them: "training.total_steps=1e6"."""
    space: dict[str, Any] = dataclass_field(default_factory=dict)
    """Values that keys of the configuration may have."""
    search: Annotated[str, one_of(SEARCHES)] = "grid"
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
