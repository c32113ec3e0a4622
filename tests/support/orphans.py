"""Detection of orphaned processes: with adopted() they become children of this process."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36  # of <sys/prctl.h>


@contextmanager
def adopted() -> Iterator[None]:
    """Within the block, what a descendant of this process leaves behind is this process's child."""
    _set_reaper(1)
    try:
        yield
    finally:
        _set_reaper(0)


def expect_none(seconds: float = 120) -> None:
    """Waits until this process has no children. AssertionError: some are still there after that time.

    The caller has waited for all that it has started.
    """
    deadline = time.monotonic() + seconds
    with suppress(ChildProcessError):  # no children are left
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        raise AssertionError(f"processes stay for {seconds} s: {_children()}")


def _children() -> dict[int, str]:
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        for child in (thread / "children").read_text().split():
            with suppress(OSError):
                command = Path("/proc", child, "cmdline").read_bytes()
                found[int(child)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def _set_reaper(on: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
