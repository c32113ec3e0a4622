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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import key_of, read
from neuroevo.core.problems import ConfigError, Problem, refuse
from neuroevo.envs import registry
from neuroevo.sweeps import checks
from neuroevo.sweeps.points import SEED, Values, config_of, draw_accepted, grid, refused, trial_seed
from neuroevo.sweeps.section import beside, collected, folder_of, read_section, values_of
from neuroevo.sweeps.settings import MAX_TRIALS, NEUROEVO, VALIDATION, SweepSettings
from neuroevo.sweeps.space import Space, parse_space
from neuroevo.system.processes import usable_cores

Status = Literal["waiting", "running", "finished", "stopped", "failed"]
Scales = Mapping[str, tuple[float, float]]
"""Of each game, by what it is called in tables, the scores that count as 0 and as 1."""


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
        reason: Of a failure, in a line.
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
        tables: Those of each configuration's, by label and game.
        configs: The same, checked.
        points: All trials; none where the search chooses them as it goes.
        trials: How many there are.
        out: The sweep's folder, absolute.
        scales: Of the games in `normalize`.
        implementations: By label, "module:function" of configurations that neuroevo does not train itself.
        trust: Whether to trust what others have put there, or what a run's configuration names.
    """

    settings: SweepSettings
    space: Space
    tables: Mapping[tuple[str, str], Mapping[str, Any]]
    configs: Mapping[tuple[str, str], Config]
    points: tuple[Trial, ...]
    trials: int
    out: Path
    scales: Scales
    implementations: Mapping[str, str] = field(default_factory=dict)
    trust: bool = False

    @property
    def metric(self) -> str:
        """The column that is to be large."""
        return self.settings.metric or VALIDATION

    @cached_property
    def base(self) -> Config:
        """The first configuration; where values are searched, the only one."""
        return next(iter(self.configs.values()))

    def config(self, trial: Trial, generations: int | None = None) -> Config:
        """Make a trial's configuration. Of the budgets of population-based training, generations alone count.

        Args:
            trial: The trial.
            generations: How many it plays, instead of the configuration's own; None: these.
        """
        config = config_of(self.tables[trial.label, trial.game], {**trial.values, SEED: trial.seed})
        if self.settings.search == "pbt":
            config = replace(config, training=replace(config.training, total_steps=None, minutes=None, target=None))
        if generations is None:
            return config
        return replace(config, training=replace(config.training, generations=generations))

    def trial(self, number: int, values: Values) -> Trial:
        """Make the trial that a search has chosen values for."""
        ((label, game),) = self.tables
        seed = self.base.training.seed if self.settings.seeds is None else trial_seed(self.settings.seed, number)
        own = dict(values)
        return Trial(number, label, game, own.pop(SEED, seed), own, f"trial-{number:05d}")


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
    chosen = read_section(path, "sweep", SweepSettings)
    changes = [*chosen.set, *overrides]
    changed = set(map(key_of, changes))
    space, problems = parse_space(chosen.space)
    problems += checks.of_settings(chosen, space, changed)
    games, titles = _games(chosen, problems)
    problems += _repeated("configs", map(_label, chosen.configs)) + _repeated("games", titles)
    problems += _repeated("implementations", map(_function, chosen.implementations))
    count = len(chosen.configs) * len(games) * len(chosen.implementations) * len(chosen.seeds or [0])
    count *= _combinations(chosen, space)
    if count > MAX_TRIALS:
        reason = (
            f"configs, games, implementations, seeds and space make {count:,} trials, expected at most {MAX_TRIALS:,}"
        )
        refuse([*problems, Problem("sweep", reason)], str(path))
    tables, configs, others = {}, {}, {}
    for game in games:
        fixed = [*changes, *([f"env.name={json.dumps(game)}"] if game else [])]
        for name in chosen.configs:
            source = beside(name, path.parent)
            with collected(problems):
                config, table = load_config(source, fixed, trust=trust), dict(read(source, fixed).tables)
                for implementation in chosen.implementations:
                    label = _label(name)
                    if implementation != NEUROEVO:
                        label = f"{label}-{_function(implementation)}"
                        others[label] = implementation
                    key = label, config.environment.title
                    tables[key], configs[key] = table, config
    scales = _scales(chosen.normalize, {game for _, game in configs}, problems)
    if not configs:
        raise ConfigError(problems, str(path))
    trials = count if chosen.search == "grid" else chosen.trials or 1
    at_a_time = min(parallel or chosen.parallel, trials)
    base = next(iter(configs.values()))
    final = SweepSettings(
        **{
            **values_of(chosen),
            "metric": chosen.metric or checks.default_metric(base),
            "parallel": at_a_time,
            "seeds": None if SEED in changed else chosen.seeds or [0],
        }
    )
    if not final.shared and final.cluster == "none":
        tables = {key: _with_threads(table, configs[key], at_a_time) for key, table in tables.items()}
    for key, config in configs.items():
        problems += [each for each in checks.of_sweep(final, space, tables[key], config) if each not in problems]
    if chosen.pruner != "none" and len({game for _, game in configs}) > 1:
        problems.append(Problem("sweep.pruner", "compares returns, which differ from game to game; expected one game"))
    refuse(problems, str(path))
    folder = folder_of(path, chosen.out, out).absolute()
    sweep = Sweep(final, space, tables, configs, (), trials, folder, scales, others, trust)
    try:
        return replace(sweep, points=tuple(_points(sweep)))
    except ConfigError as error:
        raise ConfigError(error.problems, error.source or str(path)) from None


def _points(sweep: Sweep) -> Iterable[Trial]:
    """Make the trials that are known before the sweep begins. ConfigError: a configuration refuses some."""
    chosen = sweep.settings
    if chosen.search in ("random", "pbt"):
        ((key, tables),) = sweep.tables.items()
        for number in range(sweep.trials):
            yield sweep.trial(number, draw_accepted(sweep.space, tables, chosen.seed, number))
        return
    if chosen.search != "grid":
        return
    problems: list[Problem] = []
    trials: list[Trial] = []
    seeds: Sequence[int | None] = chosen.seeds or [None]  # None: the configurations' own
    for seed in seeds:
        for (label, game), config in sweep.configs.items():
            for place, values in enumerate(grid(sweep.space)):
                own = dict(values)
                is_seed = own.pop(SEED, config.training.seed if seed is None else seed)
                point = f"point-{place:05d}/" if sweep.space else ""
                folder = f"{label}/{game}/{point}seed-{is_seed}"
                trial = Trial(len(trials), label, game, is_seed, own, folder)
                found = refused(sweep.tables[label, game], {**own, SEED: is_seed})
                problems += [problem for problem in found if problem not in problems]
                trials.append(trial)
    refuse(problems)
    yield from trials


def _games(chosen: SweepSettings, problems: list[Problem]) -> tuple[list[str | None], list[str]]:
    """Return the games' names, [None] for the configurations' own, and their titles; add what is wrong to problems."""
    games: list[str | None] = []
    titles: list[str] = []
    for name in chosen.games or []:
        with collected(problems):
            found = registry.find(name)
            games.append(found.name if found.title == found.name else found.given_name)  # which may have rules
            titles.append(found.title)
    return games if chosen.games else [None], titles


def _combinations(chosen: SweepSettings, space: Space) -> int:
    return math.prod(len(values.probes) for values in space.values()) if chosen.search == "grid" else 1


def _scales(normalize: Mapping[str, Sequence[float]], games: Iterable[str], problems: list[Problem]) -> Scales:
    """Return what counts as 0 and as 1 of each game that `normalize` names; add what is wrong to problems."""
    scales, known = {}, sorted(set(games))
    for name, (low, high) in normalize.items():
        key = f"sweep.normalize.{name}"
        with collected(problems):
            title = registry.find(name).title
            if known and title not in known:
                problems.append(Problem(key, f"no trial plays it, expected one of {', '.join(known)}"))
            if not (math.isfinite(low) and math.isfinite(high) and low != high):
                problems.append(Problem(key, "expected two finite numbers that differ", [low, high]))
            scales[title] = (low, high)
    return scales


def _repeated(key: str, names: Iterable[str]) -> list[Problem]:
    """Return a problem for each name that is there more than once, and would share its trials' folders."""
    names = list(names)
    many = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [Problem(f"sweep.{key}", f"there are {names.count(name)} called {name}") for name in many]


def _label(name: str) -> str:
    """Return what a configuration is called: its file's name without .toml or .json."""
    return Path(name).stem if Path(name).suffix in (".toml", ".json") else Path(name).name


def _function(implementation: str) -> str:
    """Return what an implementation is called: its function's name."""
    return implementation.rpartition(":")[2]


def _with_threads(tables: dict[str, Any], config: Config, parallel: int) -> dict[str, Any]:
    """Return the tables with a trial's share of this machine's threads, unless they say how many."""
    if parallel == 1 or config.hardware.threads is not None:
        return tables
    return {**tables, "hardware": {**tables.get("hardware", {}), "threads": max(usable_cores() // parallel, 1)}}
