"""Processes: usable cores, checks whether a process is running, and children that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1; all cores if the system has no affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with(parent: int) -> None:
    """Ask Linux to send this process SIGTERM when its parent ends.

    Args:
        parent: The parent's process id.

    Raises:
        SystemExit: The parent has ended already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


def this_process() -> dict[str, Any]:
    """Describe this process for is_running()."""
    return {"pid": os.getpid(), "host": platform.node(), "began": _began(os.getpid()), "boot": _boot()}


def is_running(process: Mapping[str, Any]) -> bool:
    """Return whether a process is running on this machine, as far as can be known."""
    pid = process.get("pid")
    here = process.get("host") == platform.node() and process.get("boot") == _boot()
    began = process.get("began")
    return here and type(pid) is int and pid > 0 and began is not None and began == _began(pid)


def _began(pid: int) -> str | None:
    """Return the start time of a process in ticks since boot; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
