"""A suite: configurations x games x seeds, each a training run of its own. What its file says, and which runs that is.

[suite]
configs = ["frostbite_ga", "mine.toml"]   # presets and files, those beside this file first
games = ["frostbite", "kangaroo"]         # left out: each configuration's own
seeds = 3                                 # 0, 1 and 2; or a list such as [7, 8]
set = ["training.total_steps=1e6"]          # changes to every configuration
normalize = {frostbite = [65.2, 4334.7], kangaroo = [52.0, 3035.0]}   # scores that count as 0 and as 1
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainValidator

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import key_of
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.settings import Count, Name, settings, whole
from neuroevo.envs import registry
from neuroevo.sweeps.section import beside, collected, folder_of, read_section

_MAX_SEEDS = _MAX_RUNS = 10_000  # every one is a training run, and a configuration to check first


def checked_seeds(value: object) -> list[int]:
    """Reads how many seeds, from 0 on, or a list of them. ValueError: it is neither."""
    value = whole(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_SEEDS:
        return list(range(value))
    given = value if isinstance(value, list) else []
    seeds = [seed for seed in given if type(seed) is int and 0 <= seed < 2**63]
    if not seeds or len(set(seeds)) < len(given):
        raise ValueError(f"expected how many, 1 to {_MAX_SEEDS}, or a list of different seeds in [0, 2**63)")
    return seeds


@settings
class SuiteSettings:
    """The keys of [suite]."""

    configs: Annotated[list[Name], Field(min_length=1)]
    """Configurations: files, looked for beside the suite's file first, and presets."""
    games: Annotated[list[Name], Field(min_length=1)] | None = None
    """The games that every configuration plays; left out, each plays its own env.name."""
    seeds: Annotated[list[int], PlainValidator(checked_seeds)] = dataclass_field(default_factory=lambda: [0])
    """How many, from 0 on, or a list of them."""
    set: list[Name] = dataclass_field(default_factory=list)
    """Changes to every configuration, as --set takes them: "training.total_steps=1e6"."""
    normalize: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]] = dataclass_field(
        default_factory=dict
    )
    """For numbers over all games: of each game the scores that count as 0 and as 1, such as random and human play."""
    parallel: Count = 1
    """Runs at a time. The machine's hardware threads are shared out among them."""
    out: Name | None = None
    """The folder of all runs and of the report; left out: runs/NAME, after the suite's file."""


@dataclass(frozen=True)
class SuiteRun:
    """One run of a suite.

    Attributes:
        label: The name of its configuration.
        game: What its environment is called in tables and folders.
        config: That configuration with the run's game and seed.
        folder: Where it goes.
        trust: Whether to run code and read models that the run in the folder names beside those of `config`.
    """

    label: str
    game: str
    config: Config
    folder: Path
    trust: bool = False

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.config.training.seed

    @property
    def name(self) -> str:
        """What the run is called in the suite's output."""
        return f"{self.label}/{self.game}/seed-{self.seed}"

    def beside(self, suffix: str) -> Path:
        """A file beside the run's folder: ".toml" is what the run was started with, ".out" what it printed."""
        return self.folder.with_name(self.folder.name + suffix)


@dataclass(frozen=True)
class Suite:
    """All runs of a suite.

    Attributes:
        runs: In the order in which they start; all of one seed come before those of the next.
        parallel: How many go at a time.
        out: The folder of all runs and of the report.
        scales: Of each game in `normalize` the scores that count as 0 and as 1, by what it is called in tables.
    """

    runs: list[SuiteRun]
    parallel: int
    out: Path
    scales: Mapping[str, tuple[float, float]] = dataclass_field(default_factory=dict)


def load_suite(
    path: Path | str,
    overrides: Sequence[str] = (),
    out: Path | None = None,
    parallel: int | None = None,
    trust: bool = False,
) -> Suite:
    """The suite in a TOML file with every run's configuration, checked.

    Args:
        path: The file.
        overrides: Changes to every configuration, after the suite's own.
        out: The folder of all runs, instead of the suite's own.
        parallel: How many runs at a time, instead of the suite's own.
        trust: Whether to run code and read models that runs name, whoever made them: docs/security.md.

    Raises:
        ConfigError: The suite or its configurations have problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    chosen = read_section(path, "suite", SuiteSettings)
    out = folder_of(path, chosen.out, out)
    changes = [*chosen.set, *overrides]
    problems = _conflicts(changes, chosen)
    titles: list[str] = []
    games: list[str | None] = [] if chosen.games else [None]  # None: the configuration's own
    for name in chosen.games or []:
        with collected(problems):
            found = registry.find(name)
            games.append(found.name if found.title == found.name else found.given_name)  # which may have rules
            titles.append(found.title)
    problems += _repeated("games", titles) + _repeated("configs", map(_label, chosen.configs))
    count = len(chosen.seeds) * len(games) * len(chosen.configs)
    if count > _MAX_RUNS:
        reason = f"configs, games and seeds make {count:,} runs, expected at most {_MAX_RUNS:,}"
        refuse([*problems, Problem("suite", reason)], str(path))
    runs = []
    for seed in chosen.seeds:
        for game in games:
            fixed = [f"training.seed={seed}"] + ([f"env.name={json.dumps(game)}"] if game else [])
            for name in chosen.configs:
                with collected(problems):
                    config = load_config(beside(name, path.parent), [*changes, *fixed], trust=trust)
                    played = config.environment.title
                    folder = out / _label(name) / played / f"seed-{seed}"
                    runs.append(SuiteRun(_label(name), played, config, folder, trust))
    scales = _scales(chosen.normalize, {run.game for run in runs}, problems)
    refuse(problems, str(path))
    return Suite(runs, parallel or chosen.parallel, out, scales)


def _scales(
    normalize: Mapping[str, Sequence[float]], games: Collection[str], problems: list[Problem]
) -> dict[str, tuple[float, float]]:
    """Of each game that `normalize` names, by its title, what counts as 0 and as 1; adds what is wrong to problems."""
    scales = {}
    for name, (low, high) in normalize.items():
        key = f"suite.normalize.{name}"
        with collected(problems):
            title = registry.find(name).title
            if games and title not in games:
                problems.append(Problem(key, f"no run plays it, expected one of {', '.join(sorted(games))}"))
            if not (math.isfinite(low) and math.isfinite(high) and low != high):
                problems.append(Problem(key, "expected two finite numbers that differ", [low, high]))
            scales[title] = (low, high)
    return scales


def _conflicts(changes: Iterable[str], chosen: SuiteSettings) -> list[Problem]:
    """A problem for each change of a key that the suite itself sets."""
    own = {"training.seed": "seeds"} | ({"env.name": "games"} if chosen.games else {})
    keys = {change: key_of(change) for change in changes}
    return [Problem(f"set {change}", f"suite.{own[key]} says that") for change, key in keys.items() if key in own]


def _repeated(key: str, names: Iterable[str]) -> list[Problem]:
    """A problem for each name that is there more than once, and would share its runs' folders with the other."""
    names = list(names)
    many = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [Problem(f"suite.{key}", f"there are {names.count(name)} called {name}") for name in many]


def _label(name: str) -> str:
    """What a configuration is called: its file's name without .toml or .json."""
    return Path(name).stem if Path(name).suffix in (".toml", ".json") else Path(name).name
