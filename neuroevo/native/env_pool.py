"""The environments of the native core without TensorFlow, through its C interface: NumPy in, NumPy out."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from neuroevo.core import env_spec
from neuroevo.native.ffi import Ended, EnvSpec, call, i64, indices, ref, shaped, sized, strings
from neuroevo.native.library import core


class EnvPool:
    """S environments of one family. slots: int64 [K], different; arrays are converted to the dtypes given here.

    observation_shape, observation_dtype: of one observation. behavior_shape, behavior_dtype: of one behavior; () if
    there is none. render_shape: (height, width, 3); () if it cannot be rendered. action_dtype: int32 for one action in
    [0, num_actions), float32 for a vector of num_actions, each meant to lie in action_low to action_high. frame_skip:
    emulator frames per step. state_size: numbers of a state; 0 if there is none. behavior_size: B, numbers recorded of
    an episode's behavior; 0 if none are.
    """

    def __init__(self, env: env_spec.EnvSpec, slots: int):
        self._handle = ctypes.c_void_p()
        options = strings(env.options)
        call("env_pool_make", env.family.encode(), options, i64(len(options)), i64(slots), ref(self._handle))
        spec = EnvSpec()
        call("env_pool_spec", self._handle, ref(spec))
        self.observation_dtype = np.dtype(spec.observation_dtype.decode())
        self.observation_shape = tuple(spec.observation_shape[: spec.observation_rank])
        self.action_dtype = np.dtype(spec.action_dtype.decode())
        self.num_actions = spec.num_actions
        self.frame_skip = spec.frame_skip
        self.behavior_dtype = np.dtype(spec.behavior_dtype.decode())
        self.behavior_shape = tuple(spec.behavior_shape[: spec.behavior_rank])
        self.render_shape = tuple(spec.render_shape[: spec.render_rank])
        vector = self.num_actions if self.action_dtype == np.float32 else 0
        self.action_low = np.array(spec.action_low[:vector], np.float32)
        self.action_high = np.array(spec.action_high[:vector], np.float32)
        self.state_size = spec.state_size
        self.behavior_size = 0
        self._action_shape = () if self.action_dtype == np.int32 else (self.num_actions,)

    def __del__(self) -> None:
        if self._handle:
            core().neuroevo_env_pool_free(self._handle)

    def reset(
        self,
        slots: Sequence[int],
        seeds: Sequence[int],
        max_frames: Sequence[int],
        episodes: Sequence[int] | None = None,
        normalizers: Sequence[int] | None = None,
    ) -> None:
        """Starts episodes; seeds [K], max_frames [K] in emulator frames (0: the family's own limit).

        episodes: [K], numbers by which take_ended() tells of them. normalizers: [K], numbers given to set_normalizer().
        -1 stands for none.
        """
        slots = indices("slots", slots)
        seeds = shaped("seeds", seeds, np.uint64, slots.shape)
        max_frames = shaped("max_frames", max_frames, np.int64, slots.shape)
        if episodes is not None:
            episodes = shaped("episodes", episodes, np.int64, slots.shape)
        if normalizers is not None:
            normalizers = shaped("normalizers", normalizers, np.int64, slots.shape)
        call("env_reset", self._handle, *sized(slots), seeds, max_frames, episodes, normalizers)

    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """What step() takes, from networks' outputs [K, W] as custom_ops/envs/actions.h has it: int32 [K], or float32
        [K, num_actions].
        """
        outputs = np.ascontiguousarray(outputs, np.float32)
        if outputs.ndim != 2:
            raise ValueError(f"outputs has shape {list(outputs.shape)}, expected [K, W]")
        actions = np.zeros((len(outputs), *self._action_shape), self.action_dtype)
        call("env_actions", self._handle, outputs, i64(len(outputs)), i64(outputs.shape[1]), actions)
        return actions

    def step(self, slots: Sequence[int], actions: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """Steps; actions [K] or [K, num_actions]. Returns rewards float64 [K] and dones bool [K].

        An action that is not finite ends its slot's episode, with reward 0 and a failure.
        """
        slots = indices("slots", slots)
        actions = shaped("actions", actions, self.action_dtype, (len(slots), *self._action_shape))
        rewards, dones = np.zeros(len(slots)), np.zeros(len(slots), bool)
        call("env_step", self._handle, *sized(slots), actions, rewards, dones)
        return rewards, dones

    def observe(self, slots: Sequence[int]) -> np.ndarray:
        """Observations [K, *observation_shape]."""
        return self._copy_out("env_observe", slots, self.observation_shape, self.observation_dtype)

    def observe_normalized(self, slots: Sequence[int]) -> np.ndarray:
        """Observations as float32 [K, *observation_shape], normalized where the slot's episode has a normalizer: then
        (observation - mean) / std, within [-5, 5], and the observation counts in the episode's moments.
        """
        return self._copy_out("env_observe_normalized", slots, self.observation_shape, np.float32)

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normalizer known: mean, std [n] of the n values of an observation. A number never changes its values.

        Only for observations of floats.
        """
        mean, std = np.ascontiguousarray(mean, np.float64), np.ascontiguousarray(std, np.float64)
        if mean.ndim != 1:
            raise ValueError(f"mean has shape {list(mean.shape)}, expected [n]")
        std = shaped("std", std, np.float64, mean.shape)
        call("env_set_normalizer", self._handle, i64(number), mean, std, i64(len(mean)))

    def drop_normalizers(self, numbers: Sequence[int]) -> None:
        """Forgets normalizers; episodes that have begun with one keep it."""
        call("env_drop_normalizers", self._handle, *sized(indices("numbers", numbers)))

    def record_behaviors(self, every: int = 0, samples: int = 1) -> None:
        """Records the behavior of every numbered episode, for take_ended(); before the first reset().

        every: 0 for the behavior when the episode ends; else for those after steps every, 2 * every, ..., `samples` of
        them, the last state again after the end. NativeError: the environment has none, or they are too many.
        """
        call("env_record_behaviors", self._handle, i64(every), i64(samples))
        self.behavior_size = math.prod(self.behavior_shape) * (samples if every else 1)

    def behavior(self, slots: Sequence[int]) -> np.ndarray:
        """What characterizes the environments now, for novelty search: [K, *behavior_shape]. Of Atari, the RAM; of
        MuJoCo, x and y of the torso.
        """
        return self._copy_out("env_behavior", slots, self.behavior_shape, self.behavior_dtype)

    def render(self, slots: Sequence[int]) -> np.ndarray:
        """Current screens as red, green, blue: uint8 [K, height, width, 3]."""
        return self._copy_out("env_render", slots, self.render_shape, np.uint8)

    def state(self, slots: Sequence[int]) -> np.ndarray:
        """What episodes go on from: float64 [K, state_size]. Of MuJoCo, the joints' positions, then velocities."""
        return self._copy_out("env_state", slots, (self.state_size,), np.float64)

    def failure(self, slot: int) -> str:
        """Why the slot's episode was broken off: an action was not finite or its simulation failed; "" where not."""
        text = ctypes.c_char_p()
        call("env_failure", self._handle, i64(slot), ref(text))
        return text.value.decode()

    def take_ended(self) -> list[tuple[int, str, np.ndarray, np.ndarray]]:
        """Number, failure, moments and behavior of each numbered episode that ended since the last call: of all if
        behaviors are recorded, else of those with a failure or a normalizer.

        moments: float64 [1 + 2n] of the observations that observe_normalized() showed: count, sums, sums of squares; 0
        where the episode had no normalizer; [0] if the pool never had one. behavior: [B] of behavior_dtype; 0 where
        the episode failed; [0] if none are recorded.
        """
        ended = Ended()
        call("env_take_ended", self._handle, ref(ended))
        count, size = ended.count, ended.moments_size
        moments = np.array(ended.moments[: count * size], np.float64).reshape(count, size)
        failures = [failure.decode() for failure in ended.failures[:count]]
        behaviors = np.zeros((count, self.behavior_size), self.behavior_dtype)
        if behaviors.nbytes:
            ctypes.memmove(behaviors.ctypes.data, ended.behaviors, behaviors.nbytes)
        return list(zip(ended.episodes[:count], failures, moments, behaviors, strict=True))

    def _copy_out(self, function: str, slots: Sequence[int], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        slots = indices("slots", slots)
        out = np.zeros((len(slots), *shape), dtype)
        call(function, self._handle, *sized(slots), out)
        return out
