"""How the native core's C interface (custom_ops/c_api/neuroevo.h) is called: its structures, and arrays as pointers.

It takes pointers and trusts their lengths, so whoever calls it checks the shape of every array with what is here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from neuroevo.errors import native_error
from neuroevo.ops import core


class EnvSpec(ctypes.Structure):
    """neuroevo_env_spec."""

    _fields_ = [
        ("observation_dtype", ctypes.c_char_p),
        ("observation_shape", ctypes.POINTER(ctypes.c_int64)),
        ("observation_rank", ctypes.c_int64),
        ("action_dtype", ctypes.c_char_p),
        ("num_actions", ctypes.c_int64),
        ("frame_skip", ctypes.c_int64),
        ("behavior_dtype", ctypes.c_char_p),
        ("behavior_shape", ctypes.POINTER(ctypes.c_int64)),
        ("behavior_rank", ctypes.c_int64),
        ("render_shape", ctypes.POINTER(ctypes.c_int64)),
        ("render_rank", ctypes.c_int64),
        ("action_low", ctypes.POINTER(ctypes.c_float)),
        ("action_high", ctypes.POINTER(ctypes.c_float)),
        ("state_size", ctypes.c_int64),
    ]


class Episodes(ctypes.Structure):
    """neuroevo_episodes."""

    _fields_ = [
        ("episodes", ctypes.c_int64),
        ("genome_of", ctypes.c_void_p),
        ("seeds", ctypes.c_void_p),
        ("max_frames", ctypes.c_void_p),
        ("normalizers", ctypes.c_void_p),
        ("genomes", ctypes.c_int64),
        ("networks", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("theta_of", ctypes.c_void_p),
        ("base_seeds", ctypes.c_void_p),
        ("chain_splits", ctypes.c_void_p),
        ("chain_seeds", ctypes.c_void_p),
        ("chain_scales", ctypes.c_void_p),
        ("thetas", ctypes.c_int64),
        ("theta_values", ctypes.c_void_p),
        ("theta_size", ctypes.c_int64),
    ]


class Ended(ctypes.Structure):
    """neuroevo_ended."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("episodes", ctypes.POINTER(ctypes.c_int64)),
        ("failures", ctypes.POINTER(ctypes.c_char_p)),
        ("moments_size", ctypes.c_int64),
        ("moments", ctypes.POINTER(ctypes.c_double)),
        ("behavior_bytes", ctypes.c_int64),
        ("behaviors", ctypes.c_void_p),
    ]


i64 = ctypes.c_int64
ref = ctypes.byref


def array(values: Sequence, dtype: np.dtype | type) -> np.ndarray:
    return np.ascontiguousarray(values, dtype)


def indices(name: str, values: Sequence[int]) -> np.ndarray:
    """Slots or rows: int64 [K]. ValueError: they have another rank."""
    indices = np.asarray(values, np.int64)
    if indices.ndim != 1:
        raise ValueError(f"{name} has shape {list(indices.shape)}, expected [K]")
    return np.ascontiguousarray(indices)


def shaped(name: str, values: Sequence, dtype: np.dtype | type, shape: tuple[int, ...]) -> np.ndarray:
    """The values as a contiguous array. ValueError: they have another shape."""
    array = np.asarray(values, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(shape)}")
    return np.ascontiguousarray(array)


def sized(rows: np.ndarray) -> tuple[np.ndarray, ctypes.c_int64]:
    return rows, i64(len(rows))


def strings(texts: Sequence[str]) -> ctypes.Array:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def call(function: str, *arguments: object) -> None:
    """Calls neuroevo_<function>; arrays go as pointers, kept alive by this frame until it returns."""
    library = core()
    pointers = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
    if getattr(library, f"neuroevo_{function}")(*pointers) != 0:
        library.neuroevo_last_error.restype = ctypes.c_char_p
        raise native_error(library.neuroevo_last_error().decode())
