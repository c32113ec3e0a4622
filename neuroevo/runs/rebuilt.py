"""Recompute an algorithm's state at any generation from the stored results of earlier generations.

No episodes are played: run.db stores the fitness, steps and behaviors of all members, and the seeds of their noise are
derived from the run's seed. This recovers, for every generation, the center of evolution strategies, whose weights only
states contain. The center's name is a hash of its weights and verifies the result.
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
    """Recompute the state of a run's algorithm after generations whose members are stored.

    Args:
        config: The run's configuration.
        weights: Weights of the run's genomes.
        state: The state before generation `first`.
        path: The run folder.
        first: First generation to recompute.
        end: One past the last generation, greater than `first`.

    Raises:
        UserError: The members of a generation are not stored, or the algorithm's state depends on validation episodes,
            which are not stored.
    """
    algorithm, members = config.algorithm, MembersReader(path)
    log.warning("neuroevo: recomputing the state from generations %d to %d of %s", first, end - 1, path)
    for each in range(first, end):
        kept = members.read(each)
        try:
            genomes = algorithm.ask(state, weights)
            seeds = [genome.root if genome.mutation is None else genome.mutation.seed for genome in genomes]
            if not np.array_equal(seeds, kept.seeds):
                raise ValueError("ask() returned other members than the stored ones")
            behaviors = kept.played_behaviors if algorithm.behavior is not None else None
            state = algorithm.tell(
                state, EvaluatedPopulation(genomes, kept.fitness, int(kept.steps.sum()), behaviors), weights
            )
            if algorithm.candidates(state):
                raise ValueError("the state depends on validation episodes, which are not stored")
            state = algorithm.tell_validation(state, EvaluatedPopulation([], np.zeros(0)))
        except ValueError as error:
            raise UserError(
                f"cannot recompute the state of {config.algorithm_name} after generation {each} of {path}: {error}"
            ) from error
    return state


def weights_of(config: Config, reference_batch: np.ndarray | None = None) -> Weights:
    """Return the object that computes the weights of a configuration's genomes.

    Args:
        config: The configuration, of which the sections [env] and [network] are used.
        reference_batch: Reference batch of the run; None if the network needs none.

    Raises:
        UserError: A resource of the environment is missing, such as a ROM.
    """
    if config.environment.accelerated:
        from neuroevo.accelerated.start import make_evaluator

        with make_evaluator(config.environment, config.network, config.hardware.device) as evaluator:
            return evaluator.weights
    pool = EnvPool(config.environment.spec, 1)
    layers = functools.partial(config.network.lines, continuous_actions=pool.action_dtype == np.float32)
    shown = pool.observation_dtype.name, pool.observation_shape
    return NativeWeights([network_text(layers, *shown, pool.num_actions)], reference_batch=reference_batch)
