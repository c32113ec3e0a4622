"""TensorFlow ops, and the conversion of their errors to errors of the core."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import ParamSpec, TypeVar

import numpy as np
import tensorflow as tf

from neuroevo.native.ffi import ErrorKind, error_of
from neuroevo.native.library import core, cuda, library_path

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")
_KIND = b"neuroevo.kind"  # the payload in which custom_ops/tf/kernel_util.cc puts an error's kind

# Text that TensorFlow adds to an op's message: for ops called from Python, and for graph nodes with their tracebacks.
_NODE_MADE = r"Detected at node .*\n(?:<stack traces unavailable>\n|  .*\n|\n)*"
_BEFORE = re.compile(rf"\A(?:\{{\{{.*?\}}\}} |Graph execution error:\n\n(?:{_NODE_MADE})*)")
_AFTER = re.compile(r"(?:\s*\[\[\{\{[^\n]*\}\}\]\])*(?: \[Op:\w+\][^\n]*)?\Z")


def core_words(error: tf.errors.OpError) -> str:
    """Return the core's message of an error, without the text that TensorFlow adds.

    Args:
        error: Error of an op.
    """
    return _AFTER.sub("", _BEFORE.sub("", error.message), count=1)


def kind_of(error: tf.errors.OpError) -> ErrorKind:
    """Return the kind of an error, which the core attaches to it as a payload.

    Args:
        error: Error of an op.

    Returns:
        The kind; INTERNAL for an error of TensorFlow itself.
    """
    return ErrorKind(int(error.experimental_payloads.get(_KIND, ErrorKind.INTERNAL)))


def in_core_words(error: BaseException) -> BaseException:
    """Convert an error of TensorFlow to an error of the core.

    Args:
        error: Any exception.

    Returns:
        A NativeError, or an EnvironmentFailure if an environment failed, whose cause is TensorFlow's error; any other
        exception unchanged.
    """
    if not isinstance(error, tf.errors.OpError):
        return error
    own = error_of(kind_of(error), core_words(error))
    own.__cause__ = error
    return own


def raises_native_errors(function: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """Decorate a function so that it raises the errors of in_core_words() in place of TensorFlow's.

    Args:
        function: A function that calls ops.
    """

    @functools.wraps(function)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Returned:
        try:
            return function(*args, **kwargs)
        except tf.errors.OpError as error:
            raise in_core_words(error) from error

    return run


def int64(values: Sequence[int] | np.ndarray | float) -> np.ndarray:
    """Convert values to int64 for the ops; fractions are truncated."""
    return np.asarray(values, np.int64)


@functools.cache
def load_ops() -> ModuleType:
    """Load the TensorFlow ops, as a module of functions."""
    for device in tf.config.list_physical_devices("GPU"):
        # RuntimeError: TensorFlow is initialized already. ValueError: the user has set a memory limit.
        with suppress(RuntimeError, ValueError):
            tf.config.experimental.set_memory_growth(device, True)  # leave the remaining memory for the rows
    core()
    with suppress(OSError):  # gpu() reports the reason
        cuda()  # the population ops may use its backend
    return tf.load_op_library(str(library_path("libneuroevo_tf_ops.so")))
