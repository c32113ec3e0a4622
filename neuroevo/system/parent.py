"""Processes that do not outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def end_with(parent: int) -> None:
    """Asks Linux to send this process SIGTERM when its parent ends.

    Args:
        parent: The parent's process id.

    Raises:
        SystemExit: The parent has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)
