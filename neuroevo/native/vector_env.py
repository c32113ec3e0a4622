"""The native core's vector environment through its C interface, custom_ops/c_api/vector_env.h."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
from gymnasium.error import InvalidAction

from neuroevo.core.env_spec import EnvSpec
from neuroevo.native.ffi import ErrorKind, error_of, ref, strings
from neuroevo.native.library import call, core, require_family


class _Spec(ctypes.Structure):
    _fields_ = (
        ("observation_dtype", ctypes.c_char_p),
        ("observation_shape", ctypes.POINTER(ctypes.c_int64)),
        ("observation_rank", ctypes.c_int64),
        ("action_dtype", ctypes.c_char_p),
        ("num_actions", ctypes.c_int64),
        ("action_low", ctypes.POINTER(ctypes.c_float)),
        ("action_high", ctypes.POINTER(ctypes.c_float)),
        ("frame_skip", ctypes.c_int64),
        ("render_shape", ctypes.POINTER(ctypes.c_int64)),
        ("render_rank", ctypes.c_int64),
        ("info_names", ctypes.POINTER(ctypes.c_char_p)),
        ("infos", ctypes.c_int64),
    )


class _Output(ctypes.Structure):
    _fields_ = (
        ("observations", ctypes.c_void_p),
        ("rewards", ctypes.c_void_p),
        ("terminations", ctypes.c_void_p),
        ("truncations", ctypes.c_void_p),
        ("failures", ctypes.c_void_p),
        ("infos", ctypes.c_void_p),
        ("final_observations", ctypes.c_void_p),
        ("final_infos", ctypes.c_void_p),
    )


class VectorCore:
    """Vector of N environments that are reset and stepped together.

    Arrays must have the dtypes and shapes given here, unchecked.

    Calls must not be concurrent: a concurrent call from another thread raises ValueError. free() during a call frees
    the environments when that call ends; in a forked child process it does nothing, and the other methods raise
    ValueError.

    Methods raise ValueError, InvalidAction for an action out of range, EnvironmentFailure if an environment failed, and
    NativeError for other errors.

    Attributes:
        observation_shape: Shape of one observation.
        observation_dtype: Dtype of one observation.
        discrete: Whether an action is an index in [0, num_actions); otherwise a vector of num_actions numbers.
        num_actions: A.
        action_low: Lower bounds of a vector, float32 [A]; shape [0] for discrete actions.
        action_high: Upper bounds, likewise.
        frame_skip: Emulator frames per step.
        render_shape: (height, width, 3); () if there are no screens.
        info_names: Names of the I infos.
        num_envs: N.
        rewards: float64 [N]; like the following attributes, overwritten by reset() and step().
        terminations: bool [N].
        truncations: bool [N].
        failures: bool [N].
        infos: int64 [I, N].
        final_observations: [N, *observation_shape], last observations of episodes that ended, with same-step autoreset.
        final_infos: int64 [I, N], likewise.
    """

    def __init__(self, env: EnvSpec, num_envs: int, autoreset: str, max_steps: int, threads: int):
        """Create the environments.

        Args:
            env: Specification of the environment.
            num_envs: N.
            autoreset: NextStep, SameStep or Disabled.
            max_steps: Cut-off of the episodes; 0 for the environment's limit.
            threads: Threads of a separate pool; 0 for the process's pool.
        """
        self._handle = ctypes.c_void_p()
        require_family(env.family)
        options = strings(env.options)
        sizes = len(options), num_envs
        limits = max_steps, threads
        _call("make", env.family.encode(), options, *sizes, autoreset.encode(), *limits, ref(self._handle))
        self.free = weakref.finalize(self, core().neuroevo_vector_free, self._handle)
        spec = _Spec()
        _call("get_spec", self._handle, ref(spec))
        self.observation_dtype = np.dtype(spec.observation_dtype.decode())
        self.observation_shape = tuple(spec.observation_shape[: spec.observation_rank])
        self.discrete, self.num_actions = spec.action_dtype == b"int32", spec.num_actions
        bounds = 0 if self.discrete else spec.num_actions
        self.action_low = np.array(spec.action_low[:bounds], np.float32)
        self.action_high = np.array(spec.action_high[:bounds], np.float32)
        self.frame_skip = spec.frame_skip
        self.render_shape = tuple(spec.render_shape[: spec.render_rank])
        self.info_names = [name.decode() for name in spec.info_names[: spec.infos]]
        self.num_envs = num_envs
        self.rewards = np.zeros(num_envs)
        self.terminations, self.truncations, self.failures = np.zeros((3, num_envs), bool)
        self.infos, self.final_infos = np.zeros((2, len(self.info_names), num_envs), np.int64)
        self.final_observations = self.new_observations()  # untouched memory without same-step autoreset
        self._output = _Output()
        for name, _ in _Output._fields_[1:]:
            setattr(self._output, name, getattr(self, name).ctypes.data)

    def new_observations(self) -> np.ndarray:
        """Return an uninitialized array for observations, [N, *observation_shape]."""
        return np.empty((self.num_envs, *self.observation_shape), self.observation_dtype)

    def reset(self, mask: np.ndarray, seeded: np.ndarray, seeds: np.ndarray, observations: np.ndarray) -> None:
        """Start episodes.

        Args:
            mask: bool [N], the environments in which an episode starts.
            seeded: bool [N], the environments that are seeded from `seeds`.
            seeds: uint64 [N].
            observations: [N, *observation_shape], written.
        """
        _call("reset", self._handle, mask, seeded, seeds, ref(self._output_with(observations)))

    def step(self, actions: np.ndarray, observations: np.ndarray) -> None:
        """Step the environments.

        Args:
            actions: int64 [N] or float32 [N, num_actions].
            observations: [N, *observation_shape], written.
        """
        _call("step", self._handle, actions, ref(self._output_with(observations)))

    def _output_with(self, observations: np.ndarray) -> _Output:
        """Return a separate output for each call, so that a rejected concurrent call cannot modify it."""
        output = _Output.from_buffer_copy(self._output)
        output.observations = observations.ctypes.data
        return output

    def render(self) -> np.ndarray:
        """Return the current screens, uint8 [N, *render_shape]."""
        screens = np.empty((self.num_envs, *self.render_shape), np.uint8)
        _call("render", self._handle, screens)
        return screens

    def failure(self, index: int) -> str:
        """Return why the last finished episode of an environment was aborted.

        Args:
            index: Index of the environment.

        Returns:
            The reason; "" if the episode was not aborted.
        """
        text = ctypes.c_char_p()
        _call("failure", self._handle, index, ref(text))
        return (text.value or b"").decode()


_ERRORS = {
    ErrorKind.INVALID_ARGUMENT: ValueError,
    ErrorKind.OUT_OF_RANGE: InvalidAction,  # actions are the only indices in these calls
    ErrorKind.NOT_FOUND: ValueError,
}


def _error_of(kind: ErrorKind, words: str) -> Exception:
    return _ERRORS[kind](words) if kind in _ERRORS else error_of(kind, words)


def _call(function: str, *arguments: object) -> None:
    """Call neuroevo_vector_<function>."""
    call(f"vector_{function}", *arguments, raises=_error_of)
