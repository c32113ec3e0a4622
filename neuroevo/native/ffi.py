"""The native core's C interface (custom_ops/c_api/*.h) for ctypes: error kinds, structures and functions.

The C functions do not check array lengths, so callers check the shape of every array with the functions here. They are
called through neuroevo/native/library.py, which binds each function once with the tables below.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from enum import IntEnum

import numpy as np

from neuroevo.core.errors import EnvironmentFailure, NativeArgumentError, NativeError

ref = ctypes.byref


class ErrorKind(IntEnum):
    """Kind of an error: neuroevo_code, Error::Kind in C++. 0 stands for success."""

    INVALID_ARGUMENT = 1
    OUT_OF_RANGE = 2
    NOT_FOUND = 3
    INTERNAL = 4
    CANCELLED = 5
    ENVIRONMENT = 6


def error_of(kind: ErrorKind, words: str) -> NativeError:
    """Create the exception for an error of the core.

    Args:
        kind: Kind of the error.
        words: The core's message.

    Returns:
        EnvironmentFailure if an environment failed, NativeArgumentError if an argument is invalid or refers to
        something that does not exist, otherwise NativeError.
    """
    return _ERRORS.get(kind, NativeError)(words)


_ERRORS: Mapping[ErrorKind, type[NativeError]] = {
    ErrorKind.INVALID_ARGUMENT: NativeArgumentError,
    ErrorKind.NOT_FOUND: NativeArgumentError,
    ErrorKind.ENVIRONMENT: EnvironmentFailure,
}


class EnvSpec(ctypes.Structure):
    """Structure neuroevo_env_spec."""

    _fields_ = (
        ("observation_dtype", c_char_p),
        ("observation_shape", ctypes.POINTER(c_int64)),
        ("observation_rank", c_int64),
        ("action_dtype", c_char_p),
        ("num_actions", c_int64),
        ("frame_skip", c_int64),
        ("behavior_dtype", c_char_p),
        ("behavior_shape", ctypes.POINTER(c_int64)),
        ("behavior_rank", c_int64),
        ("render_shape", ctypes.POINTER(c_int64)),
        ("render_rank", c_int64),
        ("action_low", ctypes.POINTER(ctypes.c_float)),
        ("action_high", ctypes.POINTER(ctypes.c_float)),
        ("state_size", c_int64),
        ("action_names", c_char_p),
    )


class Episodes(ctypes.Structure):
    """Structure neuroevo_episodes."""

    _fields_ = (
        ("num_episodes", c_int64),
        ("episode_ids", c_void_p),
        ("episode_genomes", c_void_p),
        ("episode_seeds", c_void_p),
        ("episode_max_frames", c_void_p),
        ("episode_normalizers", c_void_p),
        ("num_genomes", c_int64),
        ("genome_ids", c_void_p),
        ("genome_networks", c_void_p),
        ("genome_sources", c_void_p),
        ("genome_seeds", c_void_p),
        ("genome_thetas", c_void_p),
        ("num_mutations", c_int64),
        ("chain_splits", c_void_p),
        ("chain_seeds", c_void_p),
        ("chain_scales", c_void_p),
        ("chain_spreads", c_void_p),
        ("num_thetas", c_int64),
        ("thetas", c_void_p),
        ("theta_size", c_int64),
    )


class Results(ctypes.Structure):
    """Structure neuroevo_results."""

    _fields_ = (
        ("count", c_int64),
        ("ids", ctypes.POINTER(c_int64)),
        ("returns", ctypes.POINTER(c_double)),
        ("steps", ctypes.POINTER(c_int64)),
        ("failures", ctypes.POINTER(c_char_p)),
        ("retries", ctypes.POINTER(c_int64)),
        ("observation_sums_size", c_int64),
        ("observation_sums", ctypes.POINTER(c_double)),
        ("behavior_bytes", c_int64),
        ("behaviors", ctypes.POINTER(ctypes.c_uint8)),
        ("total_steps", c_int64),
    )


def address(value: object) -> object:
    """Convert an argument for ctypes: an array to its address, other values unchanged.

    This is not a from_param() method because ctypes converts any exception in it to an ArgumentError, even Ctrl-C.

    Args:
        value: A contiguous array, which must live until the function returns; or a value that ctypes can pass.

    Raises:
        ValueError: The array is not contiguous.
    """
    if not isinstance(value, np.ndarray):
        return value
    if not value.flags.c_contiguous:
        raise ValueError(f"an array of shape {list(value.shape)} is not contiguous, expected a contiguous array")
    return value.ctypes.data


Pointer = c_void_p  # to an array or a ctypes object; None for null
_SLOTS = c_void_p, Pointer, c_int64  # a handle, slots or rows [K], and K
# Functions by name without the prefix "neuroevo_": return type, followed by argument types.
CORE: Mapping[str, tuple] = {
    "last_error": (c_char_p,),
    "set_threads": (c_int, c_int32),
    "get_threads": (c_int,),
    "free_bytes": (c_int64,),
    "busy_seconds": (c_double,),
    "trace_start": (c_int, c_int64),
    "trace_stop": (None,),
    "trace_read": (c_int, Pointer, c_int64, Pointer, Pointer),
    "env_pool_make": (c_int, c_char_p, Pointer, c_int64, c_int64, Pointer),
    "env_pool_free": (None, c_void_p),
    "env_pool_spec": (c_int, c_void_p, Pointer),
    "env_reset": (c_int, *_SLOTS, Pointer, Pointer, Pointer),
    "env_actions": (c_int, c_void_p, Pointer, c_int64, c_int64, Pointer),
    "env_step": (c_int, *_SLOTS, Pointer, Pointer, Pointer),
    "env_observe": (c_int, *_SLOTS, Pointer),
    "env_observe_normalized": (c_int, *_SLOTS, Pointer),
    "env_set_normalizer": (c_int, c_void_p, c_int64, Pointer, Pointer, c_int64),
    "env_drop_normalizers": (c_int, *_SLOTS),
    "env_record_behaviors": (c_int, c_void_p, c_int64, c_int64),
    "env_behavior": (c_int, *_SLOTS, Pointer),
    "env_render": (c_int, *_SLOTS, Pointer),
    "env_state": (c_int, *_SLOTS, Pointer),
    "env_failure": (c_int, c_void_p, c_int64, Pointer),
    "population_make": (c_int, c_char_p, Pointer, c_int64, c_int64, c_char_p, c_int64, Pointer),
    "population_free": (None, c_void_p),
    "population_dimension": (c_int, c_void_p, c_int64, Pointer),
    "population_replace": (c_int, c_void_p, c_int32, c_char_p),
    "population_init": (c_int, *_SLOTS, Pointer, Pointer),
    "population_assign": (c_int, *_SLOTS, Pointer, Pointer, c_int64),
    "population_read": (c_int, *_SLOTS, Pointer, c_int64),
    "population_perturb": (c_int, c_void_p, Pointer, Pointer, c_int64, Pointer, Pointer, Pointer),
    "population_forward": (c_int, *_SLOTS, Pointer, Pointer, Pointer),
    "population_clear_states": (c_int, *_SLOTS),
    "population_recurrent": (c_int, c_void_p, Pointer),
    "population_set_reference": (c_int, c_void_p, Pointer, c_int64),
    "population_prepare": (c_int, *_SLOTS),
    "population_statistics": (c_int, c_void_p, c_int64, Pointer, c_int64, Pointer),
    "rollout_start": (c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, Pointer),
    "rollout_submit": (c_int, c_void_p, Pointer, c_int64),
    "rollout_results": (c_int, c_void_p, c_int64, c_int64, Pointer),
    "results_free": (None, Pointer),
    "rollout_close": (c_int, c_void_p),
    "rollout_wait_for_end": (c_int, c_void_p, c_int64, Pointer),
    "rollout_free": (None, c_void_p),
    "noise_sum": (c_int, Pointer, Pointer, c_int64, c_int64, c_int64, Pointer, Pointer, Pointer),
    "population_make_low_rank": (c_int, c_char_p, Pointer, c_int64, c_int64, c_int64, c_int32, Pointer),
    "low_rank_sum": (c_int, c_char_p, c_int32, Pointer, Pointer, c_int64, c_int64, Pointer),
    "vector_make": (c_int, c_char_p, Pointer, c_int64, c_int64, c_char_p, c_int64, c_int32, Pointer),
    "vector_free": (None, c_void_p),
    "vector_get_spec": (c_int, c_void_p, Pointer),
    "vector_reset": (c_int, c_void_p, Pointer, Pointer, Pointer, Pointer),
    "vector_step": (c_int, c_void_p, Pointer, Pointer),
    "vector_render": (c_int, c_void_p, Pointer),
    "vector_failure": (c_int, c_void_p, c_int64, Pointer),
}
CUDA: Mapping[str, tuple] = {
    "cuda_why_not": (c_char_p,),
    "cuda_versions": (c_char_p,),
    "cuda_name": (c_char_p,),
    "cuda_free_bytes": (c_int64,),
    "cuda_noise_sum": CORE["noise_sum"],
}
GYMNASIUM: Mapping[str, tuple] = {"gymnasium_end_stuck": (None, c_double)}


def bind(library: ctypes.CDLL, functions: Mapping[str, tuple]) -> ctypes.CDLL:
    """Declare the argument and return types of a library's functions to ctypes, once for all callers.

    Args:
        library: The library.
        functions: The library's functions: CORE, CUDA or GYMNASIUM.

    Returns:
        The library.
    """
    for name, (returned, *taken) in functions.items():
        function = getattr(library, f"neuroevo_{name}")
        function.restype, function.argtypes = returned, taken
    return library


def indices(name: str, values: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return slots or rows as an array.

    Args:
        name: Name of the argument for errors.
        values: [K].

    Returns:
        int64 [K], contiguous.

    Raises:
        ValueError: The values have another rank.
    """
    indices = np.asarray(values, np.int64)
    if indices.ndim != 1:
        raise ValueError(f"{name} has shape {list(indices.shape)}, expected [K]")
    return np.ascontiguousarray(indices)


def shaped(name: str, values: Sequence | np.ndarray, dtype: np.dtype | type, shape: tuple[int, ...]) -> np.ndarray:
    """Return values as an array of a given dtype and shape.

    Args:
        name: Name of the argument for errors.
        values: The values.
        dtype: Dtype to convert to.
        shape: Expected shape.

    Returns:
        A contiguous array.

    Raises:
        ValueError: The values have another shape.
    """
    array = np.asarray(values, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(shape)}")
    return np.ascontiguousarray(array)


def sized(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Return an array and its length, as two arguments of a C function.

    Args:
        rows: [K, ...].
    """
    return rows, len(rows)


def strings(texts: Sequence[str]) -> ctypes.Array[c_char_p]:
    """Return texts as an array of C strings.

    Args:
        texts: Without zero bytes.
    """
    return (c_char_p * len(texts))(*(text.encode() for text in texts))
