"""Points of a space: which values each trial has, and whether configurations accept them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from neuroevo.config.load import make_config
from neuroevo.config.schema import Config
from neuroevo.core.problems import ConfigError, Problem
from neuroevo.core.randomness import draw_seeds
from neuroevo.networks.network import Network
from neuroevo.sweeps.space import Space

SEED = "training.seed"
_TRIAL_SEEDS = 1000  # a purpose of random numbers that no run draws
_MOST_NETWORKS = 16  # in one pipeline
_ATTEMPTS = 100  # at values that a configuration accepts
_CONTEXTS = 16  # points whose other values a key's ends are tried with

Values = dict[str, Any]


def config_of(tables: Mapping[str, Any], values: Mapping[str, Any]) -> Config:
    """Makes the configuration of a trial.

    Args:
        tables: Those of the configuration that all trials share.
        values: Other values of its keys, such as {"algorithm.sigma": 0.01}.

    Returns:
        The configuration, checked.

    Raises:
        ConfigError: It has problems; all of them.
    """
    changed = copy.deepcopy(dict(tables))
    for key, value in values.items():
        *sections, name = key.split(".")
        table = changed
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError([Problem(key, "expected SECTION.KEY, a key of the configuration", value)])
        table[name] = value
    return make_config(changed)


def refused(tables: Mapping[str, Any], values: Mapping[str, Any]) -> list[Problem]:
    """Says why no trial can have these values.

    Args:
        tables: Those of the configuration that all trials share.
        values: Other values of its keys.

    Returns:
        The problems of the configuration; none where it is accepted.
    """
    try:
        config_of(tables, values)
    except ConfigError as error:
        return list(error.problems)
    return []


def trial_seed(seed: int, number: int) -> int:
    """Draws the seed of a trial.

    Args:
        seed: The sweep's.
        number: The trial's.

    Returns:
        Its training.seed, in [0, 2**63).
    """
    return draw_seeds(1, seed, number, _TRIAL_SEEDS)[0]


def probe(space: Space, tables: Mapping[str, Any], seed: int) -> list[Problem]:
    """Tries all values of a list and both ends of a range, one key at a time.

    Where the configuration refuses one, other keys of the space may be why: it is then tried with theirs from several
    points of the space, one of which has to accept it.

    Args:
        space: The space.
        tables: Those of the configuration that all trials share.
        seed: The sweep's.

    Returns:
        What is wrong with each value that is never accepted.
    """
    drawn = [draw(space, seed, number) for number in range(_CONTEXTS)] if len(space) > 1 else []
    problems: list[Problem] = []
    for key, values in space.items():
        for value in values.probes:
            first = refused(tables, {key: value})
            if first and all(refused(tables, {**others, key: value}) for others in drawn):
                problems += [problem for problem in first if problem not in problems]
    return problems


def draw(space: Space, seed: int, number: int, attempt: int = 0) -> Values:
    """Draws a point.

    Args:
        space: The space.
        seed: The sweep's.
        number: The trial's; each draws from numbers of its own, however many trials there are.
        attempt: How many times its values were refused.

    Returns:
        The values by key.
    """
    rng = np.random.default_rng([seed, number, attempt])
    return {key: values.draw(rng) for key, values in space.items()}


def draw_accepted(space: Space, tables: Mapping[str, Any], seed: int, number: int) -> Values:
    """Draws a point that the configuration accepts.

    Args:
        space: The space.
        tables: Those of the configuration that all trials share.
        seed: The sweep's.
        number: The trial's.

    Returns:
        The values by key.

    Raises:
        ConfigError: None was accepted in many attempts; the problems are the last one's.
    """
    problems: list[Problem] = []
    for attempt in range(_ATTEMPTS):
        values = draw(space, seed, number, attempt)
        problems = refused(tables, values)
        if not problems:
            return values
    raise ConfigError(problems, f"each of {_ATTEMPTS} points drawn for trial {number}")


def grid(space: Space) -> Iterator[Values]:
    """Lists every combination of the values of lists, the last key's first.

    Args:
        space: The space, without ranges.

    Yields:
        The values by key.
    """
    lists = [values.probes for values in space.values()]
    for combination in itertools.product(*lists):
        yield dict(zip(space, combination, strict=True))


def shared_networks(configs: Iterable[Config]) -> list[Network]:
    """List the networks of a sweep's trials, so that one pipeline can have them all.

    Args:
        configs: The trials' configurations, as far as they are known.

    Returns:
        The networks; none where they are too many.
    """
    networks = list(dict.fromkeys(config.network for config in configs))
    return networks if len(networks) <= _MOST_NETWORKS else []
