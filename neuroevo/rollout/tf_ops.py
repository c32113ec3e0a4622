"""The TensorFlow ops, and the core's own words out of the errors that TensorFlow makes of them."""

from __future__ import annotations

import functools
import re
from contextlib import suppress
from types import ModuleType

import tensorflow as tf

from neuroevo.core.errors import native_error
from neuroevo.native.library import core, cuda, library_path

# Around the words of an op: of one that Python called, and of one in a graph, with where each of its nodes was made.
_NODE_MADE = r"Detected at node .*\n(?:<stack traces unavailable>\n|  .*\n|\n)*"
_BEFORE = re.compile(rf"\A(?:\{{\{{.*?\}}\}} |Graph execution error:\n\n(?:{_NODE_MADE})*)")
_AFTER = re.compile(r"(?:\s*\[\[\{\{[^\n]*\}\}\]\])*(?: \[Op:\w+\][^\n]*)?\Z")


def core_words(error: tf.errors.OpError) -> str:
    """The message without what TensorFlow puts around it."""
    return _AFTER.sub("", _BEFORE.sub("", error.message), count=1)


def in_core_words(error: BaseException) -> BaseException:
    """A NativeError in place of one of TensorFlow's, which is its cause; of any other error itself."""
    if not isinstance(error, tf.errors.OpError):
        return error
    said = native_error(core_words(error))
    said.__cause__ = error
    return said


@functools.cache
def load_ops() -> ModuleType:
    """The TensorFlow ops, as a module of functions."""
    for device in tf.config.list_physical_devices("GPU"):
        # RuntimeError: TensorFlow is at work already, with what memory it took. ValueError: it was given a part of it.
        with suppress(RuntimeError, ValueError):
            tf.config.experimental.set_memory_growth(device, True)  # what it does not need is for the rows
    core()
    with suppress(OSError):  # gpu() says why
        cuda()  # the backend of the ops on TensorFlow's GPUs
    return tf.load_op_library(str(library_path("libneuroevo_tf_ops.so")))
