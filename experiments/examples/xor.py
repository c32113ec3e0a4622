"""Exclusive or (XOR) as a Gymnasium environment, `gymnasium:experiments.examples.xor:XOR-v0`.

An episode shows the four pairs of inputs, one per step. The action is the output, a number in [0, 1], and a step's
reward is 1 minus its squared error, so that the best return is 4. A network without hidden units does not reach it.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

PAIRS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
OUTPUTS = (0.0, 1.0, 1.0, 0.0)


class XOR(gymnasium.Env[np.ndarray, np.ndarray]):
    """XOR environment: four steps, each with two inputs, float32 [2], and one output, float32 [1]."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start with the first pair; episodes do not depend on their seeds."""
        super().reset(seed=seed, options=options)
        self._step = 0
        return PAIRS[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Reward the output for the current pair and show the next one."""
        reward = 1 - (float(action[0]) - OUTPUTS[self._step]) ** 2
        self._step += 1
        return PAIRS[self._step % len(PAIRS)], reward, self._step == len(PAIRS), False, {}


gymnasium.register("XOR-v0", XOR)
