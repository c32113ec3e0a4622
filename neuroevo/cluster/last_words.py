"""Message that is printed if the process is terminated before it can print one itself."""

from __future__ import annotations

import subprocess


class LastWords:
    """Line that is printed to standard error if this process terminates before `withdraw()`, for any reason.

    A child process prints it when a pipe that this process holds open is closed.

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
        """Terminate the child without printing. May be called more than once."""
        self._child.communicate(b"\n")
