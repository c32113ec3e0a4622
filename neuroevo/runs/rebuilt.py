"""Recompute an algorithm's state before any generation from what the members of earlier ones achieved.

That takes no episodes, since run.db keeps fitness, steps and behaviors of all members, and the seeds of their noise
follow from the run's. So the center of evolution strategies, whose weights only states hold, is known in every
generation; its name, which is a hash of its weights, says whether it is the same.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

import numpy as np

from neuroevo.algorithms.base import Played, State
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.runs.members import MembersReader

if TYPE_CHECKING:
    from neuroevo.runs.reader import RunReader

log = logging.getLogger("neuroevo")


def state_before(reader: RunReader, generation: int) -> State:
    """Return the state of a run's algorithm before a generation.

    Args:
        reader: The run.
        generation: The number of finished generations.

    Returns:
        The state, from the newest stored one up to there, after the generations since.

    Raises:
        UserError: There is no such state and no start to begin with, the members of a generation are not kept, or the
            algorithm's state depends on validation episodes, which are not.
    """
    path, config = reader.path, reader.config
    number, state = _begin(reader, generation)
    if number == generation:
        return state
    algorithm, members, weights = config.algorithm, MembersReader(path), weights_of(config)
    log.warning("neuroevo: generations %d to %d of %s are told anew", number, generation - 1, path)
    for each in range(number, generation):
        kept = members.read(each)
        try:
            genomes = algorithm.ask(state, weights)
            seeds = [genome.root if genome.mutation is None else genome.mutation.seed for genome in genomes]
            if not np.array_equal(seeds, kept.seeds):
                raise ValueError("it asks for other members than it did")
            behaviors = kept.played_behaviors if algorithm.behavior is not None else None
            state = algorithm.tell(state, Played(genomes, kept.fitness, int(kept.steps.sum()), behaviors), weights)
            if algorithm.candidates(state):
                raise ValueError("its state depends on validation episodes, which are not kept")
            state = algorithm.tell_validation(state, Played([], np.zeros(0)))
        except ValueError as error:
            raise UserError(
                f"the state of {config.algorithm_name} after generation {each} of {path} is not known: {error}"
            ) from error
    return state


def _begin(reader: RunReader, generation: int) -> tuple[int, State]:
    """Return the number of the newest usable state, up to this, and the algorithm's; or the run's start."""
    for number in reversed(reader.checkpoints()):
        if number <= generation:
            try:
                return number, reader.state(number).algorithm
            except UserError:
                continue
    training = reader.config.training
    if training.start_from is not None:
        raise UserError(
            f"the run in {reader.path} began with genomes of another run and has no state up to generation {generation}"
        )
    return 0, reader.config.algorithm.init(training.seed)


def weights_of(config: Config) -> Weights:
    """Return what makes the weights of a configuration's genomes.

    Args:
        config: The configuration; its sections [env] and [network] count.

    Raises:
        UserError: The environment lacks something that it needs.
    """
    if config.environment.accelerated:
        from neuroevo.accelerated.start import make_evaluator

        with make_evaluator(config.environment, config.network, config.hardware.device) as evaluator:
            return evaluator.weights
    pool = EnvPool(config.environment.spec, 1)
    layers = functools.partial(config.network.lines, continuous_actions=pool.action_dtype == np.float32)
    shown = pool.observation_dtype.name, pool.observation_shape
    return NativeWeights([network_text(layers, *shown, pool.num_actions)])
