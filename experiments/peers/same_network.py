"""neuroevo's mlp for libraries based on Flax: the same distribution of initial weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from experiments.peers.experiment import Experiment
from neuroevo.networks.layers import walk
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
    deviations = {}
    for (kind, *words), (size, *_), (units, *_) in walk(text):
        if kind == "dense":
            deviations[size, units] = np.float32(float(words[1]) / math.sqrt(size))

    def draw(key: Any, shape: Sequence[int], dtype: Any = np.float32) -> jax.Array:
        return jax.random.normal(key, shape, dtype) * deviations[tuple(shape)]

    return draw
