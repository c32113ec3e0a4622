"""Environment whose steps sleep: they take time but no processor, so that one machine can simulate many."""

from __future__ import annotations

import time

import gymnasium
import numpy as np

STEP_SECONDS = 0.02
SHORTEST, LONGEST = 10, 40  # steps of an episode


class Sleeping(gymnasium.Env):
    """Sleeping environment with episodes of SHORTEST to LONGEST steps; the reward equals the observation."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Draw the episode's length."""
        super().reset(seed=seed)
        self._left = int(self.np_random.integers(SHORTEST, LONGEST + 1))
        return self._observe(), {}

    def step(self, action):
        """Sleep for the duration of a step."""
        time.sleep(STEP_SECONDS)
        self._left -= 1
        seen = self._observe()
        return seen, float(seen[action]), self._left == 0, False, {}

    def _observe(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)


gymnasium.register("Sleeping-v0", Sleeping)
