"""Exceptions that end a command with a one-line message, and helpers for their messages."""

from __future__ import annotations

import errno


class UserError(ValueError):
    """A mistake in a command, a configuration or a path. The message contains the value and what was expected."""


class NotTrustedError(UserError):
    """A run references external code or models, and nothing shows that this user created the run; see trust."""


class DiskError(RuntimeError):
    """A file could not be written because the disk is full or broken (exit code 1, one clear line)."""


class NativeError(RuntimeError):
    """A call to the native core failed; the message is the core's own."""


class NativeArgumentError(NativeError):
    """An argument of a call to the native core is invalid, or what it refers to does not exist."""


class EnvironmentFailure(NativeError):
    """A Gymnasium environment raised an exception, did not answer in time, or ended its process (exit code 1).

    The message's first line states which environment failed, where and why; its exception and traceback follow.
    """


class SimulationError(RuntimeError):
    """All episodes on which a selection depends failed, so that the run cannot continue (exit code 1)."""


def shortened(text: str, most: int = 4_000) -> str:
    """Shorten a text that is too long for a message, by leaving out its middle.

    Args:
        text: The text.
        most: Maximum number of characters.
    """
    left_out, half = len(text) - most, most // 2
    if left_out <= 0:
        return text
    return f"{text[:half]} ... ({left_out:,} characters left out) ... {text[-half:]}"


def cannot_write(what: str, error: OSError) -> Exception:
    """Make the exception for a failed write: DiskError if the disk is full or broken, UserError otherwise.

    Args:
        what: Object of "cannot write" in the message, such as "to the run folder runs/x".
        error: Exception of the failed call.
    """
    return _cannot(f"write {what}", error)


def cannot_read(what: str, error: OSError) -> Exception:
    """Make the exception for a failed read: DiskError if the disk is broken, UserError otherwise.

    Args:
        what: Object of "cannot read" in the message, such as "the run folder runs/x".
        error: Exception of the failed call.
    """
    return _cannot(f"read {what}", error)


def is_of_disk(error: Exception) -> bool:
    """Return whether an error reports a full or broken disk."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _cannot(do: str, error: OSError) -> Exception:
    kind = DiskError if is_of_disk(error) else UserError
    return kind(f"cannot {do}: {error.strerror}")
