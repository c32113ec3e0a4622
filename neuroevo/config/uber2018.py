"""Translate the JSON files of Uber's 2018 code (its gpu_implementation/configurations) to our sections and keys.

KEYS are those of its genetic algorithm, of random search (selection_threshold = 0), and of its evolution strategies,
whose files have an optimizer, return_proc_mode, l2coeff or load_from. A game gym.X is Gymnasium's X. Its other networks
have no counterpart here; its maze has a counterpart, but interprets the networks' outputs differently. In both
codes, timesteps (total_steps here) are steps of the network (4 frames on Atari) in population and validation episodes.

The files of the 2018 code for clusters (configurations) have other keys, which count differently, and are not
translated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from neuroevo.core.problems import Problem, did_you_mean, nearest

KEYS = {  # theirs -> ours
    "game": "env.name",
    "model": "network.name",
    "population_size": "algorithm.population",
    "selection_threshold": "algorithm.parents",
    "mutation_power": "algorithm.sigma",
    "validation_threshold": "algorithm.validation_candidates",
    "num_validation_episodes": "training.validation_episodes",
    "num_test_episodes": "training.test_episodes",
    "episode_cutoff_mode": "training.max_episode_steps",
    "timesteps": "training.total_steps",
    "load_population": "training.start_from",
    "l2coeff": "algorithm.weight_decay",
    "optimizer": "algorithm.optimizer",
    "load_from": "training.start_from",
}
_GENETIC_KEYS = ("selection_threshold", "validation_threshold", "load_population")
_RANKS_KEY = "return_proc_mode"  # not configurable here
_STRATEGIES_KEYS = (_RANKS_KEY, "l2coeff", "optimizer", "load_from")
_ALL_KEYS = (*KEYS, _RANKS_KEY)
_GYM = "gym."  # before the name of an environment of Gymnasium
_NETWORKS: dict[str, dict[str, Any]] = {  # theirs -> our [network]
    "Model": {"name": "model"},
    "LargeModel": {"name": "large_model"},
    "ModelVirtualBN": {"name": "virtual_bn"},
    "SimpleClassifier": {"name": "mlp", "hidden": [16, 16], "activation": "relu"},
}
_OTHER_NETWORKS = ("ModelBN", "SmallDQN", "LargeDQN", "LinearClassifier")
_PICKLES = (".pkl", ".pickle", ".p")
_STEPSIZE = "stepsize"  # the optimizer's learning rate
_RANKS = "centered_rank"
_SIGN_MODES = ("sign", "centered_sign_rank")  # of the 2018 code for clusters


@dataclass(frozen=True)
class Translation:
    """A translated file of the 2018 code.

    Attributes:
        tables: Our sections by name.
        names: The file's key for each of our keys that has a counterpart.
        problems: Problems found in the translation, under the file's own keys.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def translate(values: Mapping[str, Any]) -> Translation:
    """Translate the content of a JSON file to our tables.

    Values that need no translation are checked later, with the resulting configuration.

    Args:
        values: The file's keys and values.
    """
    of = Translation()
    values = _known_keys(values, of.problems)
    of.names[f"{KEYS['optimizer']}.learning_rate"] = f"optimizer.{_STEPSIZE}"  # before its prefix
    of.names.update({KEYS[key]: key for key in (*KEYS, *values) if key in KEYS})  # the file's own keys take precedence
    if any(key in _STRATEGIES_KEYS for key in values):
        of.tables["algorithm"] = {"name": "es"}
        values = _strategies(values, of.problems)
    elif values.get("selection_threshold") == 0 and values["selection_threshold"] is not False:
        of.tables["algorithm"] = {"name": "random_search"}
        values = {key: value for key, value in values.items() if key not in ("selection_threshold", "mutation_power")}
    for key, value in values.items():
        section, ours = KEYS[key].split(".")
        problem = _CHECKS[key](value) if key in _CHECKS and isinstance(value, str) else None
        if problem is not None:
            of.problems.append(Problem(key, problem, value))
        table = of.tables.setdefault(section, {})
        if key == "model" and isinstance(value, str):
            table.update(_NETWORKS.get(value, {ours: value}))
        elif key == "game" and isinstance(value, str) and value.startswith(_GYM):
            table[ours] = f"gymnasium:{value.removeprefix(_GYM)}"
        else:
            table[ours] = value
    return of


def _known_keys(values: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the values whose keys are known; a misspelt key is replaced by the closest known key."""
    known = {key: value for key, value in values.items() if key in _ALL_KEYS}
    for key, value in values.items():
        if key in _ALL_KEYS:
            continue
        near = nearest(key, _ALL_KEYS)
        hint = f"; did you mean {near}?" if near else ""
        problems.append(Problem(key, f"there is no such key{hint} (keys: {', '.join(_ALL_KEYS)})", value))
        if near:
            known.setdefault(near, value)
    return known


def _strategies(values: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Return the values of an evolution strategies file that have a counterpart, with our optimizer table."""
    own = [key for key in values if key in _STRATEGIES_KEYS]
    for key in [key for key in values if key in _GENETIC_KEYS]:
        reason = (
            f"a key of the genetic algorithm in a file with keys of evolution strategies ({', '.join(own)}); expected "
            "the keys of one algorithm"
        )
        problems.append(Problem(key, reason, values[key]))
    kept = {key: value for key, value in values.items() if key not in (*_GENETIC_KEYS, _RANKS_KEY)}
    mode = values.get(_RANKS_KEY, _RANKS)
    if mode != _RANKS:
        signs = "signs of rewards are not supported; " if mode in _SIGN_MODES else ""
        problems.append(Problem(_RANKS_KEY, f'{signs}expected "{_RANKS}"', mode))
    if isinstance(optimizer := kept.get("optimizer"), Mapping) and isinstance(optimizer.get("args"), Mapping):
        rest = {key: value for key, value in optimizer.items() if key != "args"}
        kept["optimizer"] = {**optimizer["args"], **rest}
    if isinstance(optimizer := kept.get("optimizer"), Mapping):
        kept["optimizer"] = {"learning_rate" if key == _STEPSIZE else key: value for key, value in optimizer.items()}
    return kept


def _game_problem(game: str) -> str | None:
    if game != "maze":
        return None
    return (
        "expected an Atari game, or gym. and the name of an environment; in a TOML file this is "
        'env.name = "HardMaze-v0" with env.options.protocol = "uber", which interprets the network outputs differently'
    )


def _network_problem(model: str) -> str | None:
    expected = f"expected one of {', '.join(_NETWORKS)}"
    if model in _OTHER_NETWORKS:
        return f"this network is not supported; {expected}"
    return None if model in _NETWORKS else f"{expected}{did_you_mean(model, _NETWORKS)}"


def _saved_problem(what: str, path: str) -> str | None:
    if Path(path).suffix in _PICKLES or os.path.isfile(path):
        return (
            f"{what} of the 2018 code cannot be loaded: its seeds index that code's noise table, "
            "so its weights cannot be restored here; expected the folder of a neuroevo run"
        )
    return None


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "game": _game_problem,
    "model": _network_problem,
    "load_population": partial(_saved_problem, "a population"),
    "load_from": partial(_saved_problem, "a genome"),
}
