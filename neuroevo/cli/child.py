"""Run the command neuroevo as a child that does not outlive its parent.

When the parent ends for any reason, Linux sends the child SIGTERM, and the child stores its state and ends. Other
systems offer nothing like it, and there the child runs on.
"""

from __future__ import annotations

import sys

from neuroevo.cli import main
from neuroevo.system.processes import end_with


def run(arguments: list[str]) -> None:
    """Runs a command line of neuroevo as a child.

    Args:
        arguments: The parent's process id, then the arguments of the command.

    Raises:
        SystemExit: The command is over, or the parent has ended already.
    """
    end_with(int(arguments[0]))
    sys.argv = ["neuroevo", *arguments[1:]]
    main()
