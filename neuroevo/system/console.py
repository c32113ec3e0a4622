"""Printing to standard output when its reader may exit early, as `head` does."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress


def say(text: str) -> None:
    """Print a line of a long-running command and flush it.

    The results of such a command are in files, so it must not end when the process that reads its output exits. Once
    that has happened, the next call reports it on standard error and mutes standard output.

    Args:
        text: The line.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        mute()
        with suppress(BrokenPipeError):
            message = "neuroevo: the reader of the output has exited; the run continues, and Ctrl-C ends it"
            print(message, file=sys.stderr, flush=True)


def output_is_unread() -> bool:
    """Return whether standard output is a pipe or a socket whose reader has closed it."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):  # standard output is closed, or not a file
        return False
    poll = select.poll()
    poll.register(output, 0)  # poll() always reports errors, whatever the mask
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def mute() -> None:
    """Discard all further output to standard output, including what Python has buffered until it exits."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def clock(seconds: float) -> str:
    """Format a duration as hours:minutes:seconds, where hours may exceed 24.

    Args:
        seconds: The duration, which is rounded to whole seconds.

    Returns:
        Text such as "0:05:00" or "125:00:07".
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
