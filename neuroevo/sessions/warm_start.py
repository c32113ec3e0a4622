"""Initial state of a run: random genomes, or the best genomes of another run (training.start_from)."""

from __future__ import annotations

from dataclasses import fields
from typing import NoReturn

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.problems import ConfigError, Problem, shown
from neuroevo.runs.about import draw_reference
from neuroevo.runs.reader import RunReader
from neuroevo.training.state import TrainState, start


def first_state(config: Config, trust: bool = False) -> tuple[TrainState, np.ndarray | None]:
    """Make the state before generation 0, and the run's reference batch.

    Args:
        config: The run's configuration. A run in training.start_from provides its best genomes, the statistics for
            normalizing observations, and the reference batch with which its genomes were selected.
        trust: Allow external code and models referenced by the run in training.start_from.

    Returns:
        The state, and the reference batch [128, ...]; None if the run needs no reference batch.

    Raises:
        UserError: The run to start from cannot be used: it does not exist, has no finished generation, has
            another network, or its batch cannot be read.
    """
    path, ours, training = config.training.start_from, config.network, config.training
    if path is None:
        statistics = ObservationStatistics() if ours.normalize_observations else None
        return start(config.algorithm, training, observation_statistics=statistics), reference_of(config)
    try:
        other = RunReader(path, trust=trust, like=config)
    except NotTrustedError:
        raise
    except UserError as error:
        _refuse(path, str(error))
    for field in fields(ours):
        here, there = getattr(ours, field.name), getattr(other.config.network, field.name)
        if field.name != "dtype" and here != there:  # genomes are compatible with every dtype
            its = "network" if field.name == "name" else f"network's {field.name}"
            _refuse(path, f"its {its} is {shown(there)}, this run's is {shown(here)}")
    state = other.state()
    if state.generation == 0:
        _refuse(path, "it has no checkpoint after a finished generation yet")
    genomes = other.config.algorithm.best(state.algorithm)
    if config.algorithm.own_networks is None and any(isinstance(each.network, str) for each in genomes):
        _refuse(path, f"its genomes have their own networks, which {config.algorithm_name} does not support")
    return start(config.algorithm, training, genomes, state.observation_statistics), reference_of(config, other)


def reference_of(config: Config, other: RunReader | None = None) -> np.ndarray | None:
    """Return the reference batch of a new run: a copy of the source run's, if it has one, or a new batch.

    Args:
        config: The new run's configuration.
        other: The run from which the new run starts or is forked; None for other runs.

    Returns:
        Observations [128, ...]; None if the run needs no reference batch.
    """
    if not config.needs_reference:
        return None
    kept = None if other is None else other.reference_batch()
    return draw_reference(config) if kept is None else kept


def _refuse(path: str, reason: str) -> NoReturn:
    raise ConfigError([Problem("training.start_from", reason, path)]) from None
