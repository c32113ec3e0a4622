"""`python -m neuroevo.child PID ...`: the command neuroevo as a child of process PID that does not outlive it.

When the parent dies, killed or not, Linux sends the child SIGTERM: it writes a checkpoint and ends. Other systems have
nothing like it, and there the child runs on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from neuroevo.cli import main

_PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>


def end_with(parent: int) -> None:
    """Has this process, a child of process `parent`, sent SIGTERM when that one dies; ends it if it is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)


def run(arguments: list[str]) -> None:
    """Runs the command line `arguments`, whose first is the parent's process id."""
    end_with(int(arguments[0]))
    sys.argv = ["neuroevo", *arguments[1:]]
    main()


if __name__ == "__main__":
    run(sys.argv[1:])
