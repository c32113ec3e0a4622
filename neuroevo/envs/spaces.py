"""Gymnasium spaces of the native core's environments."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from neuroevo.native.vector_env import VectorCore


def spaces_of(core: VectorCore) -> tuple[Box, gymnasium.Space]:
    """Return the observation space and the action space of a single environment."""
    low, high = (0, 255) if core.observation_dtype == np.uint8 else (-np.inf, np.inf)
    observations = Box(low, high, core.observation_shape, core.observation_dtype.type)
    if core.discrete:
        return observations, Discrete(core.num_actions)
    return observations, Box(core.action_low, core.action_high, dtype=np.float32)
