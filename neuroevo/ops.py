"""The only loader of the native libraries in neuroevo/_lib, which `make build` makes."""

from __future__ import annotations

import ctypes
import functools
import json
from pathlib import Path
from types import ModuleType

from neuroevo.limits import MAX_THREADS

LIBRARY_FOLDER = Path(__file__).parent / "_lib"
_FAMILY_LIBRARIES = ("libneuroevo_atari.so",)


def _path(name: str) -> Path:
    path = LIBRARY_FOLDER / name
    if not path.is_file():
        raise FileNotFoundError(f"native library {name} is not built: expected {path}; `make build` makes it")
    return path


@functools.cache
def core() -> ctypes.CDLL:
    """The core with its C interface (custom_ops/rollout/c_api.h), and every environment family that was built."""
    library = ctypes.CDLL(str(_path("libneuroevo_core.so")))
    for name in _FAMILY_LIBRARIES:
        if (LIBRARY_FOLDER / name).is_file():
            ctypes.CDLL(str(LIBRARY_FOLDER / name))
    return library


@functools.cache
def tf_ops() -> ModuleType:
    """The TensorFlow ops, as a module of functions."""
    import tensorflow as tf

    core()
    return tf.load_op_library(str(_path("libneuroevo_tf_ops.so")))


def set_threads(threads: int) -> None:
    """Worker threads of the env pools and populations made from now on; in [1, 4096]. ValueError."""
    if threads > MAX_THREADS:  # what does not fit 32 bits would arrive as another number
        raise ValueError(f"threads is {threads}, expected one in [1, {MAX_THREADS}]")
    if core().neuroevo_set_threads(threads) != 0:
        core().neuroevo_last_error.restype = ctypes.c_char_p
        raise ValueError(core().neuroevo_last_error().decode())


def get_threads() -> int:
    """Worker threads that a pool made now would get; by default one per core that this process may run on."""
    threads = core().neuroevo_get_threads()
    if threads == 0:
        core().neuroevo_last_error.restype = ctypes.c_char_p
        raise RuntimeError(core().neuroevo_last_error().decode())
    return threads


def busy_seconds() -> float:
    """Time that the pool's threads have spent with environments and networks so far, summed over the threads."""
    core().neuroevo_busy_seconds.restype = ctypes.c_double
    return core().neuroevo_busy_seconds()


def build_info() -> dict[str, object]:
    """How the native libraries were built: compiler, architecture, versions."""
    return json.loads(_path("build_info.json").read_text())
