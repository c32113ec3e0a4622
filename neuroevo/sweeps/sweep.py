"""A sweep: a table of training runs, each a trial. What its file says, checked before anything starts.

[sweep]
configs = ["frostbite_ga", "mine.toml"]   # presets and files, those beside this file first
games = ["frostbite", "kangaroo"]         # left out: each configuration's own
seeds = 3                                 # 0, 1 and 2; or a list such as [7, 8]
implementations = ["neuroevo", "mine:train"]  # left out, neuroevo; see implementations.py
set = ["training.total_steps=1e6"]        # changes to every configuration

or, to search values of keys for one configuration,

[sweep]
configs = "inverted_pendulum"
trials = 20
search = "tpe"                            # or "random", "cmaes", "qmc", "pbt"; left out, a grid
pruner = "asha"                           # or "hyperband", "median"; left out, none

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
"""Of each game, by what it is called in tables, the scores that count as 0 and as 1."""
_TRIAL_SEEDS = 1000  # a purpose of random numbers that no run draws


@dataclass(frozen=True)
class Trial:
    """A trial of a sweep: one training run.

    Attributes:
        number: From 0, in the order of their beginnings.
        label: The name of its configuration and, unless neuroevo trains it, of what does.
        game: What its environment is called in tables and folders.
        seed: Its training.seed.
        values: Those of the space's keys; under population-based training the newest ones.
        folder: Its run's, in the sweep's folder.
        status: "finished" at a budget of its configuration, "stopped" before by the pruner, "failed" with an error.
        reason: Of a failure: a line, and the last lines that its process has printed.
        stopped: After how many generations the pruner has ended it; None: it has not.
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
        """What the trial is called: its first folder."""
        return self.folder.partition("-fork-")[0]


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
        settings: What its file says, with a metric.
        space: The values that keys may have.
        tables: Those of each configuration, by label and game.
        configs: The same, checked.
        out: The sweep's folder, absolute.
        scales: Of the games in `normalize`.
        implementations: By label, "module:function" of configurations that neuroevo does not train itself.
        trust: Whether to trust what others have put there, or what a run's configuration names.
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
        """The column that is to be large."""
        return self.settings.metric or VALIDATION

    @cached_property
    def base(self) -> Config:
        """The first configuration; where values are searched, the only one."""
        return next(iter(self.configs.values()))

    @cached_property
    def points(self) -> tuple[Trial, ...]:
        """All trials of a grid; none where the search chooses them as it goes."""
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
        """How many trials there are."""
        return self.settings.trials or len(self.points)

    def trial(self, number: int, values: Values) -> Trial:
        """Make the trial that a search has chosen values for."""
        ((label, game),) = self.tables
        (drawn,) = draw_seeds(1, self.settings.seed, number, _TRIAL_SEEDS)
        own, seed = dict(values), self.base.training.seed if self.settings.seeds is None else drawn
        return Trial(number, label, game, own.pop(SEED, seed), own, f"trial-{number:05d}")

    def config(self, trial: Trial, generations: int | None = None) -> Config:
        """Make a trial's configuration. Of the budgets of population-based training, generations alone count.

        Args:
            trial: The trial.
            generations: How many it plays, instead of the configuration's own; None: these.
        """
        config = make_config(self.tables[trial.label, trial.game], {**trial.values, SEED: trial.seed})
        training = config.training
        if self.settings.search == "pbt":
            training = replace(training, total_steps=None, minutes=None, target=None)
        return replace(config, training=replace(training, generations=generations or training.generations))

    def value(self, row: Mapping[str, Any]) -> float:
        """Return the metric of a generation, or else its mean fitness; -inf if it has neither."""
        values = row.get(self.metric), row.get("fitness_mean"), -math.inf
        return next(value for value in values if value is not None)


def load_sweep(
    path: Path | str,
    overrides: Sequence[str] = (),
    out: Path | None = None,
    parallel: int | None = None,
    trust: bool = False,
) -> Sweep:
    """Read a sweep's file and check every trial's configuration, as far as it is known.

    Args:
        path: The file.
        overrides: Changes to every configuration, after the sweep's own.
        out: The sweep's folder, instead of its own.
        parallel: Number of trials in parallel, instead of its own.
        trust: Whether to trust what others have put into the folder, or what a run's configuration names.

    Returns:
        The sweep.

    Raises:
        ConfigError: The sweep or a configuration has problems; all of them.
        UserError: There is no such file, or it cannot be read.
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
        problems += [Problem(f"sweep.{axis}", f"there are {names.count(name)} called {name}") for name in many]
    # A game of Gymnasium's name may have other rules.
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
    if final.parallel > 1 and not final.shared and final.cluster == "none":
        threads = max(usable_cores() // final.parallel, 1)  # a trial's share, unless its configuration says how many
        for key, config in configs.items():
            if config.hardware.threads is None:
                tables[key] = {**tables[key], "hardware": {**tables[key].get("hardware", {}), "threads": threads}}
    for key, config in configs.items():
        problems += [each for each in of_sweep(final, space, tables[key], config) if each not in problems]
    if chosen.pruner != "none" and len(played) > 1:
        problems.append(Problem("sweep.pruner", "compares returns, which differ from game to game; expected one game"))
    refuse(problems, str(path))
    folder = out or Path(chosen.out or Path("runs") / path.stem)
    sweep = Sweep(final, space, tables, configs, folder.absolute(), scales, others, trust)
    for trial in sweep.points:
        _, refused = attempt(tables[trial.label, trial.game], {**trial.values, SEED: trial.seed})
        problems += [problem for problem in refused if problem not in problems]
    refuse(problems, str(path))
    return sweep


def _scales(normalize: Mapping[str, Sequence[float]], games: Iterable[str], problems: list[Problem]) -> Scales:
    """Return what counts as 0 and as 1 of each game that `normalize` names; add what is wrong to problems."""
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
    """Return what a configuration is called: its file's name without .toml or .json."""
    return Path(name).stem if Path(name).suffix in (".toml", ".json") else Path(name).name
