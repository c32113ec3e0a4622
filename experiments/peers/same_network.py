"""The package's mlp for libraries that make networks with Flax: initial weights of the same law."""

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
    """The network as the package's own configurations name it."""
    return Network("mlp", hidden=experiment.hidden, normalize_observations=experiment.normalize_observations)


def kernel_initializer(experiment: Experiment, observation_size: int, action_size: int) -> Callable[..., jax.Array]:
    """Makes Flax's initializer of all kernels.

    Args:
        experiment: What is evolved.
        observation_size: n.
        action_size: A.

    Returns:
        A function of key, shape and dtype that draws normal weights with the deviation of the layer of that shape.
    """
    text = network_of(experiment).vector_text(observation_size, action_size)
    theta = np.zeros(NativeWeights([text]).dimension(0), np.float32)
    layers = unpack_weights(text, theta).layers
    deviations = {layer.kernel.shape: layer.deviation for layer in layers if layer.kernel is not None}

    def draw(key: Any, shape: Sequence[int], dtype: Any = np.float32) -> jax.Array:
        return jax.random.normal(key, shape, dtype) * deviations[tuple(shape)]

    return draw
