"""Exceptions that end a command with one clear line, and near misses of words."""

from __future__ import annotations

import errno


class UserError(ValueError):
    """A mistake in a command, a configuration or a path. The message names the value and what was expected."""


class NotTrustedError(UserError):
    """A run names code or models that are not the package's, and nothing shows that this user made it; see trust."""


class DiskError(RuntimeError):
    """A file could not be written because the disk is full or broken (exit code 1, one clear line)."""


class NativeError(RuntimeError):
    """Something in the native core failed; the message is the core's own."""


class NativeArgumentError(NativeError):
    """The native core was asked for something that is not valid or that there is not."""


class EnvironmentFailure(NativeError):
    """An environment of Gymnasium raised something, did not answer in time, or ended its process (exit code 1).

    The message's first line says which, where and why; what it raised follows with its own traceback.
    """


class SimulationError(RuntimeError):
    """All episodes that something had to be chosen by failed, so that there is nothing to go on from (exit code 1)."""


def shortened(text: str, most: int = 4_000) -> str:
    """Return a text, without its middle where it is too long for a message.

    Args:
        text: The text.
        most: Characters that it may have.
    """
    left_out, half = len(text) - most, most // 2
    if left_out <= 0:
        return text
    return f"{text[:half]} ... ({left_out:,} characters left out) ... {text[-half:]}"


def cannot_write(what: str, error: OSError) -> Exception:
    """What to raise when writing failed: DiskError if the disk is full or broken, UserError if it is not allowed there.

    Args:
        what: Follows "cannot write" in the message, such as "to the run folder runs/x".
        error: Of the call that failed.
    """
    return _cannot(f"write {what}", error)


def cannot_read(what: str, error: OSError) -> Exception:
    """What to raise when reading failed: DiskError if the disk is broken, UserError if it is not allowed there.

    Args:
        what: Follows "cannot read" in the message, such as "the run folder runs/x".
        error: Of the call that failed.
    """
    return _cannot(f"read {what}", error)


def _cannot(do: str, error: OSError) -> Exception:
    kind = DiskError if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) else UserError
    return kind(f"cannot {do}: {error.strerror}")
