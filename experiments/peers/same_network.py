"""neuroevo's mlp for libraries based on Flax: the same distribution of initial weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from experiments.peers.experiment import Experiment
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import unpack_weights
from neuroevo.networks.network import Network


def network_of(experiment: Experiment) -> Network:
    """Return the network as in neuroevo's configurations."""
    return Network("mlp", hidden=experiment.hidden, normalize_observations=experiment.normalize_observations)


def kernel_initializer(experiment: Experiment, observation_size: int, action_size: int) -> Callable[..., jax.Array]:
    """Return a Flax initializer for all kernels.

    Args:
        experiment: The experiment.
        observation_size: Number of values of an observation, n.
        action_size: Number of values of an action, A.

    Returns:
        A function of key, shape and dtype that draws normal weights with the standard deviation of that shape's layer.
    """
    text = network_of(experiment).vector_text(observation_size, action_size)
    theta = np.zeros(NativeWeights([text]).dimension(0), np.float32)
    layers = unpack_weights(text, theta).layers
    deviations = {layer.kernel.shape: layer.deviation for layer in layers if layer.kernel is not None}

    def draw(key: Any, shape: Sequence[int], dtype: Any = np.float32) -> jax.Array:
        return jax.random.normal(key, shape, dtype) * deviations[tuple(shape)]

    return draw
