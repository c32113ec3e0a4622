"""What a run begins with: nothing, or the best genomes of another run, training.start_from."""

from __future__ import annotations

from dataclasses import fields
from typing import NoReturn

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.problems import ConfigError, Problem, said
from neuroevo.rollout import reference_batch
from neuroevo.runs.reader import RunReader
from neuroevo.training.loop import TrainState, start


def first_state(config: Config) -> TrainState:
    """The state before generation 0 of a configuration's run.

    From another run come its best genomes, and what its networks' observations are normalized by.

    Raises:
        ConfigError: There is no such run, none of its generations is finished, or its network is another one.
    """
    path, ours = config.training.start_from, config.network
    if path is None:
        moments = ObservationStatistics() if ours.normalize_observations else None
        return start(config.algorithm, config.training, moments=moments)
    other = _other(path)
    for field in fields(ours):
        here, there = getattr(ours, field.name), getattr(other.config.network, field.name)
        if field.name != "dtype" and here != there:  # another dtype plays the same genomes
            its = "network" if field.name == "name" else f"network's {field.name}"
            _refuse(path, f"its {its} is {said(there)}, this run's is {said(here)}")
    state = other.state()
    if state.generation == 0:
        _refuse(path, "it has no checkpoint after a finished generation yet")
    return start(config.algorithm, config.training, other.config.algorithm.best(state.algorithm), state.moments)


def first_reference(config: Config) -> np.ndarray | None:
    """The reference batch of a configuration's run; see rollout/reference_batch.py.

    With another run's genomes comes its batch: they are what they are with its statistics.

    Returns:
        Observations, uint8 or float32 [128, ...]; None where the network needs none.

    Raises:
        UserError: There is no such run, or its batch cannot be read.
    """
    if config.training.start_from is not None:
        return _other(config.training.start_from).reference_batch()
    if not config.network.needs_reference:
        return None
    return reference_batch.draw_reference_batch(config.environment.spec, config.training.seed)


def _other(path: str) -> RunReader:
    """The run to start from. ConfigError: there is none."""
    try:
        return RunReader(path)
    except UserError as error:
        _refuse(path, str(error))


def _refuse(path: str, reason: str) -> NoReturn:
    raise ConfigError([Problem("training.start_from", reason, path)]) from None
