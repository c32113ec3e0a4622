"""A message that a process leaves for the case that something ends it without a chance to print one."""

from __future__ import annotations

import subprocess


class LastWords:
    """A line on standard error that appears when this process ends before `withdraw()`, however it ends.

    A child process prints it; it waits for the end of a pipe that this process holds open.

    Args:
        text: The line.
    """

    def __init__(self, text: str):
        self._child = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _ || printf "%s\\n" "$0" >&2', text],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C reaches this process alone
        )

    def withdraw(self) -> None:
        """End the child without a line. May be called more than once."""
        self._child.communicate(b"\n")
