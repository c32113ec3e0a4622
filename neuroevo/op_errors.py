"""What the core said, out of the errors that TensorFlow makes of it."""

from __future__ import annotations

import re

import tensorflow as tf

from neuroevo.errors import native_error

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
