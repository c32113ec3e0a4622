"""What makes the weights of a run's genomes where nothing is played."""

from __future__ import annotations

import functools

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.evaluator import Weights
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text


def weights_of(config: Config) -> Weights:
    """What makes the weights of a configuration's genomes.

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
