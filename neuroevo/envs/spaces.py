"""Gymnasium's spaces of the environments of the native core."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from neuroevo.native.vector_env import VectorCore


def spaces_of(core: VectorCore) -> tuple[Box, gymnasium.Space]:
    """Return the spaces of one environment: of observations and of actions."""
    low, high = (0, 255) if core.observation_dtype == np.uint8 else (-np.inf, np.inf)
    observations = Box(low, high, core.observation_shape, core.observation_dtype.type)
    if core.discrete:
        return observations, Discrete(core.num_actions)
    return observations, Box(core.action_low, core.action_high, dtype=np.float32)
