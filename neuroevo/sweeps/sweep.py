"""Sweep: a set of training runs, called trials, that a file defines and that is checked before training starts.

[sweep]
configs = ["frostbite_ga", "mine.toml"]   # presets and files; files next to this one take precedence
games = ["frostbite", "kangaroo"]         # default: each configuration's own
seeds = 3                                 # 0, 1 and 2; or a list such as [7, 8]
implementations = ["neuroevo", "mine:train"]  # default: neuroevo; see implementations.py
set = ["training.total_steps=1e6"]        # overrides for every configuration

or, to search hyperparameters of one configuration,

[sweep]
configs = "inverted_pendulum"
trials = 20
search = "tpe"                            # or "random", "cmaes", "qmc", "pbt"; default: a grid
pruner = "asha"                           # or "hyperband", "median"; default: no pruner

[sweep.space]
"algorithm.sigma" = {log_uniform = [1e-3, 1e-1]}
"network.hidden" = [[8], [16, 16]]
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import key_of, read
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import draw_seeds
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.sweeps.checks import attempt, collected, of_settings, of_sweep
from neuroevo.sweeps.settings import MAX_TRIALS, NEUROEVO, VALIDATION, SweepSettings, read_settings
from neuroevo.sweeps.space import SEED, Space, Values, parse_space
from neuroevo.system.processes import usable_cores

Status = Literal["waiting", "running", "finished", "stopped", "failed"]
Scales = Mapping[str, tuple[float, float]]
"""Scores that are normalized to 0 and 1, by the game's title."""
_TRIAL_SEEDS = 1000  # purpose of random numbers, distinct from those of runs


@dataclass(frozen=True)
class Trial:
    """Trial of a sweep: one training run.

    Attributes:
        number: Number of the trial, from 0.
        label: Name of its configuration and, unless neuroevo trains it, of the implementation.
        game: Title of its environment, used in tables and folders.
        seed: Its training.seed.
        values: Values of the space's keys; with population-based training the current ones.
        folder: Folder of its run, relative to the sweep's folder.
        status: "finished" after spending a budget, "stopped" by the pruner, "failed" with an error, "waiting" or
            "running".
        reason: Reason of a failure: a line, followed by the last lines that its process printed.
        stopped: Number of generations after which the pruner stopped it; None: it was not stopped.
    """

    number: int
    label: str
    game: str
    seed: int
    values: Values = field(default_factory=dict)
    folder: str = ""
    status: Status = "waiting"
    reason: str = ""
    stopped: int | None = None

    @property
    def name(self) -> str:
        """Name of the trial, its original folder without forks."""
        return self.folder.partition("-fork-")[0]


@dataclass(frozen=True)
class Sweep:
    """Definition of a sweep.

    Attributes:
        settings: Settings of its file, with a metric.
        space: The search space.
        tables: Tables of each configuration, by label and game.
        configs: Validated configurations, by label and game.
        out: Absolute path of the sweep's folder.
        scales: Score scales of the games in `normalize`.
        implementations: "module:function" by label, for configurations that another implementation trains.
        trust: Allow a sweep begun by another user, and external code and models referenced by a run's configuration.
    """

    settings: SweepSettings
    space: Space
    tables: Mapping[tuple[str, str], Mapping[str, Any]]
    configs: Mapping[tuple[str, str], Config]
    out: Path
    scales: Scales
    implementations: Mapping[str, str]
    trust: bool

    @property
    def metric(self) -> str:
        """Column of metrics.csv to maximize."""
        return self.settings.metric or VALIDATION

    @cached_property
    def base(self) -> Config:
        """The first configuration; the only one unless the search is a grid."""
        return next(iter(self.configs.values()))

    @cached_property
    def points(self) -> tuple[Trial, ...]:
        """All trials of a grid; empty for other searches, which sample trials during the sweep."""
        if self.settings.search != "grid":
            return ()
        trials: list[Trial] = []
        seeds: Sequence[int | None] = self.settings.seeds or [None]  # None: the configurations' own
        grid = enumerate(product(*(domain.values for domain in self.space.values())))
        for seed, ((label, game), config), (place, point) in product(seeds, self.configs.items(), grid):
            values = dict(zip(self.space, point, strict=True))
            own = values.pop(SEED, config.training.seed if seed is None else seed)
            folder = f"{label}/{game}/{f'point-{place:05d}/' if self.space else ''}seed-{own}"
            trials.append(Trial(len(trials), label, game, own, values, folder))
        return tuple(trials)

    @property
    def trials(self) -> int:
        """Total number of trials."""
        return self.settings.trials or len(self.points)

    def trial(self, number: int, values: Values) -> Trial:
        """Make a trial from values that a search has sampled."""
        ((label, game),) = self.tables
        (drawn,) = draw_seeds(1, self.settings.seed, number, _TRIAL_SEEDS)
        own, seed = dict(values), self.base.training.seed if self.settings.seeds is None else drawn
        return Trial(number, label, game, own.pop(SEED, seed), own, f"trial-{number:05d}")

    def config(self, trial: Trial, generations: int | None = None) -> Config:
        """Make a trial's configuration. With population-based training, generations are the only budget.

        Args:
            trial: The trial.
            generations: Budget in generations; None: that of the configuration.
        """
        config = make_config(self.tables[trial.label, trial.game], {**trial.values, SEED: trial.seed})
        training = config.training
        if self.settings.search == "pbt":
            training = replace(training, total_steps=None, minutes=None, target=None)
        return replace(config, training=replace(training, generations=generations or training.generations))

    def value(self, row: Mapping[str, Any]) -> float:
        """Return the metric of a generation, otherwise its mean fitness; -inf if it has neither."""
        values = row.get(self.metric), row.get("fitness_mean"), -math.inf
        return next(value for value in values if value is not None)


def load_sweep(
    path: Path | str,
    overrides: Sequence[str] = (),
    out: Path | None = None,
    parallel: int | None = None,
    trust: bool = False,
) -> Sweep:
    """Read a sweep's file and check the configurations of all trials that are known in advance.

    Args:
        path: The file.
        overrides: Overrides for every configuration, applied after those of the file.
        out: The sweep's folder; None: that of the file.
        parallel: Number of trials in parallel; None: that of the file.
        trust: Allow a sweep begun by another user, and external code and models referenced by a run's configuration.

    Returns:
        The sweep.

    Raises:
        ConfigError: The sweep or a configuration is invalid; lists all problems.
        UserError: The file does not exist or cannot be read.
    """
    path = Path(path)
    chosen = read_settings(path)
    changes = [*chosen.set, *overrides]
    changed = set(map(key_of, changes))
    space, problems = parse_space(chosen.space)
    problems += of_settings(chosen, space, changed)
    found: list[Environment] = []
    for name in chosen.games or []:
        with collected(problems):
            found.append(registry.find(name))
    titles = [each.title for each in found]
    labels, functions = [*map(_label, chosen.configs)], [name.rpartition(":")[2] for name in chosen.implementations]
    for axis, names in (("configs", labels), ("games", titles), ("implementations", functions)):
        many = [name for name in dict.fromkeys(names) if names.count(name) > 1]  # they would share folders
        reasons = [f"{names.count(name)} entries have the name {name}, expected different names" for name in many]
        problems += [Problem(f"sweep.{axis}", reason) for reason in reasons]
    # A game with a Gymnasium name may have other rules.
    games = [each.name if each.title == each.name else each.given_name for each in found] if chosen.games else [None]
    points = math.prod(len(domain.values) for domain in space.values()) if chosen.search == "grid" else 1
    axes = (chosen.configs, games, chosen.implementations, chosen.seeds or [0])
    count = math.prod(map(len, axes)) * points
    if count > MAX_TRIALS:
        what = f"configs, games, implementations, seeds and space make {count:,} trials"
        refuse([*problems, Problem("sweep", f"{what}, expected at most {MAX_TRIALS:,}")], str(path))
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    configs: dict[tuple[str, str], Config] = {}
    others: dict[str, str] = {}
    for game, name in product(games, chosen.configs):
        fixed = [*changes, *([f"env.name={json.dumps(game)}"] if game else [])]
        beside = path.parent / name
        source = beside if os.path.isfile(beside) else name  # Path.is_file() raises where a name is too long
        with collected(problems):
            config, table = load_config(source, fixed, trust=trust), dict(read(source, fixed).tables)
            for implementation, function in zip(chosen.implementations, functions, strict=True):
                label = _label(name)
                if implementation != NEUROEVO:
                    label = f"{label}-{function}"
                    others[label] = implementation
                key = label, config.environment.title
                tables[key], configs[key] = table, config
    played = {game for _, game in configs}
    scales = _scales(chosen.normalize, played, problems)
    if not configs:
        refuse(problems, str(path))
    base = next(iter(configs.values()))
    final = replace(
        chosen,
        metric=chosen.metric or (VALIDATION if base.algorithm.validates else "fitness_mean"),
        parallel=min(parallel or chosen.parallel, count if chosen.search == "grid" else chosen.trials or 1),
        seeds=None if SEED in changed else chosen.seeds or [0],
    )
    if final.parallel > 1 and final.cluster == "none":
        threads = max(usable_cores() // final.parallel, 1)  # a trial's share, unless its configuration sets threads
        for key, config in configs.items():
            if config.hardware.threads is None:
                tables[key] = {**tables[key], "hardware": {**tables[key].get("hardware", {}), "threads": threads}}
    for key, config in configs.items():
        problems += [each for each in of_sweep(final, space, tables[key], config) if each not in problems]
    if chosen.pruner != "none" and len(played) > 1:
        problems.append(Problem("sweep.pruner", "pruners compare returns, which differ by game; expected one game"))
    refuse(problems, str(path))
    folder = out or Path(chosen.out or Path("runs") / path.stem)
    sweep = Sweep(final, space, tables, configs, folder.absolute(), scales, others, trust)
    for trial in sweep.points:
        _, refused = attempt(tables[trial.label, trial.game], {**trial.values, SEED: trial.seed})
        problems += [problem for problem in refused if problem not in problems]
    refuse(problems, str(path))
    return sweep


def _scales(normalize: Mapping[str, Sequence[float]], games: Iterable[str], problems: list[Problem]) -> Scales:
    """Return the score scales of the games in `normalize`, and append invalid entries to `problems`."""
    scales, known = {}, sorted(games)
    for name, (low, high) in normalize.items():
        key = f"sweep.normalize.{name}"
        with collected(problems):
            title = registry.find(name).title
            if known and title not in known:
                problems.append(Problem(key, f"no trial plays it, expected one of {', '.join(known)}"))
            if low == high:
                problems.append(Problem(key, "expected two numbers that differ", [low, high]))
            scales[title] = (low, high)
    return scales


def _label(name: str) -> str:
    """Return the label of a configuration: its file's name without .toml or .json."""
    return Path(name).stem if Path(name).suffix in (".toml", ".json") else Path(name).name
