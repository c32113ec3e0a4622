"""An elite as a function from observations to actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from neuroevo.analysis.exported_network import Exported, elite_network
from neuroevo.analysis.replay import Replay
from neuroevo.config.schema import Config
from neuroevo.native.population import Population
from neuroevo.runs.reader import Elite


class Policy:
    """Policy of an elite: `policy(observation)` returns the action that the elite would take in the run.

    The policy normalizes observations, keeps the state of recurrent networks, and scales outputs to the bounds of
    actions. Actions are bit-identical to the run's, in the run's dtype. If JAX evaluated the networks, for a simulator
    on the accelerator, outputs differ from the run's by rounding.

    Args:
        config: The run's configuration.
        elite: The genome, and the normalizer of its observations, if any.
        reference_batch: The run's observations [B, ...] from which vbn layers compute their statistics; None if the
            network has no such layers.

    Attributes:
        observation_shape: Shape of an observation.
        observation_dtype: Dtype of the environment's observations.
        discrete: Whether an action is an index rather than a vector.
    """

    def __init__(self, config: Config, elite: Elite, reference_batch: np.ndarray | None = None):
        self._normalizer = elite.normalizer
        self._actions: Callable[[np.ndarray], np.ndarray]
        if config.environment.accelerated:
            network = elite_network(config, elite, 0)
            self._population, self._rows = Population([network.text], 1), np.zeros(1, np.int64)
            self._population.assign([0], [0], network.theta[None])
            self._actions = partial(_in_bounds, network)
            self.observation_shape, self.observation_dtype = network.layers.shape, np.dtype(network.observations)
            self.discrete = False
        else:
            replay = Replay(config, [elite.genome], reference_batch=reference_batch)
            pool = replay.pool
            self._population, self._rows, self._actions = replay.population, replay.rows, pool.actions
            self.observation_shape, self.observation_dtype = pool.observation_shape, pool.observation_dtype
            self.discrete = pool.action_dtype == np.int32
        self.reset()

    def reset(self) -> None:
        """Clear the state of a recurrent network, as at the start of an episode."""
        self._population.clear_states([0])

    def __call__(self, observation: np.ndarray) -> np.ndarray | np.int32:
        """Choose an action.

        Args:
            observation: An observation [*observation_shape] or, unless the network is recurrent, K observations
                [K, *observation_shape].

        Returns:
            An index, int32, or a vector, float32 [A]; with a leading axis [K] for K observations.

        Raises:
            ValueError: The shape or dtype of the observation is invalid.
        """
        seen = np.asarray(observation)
        one = seen.shape == self.observation_shape
        if not one and seen.shape[1:] != self.observation_shape:
            raise ValueError(f"observation has shape {list(seen.shape)}, expected {list(self.observation_shape)}")
        population, rows = self._population, np.repeat(self._rows, 1 if one else len(seen))
        if not one and population.recurrent:
            raise ValueError(f"observation has shape {list(seen.shape)}, expected one observation if recurrent")
        seen = seen[None] if one else seen
        if (self.observation_dtype == np.uint8) != (seen.dtype == np.uint8):
            raise ValueError(f"observation has dtype {seen.dtype}, expected {self.observation_dtype}")
        if seen.dtype != np.uint8:
            seen = np.asarray(seen, np.float32) if self._normalizer is None else self._normalizer(seen)
        outputs = population.forward(rows, seen, population.outputs, np.zeros(1, np.int64) if one else None)
        actions = self._actions(outputs)
        return actions[0] if one else actions


def _in_bounds(network: Exported, outputs: np.ndarray) -> np.ndarray:
    """Convert outputs [K, A], or [K, A * B] with B bins, to actions, float32 [K, A] in [-1, 1]."""
    if not network.action_bins:
        return np.clip(outputs, -1, 1)
    best = outputs.reshape(len(outputs), -1, network.action_bins).argmax(-1)
    return (-1 + best * (2 / (network.action_bins - 1))).astype(np.float32)
