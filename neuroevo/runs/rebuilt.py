"""Recompute an algorithm's state before any generation from what the members of earlier ones achieved.

That takes no episodes, since run.db keeps fitness, steps and behaviors of all members, and the seeds of their noise
follow from the run's. So the center of evolution strategies, whose weights only states hold, is known in every
generation; its name, which is a hash of its weights, says whether it is the same.
"""

from __future__ import annotations

import functools
import logging
from pathlib import Path

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation, State
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.runs.members import MembersReader

log = logging.getLogger("neuroevo")


def state_after(config: Config, weights: Weights, state: State, path: Path, first: int, end: int) -> State:
    """Return the state of a run's algorithm after generations whose members are kept.

    Args:
        config: The run's configuration.
        weights: The weights of its genomes.
        state: The state before them.
        path: The run's folder.
        first: The first of the generations, of which there is at least one.
        end: The one after the last.

    Raises:
        UserError: The members of a generation are not kept, or the algorithm's state depends on validation episodes,
            which are not.
    """
    algorithm, members = config.algorithm, MembersReader(path)
    log.warning("neuroevo: the state after generations %d to %d of %s is computed again", first, end - 1, path)
    for each in range(first, end):
        kept = members.read(each)
        try:
            genomes = algorithm.ask(state, weights)
            seeds = [genome.root if genome.mutation is None else genome.mutation.seed for genome in genomes]
            if not np.array_equal(seeds, kept.seeds):
                raise ValueError("it asks for other members than it did")
            behaviors = kept.played_behaviors if algorithm.behavior is not None else None
            state = algorithm.tell(
                state, EvaluatedPopulation(genomes, kept.fitness, int(kept.steps.sum()), behaviors), weights
            )
            if algorithm.candidates(state):
                raise ValueError("its state depends on validation episodes, which are not kept")
            state = algorithm.tell_validation(state, EvaluatedPopulation([], np.zeros(0)))
        except ValueError as error:
            raise UserError(
                f"the state of {config.algorithm_name} after generation {each} of {path} is not known: {error}"
            ) from error
    return state


def weights_of(config: Config, reference_batch: np.ndarray | None = None) -> Weights:
    """Return what makes the weights of a configuration's genomes.

    Args:
        config: The configuration; its sections [env] and [network] count.
        reference_batch: The run's; None if it has none.

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
    return NativeWeights([network_text(layers, *shown, pool.num_actions)], reference_batch=reference_batch)
