"""The native core's vector environment through its C interface, custom_ops/c_api/vector_env.h."""

from __future__ import annotations

import ctypes
import weakref

import numpy as np
from gymnasium.error import InvalidAction

from neuroevo.core.env_spec import EnvSpec
from neuroevo.native.library import core


class _Spec(ctypes.Structure):
    _fields_ = [
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
    ]


class _Output(ctypes.Structure):
    _fields_ = [
        ("observations", ctypes.c_void_p),
        ("rewards", ctypes.c_void_p),
        ("terminations", ctypes.c_void_p),
        ("truncations", ctypes.c_void_p),
        ("failures", ctypes.c_void_p),
        ("infos", ctypes.c_void_p),
        ("final_observations", ctypes.c_void_p),
        ("final_infos", ctypes.c_void_p),
    ]


class VectorCore:
    """N environments that are reset and stepped together. Arrays must be contiguous and have the dtypes and shapes that
    are given here: nothing checks it. Calls raise ValueError, InvalidAction for an action out of range, RuntimeError.

    observation_shape, observation_dtype: of one observation. discrete: an action is one of num_actions, else a vector
    of num_actions with the bounds action_low and action_high. frame_skip: emulator frames per step. render_shape:
    (height, width, 3); () if there are no screens. info_names: of the I infos.
    After reset() and step(), until the next one: rewards float64 [N], terminations, truncations and failures bool [N],
    infos int64 [I, N]; with same-step autoreset, of the episodes that the step ended, final_observations [N, *shape]
    and final_infos int64 [I, N].
    """

    def __init__(self, env: EnvSpec, num_envs: int, autoreset: str, max_steps: int, threads: int):
        """autoreset: NextStep, SameStep or Disabled. max_steps: 0: the environment's own. threads: 0: the process's."""
        self._handle = ctypes.c_void_p()
        options = (ctypes.c_char_p * len(env.options))(*(text.encode() for text in env.options))
        sizes = ctypes.c_int64(len(options)), ctypes.c_int64(num_envs)
        limits = ctypes.c_int64(max_steps), ctypes.c_int32(threads)
        made = ctypes.byref(self._handle)
        _call("make", env.family.encode(), options, *sizes, autoreset.encode(), *limits, made)
        self.free = weakref.finalize(self, core().neuroevo_vector_free, self._handle)
        spec = _Spec()
        _call("get_spec", self._handle, ctypes.byref(spec))
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
        self.final_observations = self.new_observations()  # mostly never touched
        self._output = _Output()
        for name, _ in _Output._fields_[1:]:
            setattr(self._output, name, getattr(self, name).ctypes.data)

    def new_observations(self) -> np.ndarray:
        """An array for observations [N, *observation_shape], not filled."""
        return np.empty((self.num_envs, *self.observation_shape), self.observation_dtype)

    def reset(self, mask: np.ndarray, seeded: np.ndarray, seeds: np.ndarray, observations: np.ndarray) -> None:
        """Begins episodes where mask, bool [N], says so, with seeds uint64 [N] where seeded, bool [N], says so."""
        self._output.observations = observations.ctypes.data
        _call("reset", self._handle, *map(_address, (mask, seeded, seeds)), ctypes.byref(self._output))

    def step(self, actions: np.ndarray, observations: np.ndarray) -> None:
        """Steps with actions int64 [N] or float32 [N, num_actions]."""
        self._output.observations = observations.ctypes.data
        _call("step", self._handle, _address(actions), ctypes.byref(self._output))

    def render(self) -> np.ndarray:
        """The current screens, uint8 [N, *render_shape]."""
        screens = np.empty((self.num_envs, *self.render_shape), np.uint8)
        _call("render", self._handle, _address(screens))
        return screens

    def failure(self, index: int) -> str:
        """Why the last episode of this environment that ended was broken off; "" where it was not."""
        text = ctypes.c_char_p()
        _call("failure", self._handle, ctypes.c_int64(index), ctypes.byref(text))
        return text.value.decode()


_ERRORS = {1: ValueError, 2: InvalidAction, 3: ValueError}  # by Error::Kind + 1; what is out of range is an action


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _call(function: str, *arguments: object) -> None:
    """Calls neuroevo_vector_<function>."""
    library = core()
    code = getattr(library, f"neuroevo_vector_{function}")(*arguments)
    if code != 0:
        library.neuroevo_last_error.restype = ctypes.c_char_p
        raise _ERRORS.get(code, RuntimeError)(library.neuroevo_last_error().decode())
