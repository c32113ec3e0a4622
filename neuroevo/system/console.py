"""Standard output whose reader may go away, as head does when it has its lines."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress


def say(text: str) -> None:
    """Prints a line at once, of what goes on for hours: its results are in files, so that it does not end with whoever
    reads the lines. Once that has gone, it says so on standard error, and nothing more on standard output."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        mute()
        with suppress(BrokenPipeError):
            message = "neuroevo: nobody reads the output any more; what was begun goes on, and Ctrl-C ends it"
            print(message, file=sys.stderr, flush=True)


def nobody_reads() -> bool:
    """Whether standard output is a pipe or the like that nobody reads."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):  # it is closed, or no file
        return False
    poll = select.poll()
    poll.register(output, 0)  # errors are told of always
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def mute() -> None:
    """Lets all that is still to be written to standard output disappear, what Python holds back for its end too."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def clock(seconds: float) -> str:
    """hours:minutes:seconds, with as many hours as there are."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
