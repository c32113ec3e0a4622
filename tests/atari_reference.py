"""The Atari protocol of arXiv 1712.06567 in plain Python over ale-py, written from its description: what tests hold the
env pool against."""

from __future__ import annotations

import ale_py
import numpy as np
import tensorflow as tf
from ale_py import roms

GREY = np.array([0.299, 0.587, 0.114])  # weights of red, green, blue
FRAME_SKIP = 4


def splitmix64(seed: int) -> int:
    """One step of Steele, Lea and Flood 2014 from state `seed`."""
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def emulator(game: str) -> ale_py.ALEInterface:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 0)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(str(roms.get_rom_path(game)))
    return ale


class ReferenceEnv:
    """One environment. restore=False makes a fresh emulator for every episode, which is exact; restore=True restores a
    snapshot, which leaves the screens of the last episode standing until they are drawn over: ale-py has no way to
    restore them."""

    def __init__(self, game: str, restore: bool = False):
        self._game, self._restore = game, restore
        self._ale = emulator(game)
        self._snapshot = self._ale.cloneState(include_rng=True)
        self.actions = self._ale.getMinimalActionSet()

    def reset(self, seed: int, max_frames: int) -> None:
        if self._restore:
            self._ale.restoreState(self._snapshot)
        else:
            self._ale = emulator(self._game)
        self._screens = [self._ale.getScreenRGB(), self._ale.getScreenRGB()]  # uint8 [height, 160, 3], oldest first
        self.noops = 1 + splitmix64(seed) % 30
        for _ in range(self.noops):
            self._frame(0)
        if self.actions[1] == ale_py.Action.FIRE:
            for index in [1] * FRAME_SKIP + [2] * FRAME_SKIP:
                self._frame(index)
        # These games never end within their start; the pool would begin the episode again.
        assert not self._ale.game_over()
        self.frames, self._max_frames = 0, max_frames or 400_000

    def step(self, action: int) -> tuple[float, bool]:
        reward, done = 0.0, False
        for _ in range(FRAME_SKIP):
            reward += self._frame(action)
            self.frames += 1
            done = self._ale.game_over() or self.frames >= self._max_frames
            if done:
                break
        return reward, done

    def grey(self) -> np.ndarray:
        """float64 [height, 160]: the pixel-wise maximum of the greys of the last two frames."""
        return np.maximum(self._screens[0] @ GREY, self._screens[1] @ GREY)

    def _frame(self, index: int) -> int:
        reward = self._ale.act(self.actions[index])
        self._screens = [self._screens[1], self._ale.getScreenRGB()]
        return reward


def resize(greys: np.ndarray) -> np.ndarray:
    """[N, height, 160] -> float32 [N, 84, 84], by TensorFlow's bilinear resize with aligned corners."""
    images = tf.constant(greys[..., None], tf.float32)
    return tf.compat.v1.image.resize_bilinear(images, (84, 84), align_corners=True).numpy()[..., 0]


def stacks(frames: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """frames [N, 84, 84], starts bool [N], true where an episode begins -> [N, 84, 84, 4], oldest first; zeros before
    the first frame of an episode."""
    first = np.maximum.accumulate(np.where(starts, np.arange(len(frames)), 0))
    out = np.zeros((*frames.shape, 4), frames.dtype)
    for age in range(4):
        index = np.arange(len(frames)) - age
        there = index >= first
        out[there, ..., 3 - age] = frames[index[there]]
    return out
