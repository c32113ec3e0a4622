"""The Atari protocols in plain Python over ale-py: what tests hold the env pool against. That of arXiv 1712.06567 is
written from its description; Gymnasium's is Gymnasium."""

from __future__ import annotations

import collections
import math
from types import SimpleNamespace

import ale_py
import gymnasium
import numpy as np
import tensorflow as tf
from ale_py import roms
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

GREY = np.array([0.299, 0.587, 0.114])  # weights of red, green, blue
KEPT_SCREENS = 100
GOLDEN = 0x9E3779B97F4A7C15  # increment of the SplitMix64 sequence


def splitmix64(seed: int) -> int:
    """Return one step of SplitMix64 (Steele, Lea and Flood 2014) from state `seed`."""
    mask = 2**64 - 1
    z = (seed + GOLDEN) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def noops_of(seed: int, noop_max: int = 30) -> int:
    """Return the number of no-ops at the start of an episode."""
    return 1 + splitmix64(seed) % noop_max if noop_max else 0


def sticky_seed(seed: int) -> int:
    """Return the seed of ALE's generator of sticky actions for an episode."""
    return splitmix64(seed + GOLDEN) % 2**31


def emulator(
    game: str, *, sticky: float = 0.0, seed: int = 0, mode: int | None = None, difficulty: int | None = None
) -> ale_py.ALEInterface:
    """Return a newly loaded game; `seed` is that of its generator of sticky actions."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", sticky)
    ale.loadROM(str(roms.get_rom_path(game)))
    # As the pool: the loaded game's own mode and difficulty are left alone, and others need a reset.
    other_mode = mode is not None and mode != ale.getAvailableModes()[0]
    other_difficulty = bool(difficulty)  # a loaded game's is 0
    if other_mode:
        ale.setMode(mode)
    if other_difficulty:
        ale.setDifficulty(difficulty)
    if other_mode or other_difficulty:
        ale.reset_game()
    return ale


class _Starts:
    """Emulators of a game at its start, one for each episode.

    Loading an emulator takes as long as some hundred steps. After the first `fresh` emulators, used ones are therefore
    reset to the start, except for the screens of the last episode, which remain until new ones are drawn.
    """

    def __init__(self, game: str, loaded: dict, fresh: float = math.inf):
        self._game, self._loaded, self._left = game, loaded, fresh
        self.first = emulator(game, **loaded)
        self.screen = self.first.getScreenRGB()
        # Only sticky actions are drawn.
        self._ready = None if loaded.get("sticky") else self.first
        self._used, self._start = self.first, self.first.cloneState(include_rng=True)

    def next(self, seed: int) -> ale_py.ALEInterface:
        """Return the emulator of the next episode, which has this seed."""
        ready, self._ready = self._ready, None
        if ready is None and self._left <= 1 and not self._loaded.get("sticky"):
            self._used.restoreState(self._start)
            return self._used
        self._left -= 1
        return ready or emulator(self._game, **self._loaded, seed=sticky_seed(seed))


class ReferenceEnv:
    """Reference environment. fresh: number of episodes after which emulators are reused; the screens then count as
    those of the start until new ones are drawn, since ale-py cannot restore them. loaded: arguments of emulator(). The
    other arguments are the options of the same name."""

    def __init__(
        self,
        game: str,
        fresh: float = math.inf,
        *,
        frame_skip: int = 4,
        noop_max: int = 30,
        full_action_space: bool = False,
        terminal_on_life_loss: bool = False,
        **loaded,
    ):
        self._starts = _Starts(game, loaded, fresh)
        self._frame_skip, self._noop_max, self._life_loss = frame_skip, noop_max, terminal_on_life_loss
        self.ale = self._starts.first
        self._minimal = self.ale.getMinimalActionSet()
        self.actions = self.ale.getLegalActionSet() if full_action_space else self._minimal

    def reset(self, seed: int, max_frames: int) -> None:
        self.seed = seed
        self.ale = self._starts.next(seed)
        # uint8 [height, 160, 3], oldest first.
        self._screens = collections.deque([self._starts.screen] * KEPT_SCREENS, maxlen=KEPT_SCREENS)
        self.noops = noops_of(seed, self._noop_max)
        for _ in range(self.noops):
            self._frame(ale_py.Action.NOOP)
        if self._minimal[1] == ale_py.Action.FIRE:
            for index in [1] * self._frame_skip + [2] * self._frame_skip:
                self._frame(self._minimal[index])
        # These games never end within their start; the pool would begin the episode again.
        assert not self.ale.game_over()
        self.frames, self._max_frames = 0, max_frames or 400_000
        self._lives = self.ale.lives()

    def step(self, action: int) -> tuple[float, bool]:
        reward, done = 0.0, False
        for _ in range(self._frame_skip):
            reward += self._frame(self.actions[action])
            self.frames += 1
            done = self.ale.game_over() or self.frames >= self._max_frames
            if self._life_loss:
                lives, self._lives = self._lives, self.ale.lives()
                done = done or self._lives < lives
            if done:
                break
        return reward, done

    @property
    def screen(self) -> np.ndarray:
        """Return the screen of the last frame, uint8 [height, 160, 3]."""
        return self._screens[-1]

    def gray(self, before: int = 1) -> np.ndarray:
        """Return the pixel-wise maximum of the grays of the last frame and of the frame `before` frames earlier,
        float64 [height, 160]."""
        return np.maximum(self._screens[-1 - before] @ GREY, self.screen @ GREY)

    def _frame(self, action: ale_py.Action) -> int:
        reward = self.ale.act(action)
        self._screens.append(self.ale.getScreenRGB())
        return reward


class _Emulators(gymnasium.Env):
    """Environment for Gymnasium's wrappers: an emulator at its start for each episode, with one frame per step."""

    _frameskip = 1

    def __init__(self, game: str, full_action_space: bool, loaded: dict, fresh: float):
        self._starts = _Starts(game, loaded, fresh)
        self.ale = self._starts.first
        self.actions = self.ale.getLegalActionSet() if full_action_space else self.ale.getMinimalActionSet()
        self.action_space = gymnasium.spaces.Discrete(len(self.actions))
        self.observation_space = gymnasium.spaces.Box(0, 255, (*self.ale.getScreenDims(), 3), np.uint8)

    def get_action_meanings(self) -> list[str]:
        return [action.name for action in self.actions]

    def reset(self, *, seed: int, options: dict | None = None):
        self.ale = self._starts.next(seed)
        self.last_frame = math.inf
        # The one thing that the wrapper draws: an integer in [low, high), the number of no-ops.
        self.np_random = SimpleNamespace(integers=lambda low, high: noops_of(seed, high - low))
        return self._starts.screen, {}

    def step(self, action: int):
        reward = self.ale.act(self.actions[action])
        truncated = self.ale.getEpisodeFrameNumber() >= self.last_frame
        return self.ale.getScreenRGB(), reward, self.ale.game_over(), truncated, {}


class GymnasiumEnv:
    """Environment in gymnasium.wrappers.AtariPreprocessing and FrameStackObservation, with their options."""

    def __init__(
        self,
        game: str,
        fresh: float = math.inf,
        *,
        full_action_space: bool = False,
        loaded: dict | None = None,
        stack: int = 4,
        **options,
    ):
        """options: of AtariPreprocessing, where grayscale_obs is grayscale here."""
        self._frames = _Emulators(game, full_action_space, loaded or {}, fresh)
        options["grayscale_obs"] = options.pop("grayscale", True)
        self._env = FrameStackObservation(AtariPreprocessing(self._frames, **options), stack_size=stack)
        self.actions = self._frames.actions

    @property
    def ale(self) -> ale_py.ALEInterface:
        return self._frames.ale

    def reset(self, seed: int, max_frames: int) -> np.ndarray:
        """The first observation, uint8 [84, 84, 4], or [side, side, stack * 3] in colors."""
        self.seed = seed
        observation, _ = self._env.reset(seed=seed)
        if max_frames:
            self._frames.last_frame = self.ale.getEpisodeFrameNumber() + max_frames
        return _channels_last(observation)

    def step(self, action: int) -> tuple[np.ndarray, float, bool]:
        """Observation, reward, whether the episode is over."""
        observation, reward, terminated, truncated, _ = self._env.step(action)
        return _channels_last(observation), reward, terminated or truncated


def _channels_last(stacked: np.ndarray) -> np.ndarray:
    """[stack, H, W] or [stack, H, W, 3] -> [H, W, channels], all colors of the oldest frame first."""
    if stacked.ndim == 3:
        return np.moveaxis(stacked, 0, -1)
    return np.moveaxis(stacked, 0, -2).reshape(*stacked.shape[1:3], -1)


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
