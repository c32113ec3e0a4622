"""What a run begins with: nothing, or the best genomes of another run, training.start_from."""

from __future__ import annotations

from dataclasses import fields
from typing import NoReturn

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.problems import ConfigError, Problem, shown
from neuroevo.rollout.reference_batch import draw_reference_batch
from neuroevo.runs.reader import RunReader
from neuroevo.training.state import TrainState, start


def first_state(config: Config, trust: bool = False) -> tuple[TrainState, np.ndarray | None]:
    """Make the state before generation 0, and the reference batch of the run's network.

    Args:
        config: The run's configuration; another run to start from gives its best genomes, the statistics by which its
            networks' observations are normalized, and the reference batch that its genomes were selected with.
        trust: Whether to run code and read models that the other run names, whoever made it.

    Returns:
        The state, and observations [128, ...]; None where the network needs none.

    Raises:
        UserError: The run to start from cannot be used: it does not exist, has no finished generation, has
            another network, or its batch cannot be read.
    """
    path, ours, training = config.training.start_from, config.network, config.training
    if path is None:
        statistics = ObservationStatistics() if ours.normalize_observations else None
        batch = draw_reference_batch(config.environment.spec, training.seed) if ours.needs_reference else None
        return start(config.algorithm, training, observation_statistics=statistics), batch
    try:
        other = RunReader(path, trust=trust, like=config)
    except NotTrustedError:
        raise
    except UserError as error:
        _refuse(path, str(error))
    for field in fields(ours):
        here, there = getattr(ours, field.name), getattr(other.config.network, field.name)
        if field.name != "dtype" and here != there:  # another dtype plays the same genomes
            its = "network" if field.name == "name" else f"network's {field.name}"
            _refuse(path, f"its {its} is {shown(there)}, this run's is {shown(here)}")
    state = other.state()
    if state.generation == 0:
        _refuse(path, "it has no checkpoint after a finished generation yet")
    genomes = other.config.algorithm.best(state.algorithm)
    return start(config.algorithm, training, genomes, state.observation_statistics), other.reference_batch()


def _refuse(path: str, reason: str) -> NoReturn:
    raise ConfigError([Problem("training.start_from", reason, path)]) from None
