"""Worker process that runs Gymnasium environments, started by the native family "gymnasium".

It serves requests on a socket, its standard input, until the socket is closed; custom_ops/envs/gymnasium/protocol.h
describes the protocol. Exceptions of an environment are sent back as text.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import os
import random
import signal
import socket
import struct
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroevo.core.errors import shortened
from neuroevo.system.safe_path import safe_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import gymnasium
    import numpy as np

_VERSION = 2
_HELLO, _RESET, _STEP, _RENDER, _SPEC, _RESULT, _SCREEN, _ERROR = range(1, 9)  # kinds of messages
_DTYPES = ("uint8", "float32", "float64")
_LENGTH = struct.Struct("<I")
_HELLO_BEGIN = struct.Struct("<BIQ")  # kind, version, process id of the caller
_RESET_FIELDS = struct.Struct("<BIQ")  # kind, slot, seed
_STEP_BEGIN = struct.Struct("<BI")  # kind, slot; followed by the action
_RENDER_FIELDS = struct.Struct("<BI")  # kind, slot
_RESULT_BEGIN = struct.Struct("<IBdB")  # length, kind, reward, ended; followed by behavior and observation
_SEEDS = 2**31  # seeds below this fit every library that an environment may seed
_MAX_TRACEBACK = 20_000  # last characters of a traceback
_THREADS_OF_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REGISTRATION = os.path.join("gymnasium", "envs", "registration.py")
_PACKAGE = str(Path(__file__).parents[2])
_PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>


def main() -> None:
    """Serve until the caller closes the connection or dies."""
    for number in (signal.SIGINT, signal.SIGHUP):  # sent by the terminal; the caller handles them
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    for variable in _THREADS_OF_LIBRARIES:  # workers already run in parallel
        os.environ.setdefault(variable, "1")
    os.environ.update(safe_variables())
    connection = _Connection()
    environments: _Environments | None = None
    while (message := connection.receive()) is not None:
        try:
            if environments is None:  # the first message, or a repeated one after a failure
                environments, answer = _greet(message)
            elif message[0] == _STEP:
                answer = environments.step(message)
            elif message[0] == _RESET:
                answer = environments.reset(message)
            else:
                answer = environments.render(message)
        except BaseException as error:  # including sys.exit() in an environment
            answer = _error(error)
        if not connection.send(answer):
            break
    if environments is not None:
        environments.close()


class _Connection:
    """Connection to the caller over the socket on standard input, which is then hidden from environments."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self._buffer = memoryview(bytearray(1 << 16))

    def receive(self) -> memoryview | None:
        """Return the next message without its length, valid until the next call; None once the socket is closed."""
        have, expected = 0, _LENGTH.size
        while have < expected:
            try:
                count = self._socket.recv_into(self._buffer[have:])
            except OSError:
                return None
            if count == 0:
                return None
            have += count
            if have >= _LENGTH.size:
                expected = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
            if expected > len(self._buffer):
                larger = memoryview(bytearray(expected))
                larger[:have] = self._buffer[:have]
                self._buffer = larger
        return self._buffer[_LENGTH.size : expected]

    def send(self, message: bytes) -> bool:
        """Send a message with its length; return False if the caller has closed the socket."""
        try:
            self._socket.sendall(message)
        except OSError:
            return False
        return True


def make_env(env_id: str, **kwargs: Any) -> gymnasium.Env:
    """Make an environment.

    Args:
        env_id: Id for gymnasium.make, or "module:name" of a class or function that creates the environment.
        **kwargs: Keyword arguments of gymnasium.make.
    """
    import gymnasium

    module, _, name = env_id.rpartition(":")
    if module and callable(getattr(importlib.import_module(module), name, None)) and name not in gymnasium.registry:
        return gymnasium.make(gymnasium.envs.registration.EnvSpec(name, env_id), **kwargs)
    return gymnasium.make(env_id, **kwargs)


class _Environments:
    """Environments of this process's slots, each created when it is first reset."""

    def __init__(self, env_id: str, kwargs: dict[str, Any], behavior: Sequence[str]) -> None:
        import numpy as np

        from neuroevo.envs.gymnasium import spaces

        self._asarray, self._frombuffer, self._seed_numpy = np.asarray, np.frombuffer, np.random.seed
        self._behavior, self._numbers = behavior, struct.Struct(f"<{len(behavior)}d")
        self._make: Callable[[], gymnasium.Env] = lambda: make_env(env_id, **kwargs)
        env = self._make()
        self._spare: gymnasium.Env | None = env  # used by the first slot
        self._max_episode_steps = (env.spec and env.spec.max_episode_steps) or 0
        self._slots: dict[int, gymnasium.Env] = {}
        self._observations = spaces.observations(env.observation_space)
        self._actions = spaces.actions(env.action_space)
        self._screen: tuple[int, ...] = (0, 0, 3)
        if env.render_mode == "rgb_array":
            env.reset(seed=0)
            screen = np.asarray(env.render())
            if screen.dtype != np.uint8 or screen.ndim != 3 or screen.shape[2] != 3:
                raise TypeError(f"the screen is {screen.dtype} {screen.shape}, expected uint8 (height, width, 3)")
            self._screen = screen.shape

    def describe(self) -> bytes:
        """Return the message that describes the spaces."""
        observations, actions = self._observations, self._actions
        shape = observations.shape
        parts = [
            struct.pack(
                f"<BIBI{len(shape)}q", _SPEC, _VERSION, _DTYPES.index(observations.dtype.name), len(shape), *shape
            )
        ]
        parts.append(struct.pack("<Bq", actions.low is None, actions.count))
        if actions.low is not None and actions.high is not None:
            parts += [actions.low.tobytes(), actions.high.tobytes()]
        parts.append(struct.pack("<qII", self._max_episode_steps, *self._screen[:2]))
        return _with_length(b"".join(parts))

    def reset(self, message: memoryview) -> bytes:
        """Start an episode of a slot."""
        _, slot, seed = _RESET_FIELDS.unpack(message)
        if slot not in self._slots:
            self._slots[slot], self._spare = self._spare or self._make(), None
        random.seed(seed % _SEEDS)
        self._seed_numpy(seed % _SEEDS)
        observation, info = self._slots[slot].reset(seed=seed % _SEEDS)
        return self._result(0.0, 0, observation, [float(info.get(key, math.nan)) for key in self._behavior])

    def step(self, message: memoryview) -> bytes:
        """Step a slot."""
        _, slot = _STEP_BEGIN.unpack_from(message)
        given: np.ndarray = self._frombuffer(message, self._actions.dtype, -1, _STEP_BEGIN.size)
        action = self._actions.decode(given)
        observation, reward, terminated, truncated, info = self._slots[slot].step(action)
        missing = [key for key in self._behavior if key not in info]
        if missing:
            has = f"its keys are {', '.join(map(str, info))}" if info else "it is empty"
            raise ValueError(f"info has no key {missing[0]!r}, which env.options.behavior names; {has}")
        behavior = [float(info[key]) for key in self._behavior]
        return self._result(float(reward), bool(terminated) | bool(truncated) << 1, observation, behavior)

    def render(self, message: memoryview) -> bytes:
        """Return the screen of a slot."""
        _, slot = _RENDER_FIELDS.unpack(message)
        screen = self._asarray(self._slots[slot].render())
        if screen.dtype != "uint8" or screen.shape != self._screen:
            expected = f"uint8 {self._screen} as in the first frame"
            raise ValueError(f"the screen is {screen.dtype} {screen.shape}, expected {expected}")
        return _with_length(bytes([_SCREEN]) + screen.tobytes())

    def close(self) -> None:
        """Close all environments, ignoring exceptions."""
        for env in [*self._slots.values(), *([self._spare] if self._spare else [])]:
            with suppress(Exception):
                env.close()

    def _result(self, reward: float, ended: int, observation: object, behavior: Sequence[float]) -> bytes:
        encoded = self._numbers.pack(*behavior) + self._observations.encode(observation)
        length = _RESULT_BEGIN.size - _LENGTH.size + len(encoded)
        return _RESULT_BEGIN.pack(length, _RESULT, reward, ended) + encoded


def _greet(message: memoryview) -> tuple[_Environments, bytes]:
    """Create the environments that the first message describes, and the answer."""
    kind, version, caller = _HELLO_BEGIN.unpack_from(message)
    if (kind, version) != (_HELLO, _VERSION):
        raise ValueError(f"the first message is of kind {kind}, version {version}, expected {_HELLO}, {_VERSION}")
    if os.getppid() != caller:  # the caller died before prctl() took effect
        sys.exit()
    env_id, at = _text(message, _HELLO_BEGIN.size)
    kwargs, at = _text(message, at)
    behavior, _ = _text(message, at)
    environments = _Environments(env_id, json.loads(kwargs), behavior.split("\n") if behavior else [])
    return environments, environments.describe()


def _text(message: memoryview, at: int) -> tuple[str, int]:
    """Return the text at an offset of a message, and the offset after it."""
    (length,) = _LENGTH.unpack_from(message, at)
    begin = at + _LENGTH.size
    return bytes(message[begin : begin + length]).decode(), begin + length


def _error(error: BaseException) -> bytes:
    """Encode an exception: its last line, and its traceback if user code raised it."""
    last = shortened("".join(traceback.format_exception_only(error)).strip())
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    parts = map(shortened, traceback.format_exception(type(error), error, frames))
    where = "".join(parts).strip()[-_MAX_TRACEBACK:]
    texts = [text.encode("utf-8", "replace") for text in (last, where if _in_their_code(error) else "")]
    return _with_length(b"".join([bytes([_ERROR]), *(_LENGTH.pack(len(text)) + text for text in texts)]))


def _in_their_code(error: BaseException | None) -> bool:
    """Return whether the exception or one of its causes passed through user code.

    An unknown environment, module or keyword argument raises an exception that only passes through this package and
    the code that imports and instantiates an environment class.
    """
    known = (_PACKAGE, "<frozen importlib", os.path.dirname(importlib.__file__))
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            if not frame.filename.startswith(known) and not frame.filename.endswith(_REGISTRATION):
                return True
        error = error.__cause__
    return False


def _with_length(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message
