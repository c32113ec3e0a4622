"""The JSON files of Uber's 2018 code (its gpu_implementation/configurations), translated to sections and keys of ours.

What that code's genetic algorithm reads has a counterpart here: see KEYS, and selection_threshold = 0, which is random
search. Evolution strategies and batch normalisation have none in this version; its Gymnasium environments and its maze
have some, but their networks and settings are not translated. As there, timesteps are steps of the network (4 frames
on Atari) in population and validation episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroevo.errors import did_you_mean, nearest
from neuroevo.toml_text import inline

KEYS = {  # theirs -> ours
    "game": "env.name",
    "model": "network.name",
    "population_size": "algorithm.population",
    "selection_threshold": "algorithm.parents",
    "mutation_power": "algorithm.sigma",
    "validation_threshold": "algorithm.validated",
    "num_validation_episodes": "training.validation_episodes",
    "num_test_episodes": "training.test_episodes",
    "episode_cutoff_mode": "training.cutoff",
    "timesteps": "training.timesteps",
    "load_population": "training.start_from",
}
_EVOLUTION_STRATEGIES_KEYS = ("optimizer", "return_proc_mode", "l2coeff", "load_from")
_ELSEWHERE = "expected an Atari game in a file of the 2018 code; in a TOML file this is env.name = "
_NETWORKS = {"Model": "model", "LargeModel": "large_model"}
_OTHER_NETWORKS = ("ModelBN", "ModelVirtualBN", "SmallDQN", "LargeDQN", "LinearClassifier", "SimpleClassifier")
_PICKLES = (".pkl", ".pickle", ".p")


@dataclass(frozen=True)
class Translation:
    """A 2018 file in our terms. names: its key for each of ours. problems: lines about what it alone can say."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def translate(values: Mapping[str, Any]) -> Translation:
    """Our tables from the JSON object's.

    Values that are the same on both sides are not checked here but with our own configuration.
    """
    of = Translation(names={ours: theirs for theirs, ours in KEYS.items()})
    values = _known_keys(values, of.problems)
    if values.get("selection_threshold") == 0 and values["selection_threshold"] is not False:
        of.tables["algorithm"] = {"name": "random_search"}
        values = {key: value for key, value in values.items() if key not in ("selection_threshold", "mutation_power")}
    for key, value in values.items():
        section, ours = KEYS[key].split(".")
        problem = _CHECKS[key](value) if key in _CHECKS and isinstance(value, str) else None
        if problem is not None:
            of.problems.append(f"{key} = {inline(value)}: {problem}")
        if key == "model" and isinstance(value, str):
            value = _NETWORKS.get(value, value)
        of.tables.setdefault(section, {})[ours] = value
    return of


def _known_keys(values: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The values whose keys have a counterpart; a misspelt key counts as what was probably meant."""
    strategies = [key for key in values if key in _EVOLUTION_STRATEGIES_KEYS]
    if strategies:
        problems.append(
            f"{', '.join(strategies)}: of evolution strategies, which this version does not have; expected the "
            "genetic algorithm (selection_threshold of at least 1) or random search (selection_threshold = 0)"
        )
    known = {key: value for key, value in values.items() if key in KEYS}
    for key, value in values.items():
        if key in KEYS or key in strategies:
            continue
        near = nearest(key, KEYS)
        hint = f"; did you mean {near}?" if near else ""
        problems.append(f"{key} = {inline(value)}: there is no such key{hint} (keys: {', '.join(KEYS)})")
        if near:
            known.setdefault(near, value)
    return known


def _game_problem(game: str) -> str | None:
    if game.startswith("gym."):
        return _ELSEWHERE + inline(f"gymnasium:{game.removeprefix('gym.')}")
    if game == "maze":
        return _ELSEWHERE + '"HardMaze-v0"'
    return None


def _network_problem(model: str) -> str | None:
    expected = f"expected one of {', '.join(_NETWORKS)}"
    if model in _OTHER_NETWORKS:
        return f"this version does not have that network; {expected}"
    return None if model in _NETWORKS else f"{expected}{did_you_mean(model, _NETWORKS)}"


def _population_problem(path: str) -> str | None:
    if Path(path).suffix in _PICKLES or Path(path).is_file():
        return (
            "a population of the 2018 code cannot be loaded: its seeds index that code's noise table, "
            "so its weights cannot be made here; expected the folder of a run of neuroevo"
        )
    return None


_CHECKS = {"game": _game_problem, "model": _network_problem, "load_population": _population_problem}
