"""What a run begins with: nothing, or the best genomes of another run, training.start_from."""

from __future__ import annotations

from dataclasses import fields
from typing import NoReturn

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.problems import ConfigError, Problem, shown
from neuroevo.rollout import reference_batch
from neuroevo.runs.reader import RunReader
from neuroevo.training.state import TrainState, start


def first_state(config: Config, trust: bool = False) -> TrainState:
    """Makes the state before generation 0.

    Args:
        config: The run's configuration; another run to start from gives its best genomes and the statistics by which
            its networks' observations are normalized.
        trust: Whether to run code and read models that the other run names, whoever made it.

    Returns:
        The state.

    Raises:
        UserError: The run to start from cannot be used: there is none, none of its generations is finished, or it has
            another network.
    """
    path, ours = config.training.start_from, config.network
    if path is None:
        statistics = ObservationStatistics() if ours.normalize_observations else None
        return start(config.algorithm, config.training, observation_statistics=statistics)
    other = _other(path, config, trust)
    for field in fields(ours):
        here, there = getattr(ours, field.name), getattr(other.config.network, field.name)
        if field.name != "dtype" and here != there:  # another dtype plays the same genomes
            its = "network" if field.name == "name" else f"network's {field.name}"
            _refuse(path, f"its {its} is {shown(there)}, this run's is {shown(here)}")
    state = other.state()
    if state.generation == 0:
        _refuse(path, "it has no checkpoint after a finished generation yet")
    genomes = other.config.algorithm.best(state.algorithm)
    return start(config.algorithm, config.training, genomes, state.observation_statistics)


def first_reference(config: Config, trust: bool = False) -> np.ndarray | None:
    """Makes the reference batch that a run begins with.

    Args:
        config: The run's configuration; another run to start from gives its batch, which its genomes were selected
            with.
        trust: As first_state() takes it.

    Returns:
        The batch of observations [128, ...]; None if the network needs none.

    Raises:
        UserError: The run to start from cannot be used, or its batch cannot be read.
    """
    if config.training.start_from is not None:
        return _other(config.training.start_from, config, trust).reference_batch()
    if not config.network.needs_reference:
        return None
    return reference_batch.draw_reference_batch(config.environment.spec, config.training.seed)


def _other(path: str, config: Config, trust: bool) -> RunReader:
    """The run to start from. ConfigError: there is none."""
    try:
        return RunReader(path, trust=trust, like=config)
    except NotTrustedError:
        raise
    except UserError as error:
        _refuse(path, str(error))


def _refuse(path: str, reason: str) -> NoReturn:
    raise ConfigError([Problem("training.start_from", reason, path)]) from None
