"""The environments of the native core without TensorFlow, through its C interface: NumPy in, NumPy out."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from neuroevo.core import env_spec
from neuroevo.native.ffi import EnvSpec, indices, ref, shaped, sized, strings
from neuroevo.native.library import call, core, require_family


class EnvPool:
    """Pool of S environments of one family.

    Slots are int64 [K], distinct; arrays are converted to the dtypes given here. Invalid arguments raise NativeError: a
    slot out of range, a slot that was never reset, an action that does not exist. An environment that fails raises
    EnvironmentFailure.

    Attributes:
        observation_shape: Shape of one observation.
        observation_dtype: Dtype of one observation.
        action_dtype: int32 for one action in [0, num_actions), float32 for a vector of num_actions.
        num_actions: A.
        action_names: Names of the actions, or of a vector's numbers, from the emulator or the model: A names, or no
            names.
        action_low: Nominal lower bounds of the numbers of a vector, float32 [A]; shape [0] for discrete actions.
        action_high: Nominal upper bounds, likewise.
        frame_skip: Emulator frames per step.
        behavior_shape: Shape of one behavior; () without a behavior.
        behavior_dtype: Dtype of one behavior.
        behavior_size: B, numbers recorded of an episode's behavior; 0 if no behavior is recorded.
        render_shape: (height, width, 3); () if it cannot be rendered.
        state_size: Numbers of a state; 0 without a state.
        retries: Whether episodes may be retried; see EnvSpec.retries.
    """

    def __init__(self, env: env_spec.EnvSpec, slots: int):
        """Create the environments.

        Args:
            env: Specification of the environment.
            slots: S.

        Raises:
            NativeError: There is no such family or option.
        """
        self._handle, self._free = ctypes.c_void_p(), core().neuroevo_env_pool_free
        require_family(env.family)
        options = strings(env.options)
        call("env_pool_make", env.family.encode(), options, len(options), slots, ref(self._handle))
        spec = EnvSpec()
        call("env_pool_spec", self._handle, ref(spec))
        self.observation_dtype = np.dtype(spec.observation_dtype.decode())
        self.observation_shape: tuple[int, ...] = tuple(spec.observation_shape[: spec.observation_rank])
        self.action_dtype = np.dtype(spec.action_dtype.decode())
        self.num_actions: int = spec.num_actions
        self.frame_skip: int = spec.frame_skip
        self.behavior_dtype = np.dtype(spec.behavior_dtype.decode())
        self.behavior_shape: tuple[int, ...] = tuple(spec.behavior_shape[: spec.behavior_rank])
        self.render_shape: tuple[int, ...] = tuple(spec.render_shape[: spec.render_rank])
        vector = self.num_actions if self.action_dtype == np.float32 else 0
        self.action_low = np.array(spec.action_low[:vector], np.float32)
        self.action_high = np.array(spec.action_high[:vector], np.float32)
        self.state_size: int = spec.state_size
        self.action_names: tuple[str, ...] = tuple(spec.action_names.decode().split("\n")) if spec.action_names else ()
        self.behavior_size = 0
        self.retries = env.retries
        self._action_shape = () if self.action_dtype == np.int32 else (self.num_actions,)

    def __del__(self) -> None:
        """Free the environments."""
        if self._handle.value:
            self._free(self._handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        """Handle for functions of the C interface; valid as long as this object."""
        return self._handle

    def reset(
        self,
        slots: Sequence[int] | np.ndarray,
        seeds: Sequence[int] | np.ndarray,
        max_frames: Sequence[int] | np.ndarray,
        normalizers: Sequence[int] | np.ndarray | None = None,
    ) -> None:
        """Start an episode in each slot.

        Args:
            slots: [K].
            seeds: [K], seeds of everything that is random in the episodes.
            max_frames: [K], cut-off in emulator frames; 0 for the family's limit.
            normalizers: [K], numbers given to set_normalizer(), or -1 for no normalizer; None: all -1.

        Raises:
            ValueError: An array has another shape.
        """
        slots = indices("slots", slots)
        seeds = shaped("seeds", seeds, np.uint64, slots.shape)
        max_frames = shaped("max_frames", max_frames, np.int64, slots.shape)
        if normalizers is not None:
            normalizers = shaped("normalizers", normalizers, np.int64, slots.shape)
        call("env_reset", self._handle, *sized(slots), seeds, max_frames, normalizers)

    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """Convert networks' outputs to actions for step(), as documented in custom_ops/envs/actions.h.

        Args:
            outputs: float32 [K, W].

        Returns:
            int32 [K], or float32 [K, num_actions].

        Raises:
            ValueError: outputs has another rank.
        """
        outputs = np.ascontiguousarray(outputs, np.float32)
        if outputs.ndim != 2:
            raise ValueError(f"outputs has shape {list(outputs.shape)}, expected [K, W]")
        actions = np.zeros((len(outputs), *self._action_shape), self.action_dtype)
        call("env_actions", self._handle, *sized(outputs), outputs.shape[1], actions)
        return actions

    def step(self, slots: Sequence[int] | np.ndarray, actions: Sequence | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Step the environments.

        An action with a number that is not finite ends its slot's episode, with reward 0 and a failure.

        Args:
            slots: [K], each reset and not done since.
            actions: [K] or [K, num_actions].

        Returns:
            Rewards, float64 [K], and whether the episodes ended, bool [K].

        Raises:
            ValueError: An array has another shape.
        """
        slots = indices("slots", slots)
        actions = shaped("actions", actions, self.action_dtype, (len(slots), *self._action_shape))
        rewards, dones = np.zeros(len(slots)), np.zeros(len(slots), bool)
        call("env_step", self._handle, *sized(slots), actions, rewards, dones)
        return rewards, dones

    def observe(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the current observations.

        Args:
            slots: [K], each reset at least once.

        Returns:
            [K, *observation_shape], of observation_dtype.
        """
        return self._copy_out("env_observe", slots, self.observation_shape, self.observation_dtype)

    def observe_normalized(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return observations of floats as networks receive them: (observation - mean) / std, clipped to [-5, 5].

        An observation is normalized if the slot's episode has a normalizer, and it then counts in the episode's sums;
        otherwise it is returned unchanged.

        Args:
            slots: [K], each reset at least once.

        Returns:
            float32 [K, *observation_shape].
        """
        return self._copy_out("env_observe_normalized", slots, self.observation_shape, np.float32)

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Register a normalizer, for observations of floats only. A number's values must never change.

        Args:
            number: 0 or more.
            mean: [n], for the n values of an observation.
            std: [n].

        Raises:
            ValueError: An array has another shape.
        """
        mean = np.ascontiguousarray(mean, np.float64)
        if mean.ndim != 1:
            raise ValueError(f"mean has shape {list(mean.shape)}, expected [n]")
        std = shaped("std", std, np.float64, mean.shape)
        call("env_set_normalizer", self._handle, number, mean, std, len(mean))

    def drop_normalizers(self, numbers: Sequence[int] | np.ndarray) -> None:
        """Remove normalizers; episodes that have started with one keep it.

        Args:
            numbers: [M], each set before.
        """
        call("env_drop_normalizers", self._handle, *sized(indices("numbers", numbers)))

    def record_behaviors(self, every: int = 0, samples: int = 1) -> None:
        """Record the behavior of every episode for the results of a rollout; call it before the first reset().

        Args:
            every: 0 for the behavior at the end of the episode; otherwise those after steps every, 2 * every, ...
            samples: Number of behaviors with `every`; after the end, the last behavior is repeated.

        Raises:
            NativeError: The environment has no behavior, the samples are too many, or a slot was reset already.
        """
        call("env_record_behaviors", self._handle, every, samples)
        self.behavior_size = math.prod(self.behavior_shape) * (samples if every else 1)

    def behavior(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the current behaviors of the environments, for novelty search.

        These are the RAM in Atari, x and y of the torso in MuJoCo, and x and y of the robot in the maze.

        Args:
            slots: [K], each reset at least once.

        Returns:
            [K, *behavior_shape], of behavior_dtype.
        """
        return self._copy_out("env_behavior", slots, self.behavior_shape, self.behavior_dtype)

    def render(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the current screens as red, green, blue.

        Args:
            slots: [K], each reset at least once.

        Returns:
            uint8 [K, height, width, 3].
        """
        return self._copy_out("env_render", slots, self.render_shape, np.uint8)

    def state(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the states of the simulations: in MuJoCo, the joints' positions, then velocities.

        Args:
            slots: [K], each reset at least once.

        Returns:
            float64 [K, state_size].
        """
        return self._copy_out("env_state", slots, (self.state_size,), np.float64)

    def failure(self, slot: int) -> str:
        """Return why the slot's episode was aborted: an action was not finite or its simulation failed.

        Args:
            slot: In [0, S).

        Returns:
            The reason; "" if the episode was not aborted.
        """
        text = ctypes.c_char_p()
        call("env_failure", self._handle, slot, ref(text))
        return (text.value or b"").decode()

    def _copy_out(
        self, function: str, slots: Sequence[int] | np.ndarray, shape: tuple[int, ...], dtype: np.dtype | type
    ) -> np.ndarray:
        slots = indices("slots", slots)
        out = np.zeros((len(slots), *shape), dtype)
        call(function, self._handle, *sized(slots), out)
        return out
