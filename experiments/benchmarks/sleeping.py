"""An environment that only sleeps: a step takes its time, and no processor, so that many machines fit on one."""

from __future__ import annotations

import time

import gymnasium
import numpy as np

STEP_SECONDS = 0.02
SHORTEST, LONGEST = 10, 40  # steps of an episode


class Sleeping(gymnasium.Env):
    """Lasts SHORTEST to LONGEST steps, as its seed has it, and is rewarded with what it observes."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Draws the episode's length."""
        super().reset(seed=seed)
        self._left = int(self.np_random.integers(SHORTEST, LONGEST + 1))
        return self._observe(), {}

    def step(self, action):
        """Sleeps."""
        time.sleep(STEP_SECONDS)
        self._left -= 1
        seen = self._observe()
        return seen, float(seen[action]), self._left == 0, False, {}

    def _observe(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)


gymnasium.register("Sleeping-v0", Sleeping)
