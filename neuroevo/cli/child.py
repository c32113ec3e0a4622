"""Run the command neuroevo as a child that does not outlive its parent.

When the parent ends for any reason, Linux sends the child SIGTERM, and the child stores its state and ends. Other
systems offer nothing like it, and there the child runs on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from neuroevo.cli import main
from neuroevo.cli.common import reported_errors
from neuroevo.system.processes import end_with


def run(arguments: list[str]) -> None:
    """Run a command line of neuroevo as a child.

    Args:
        arguments: The parent's process id, then the arguments of the command.

    Raises:
        SystemExit: The command is over, or the parent has ended already.
    """
    end_with(int(arguments[0]))
    sys.argv = ["neuroevo", *arguments[1:]]
    main()


def run_implementation(arguments: list[str]) -> None:
    """Trains a trial of a sweep by another implementation, as a child.

    Args:
        arguments: The parent's process id, the implementation, the file of the configuration, the trial's folder, and
            "1" to trust what the configuration names, else "0".

    Raises:
        SystemExit: It has failed, or the parent has ended already.
    """
    from neuroevo.config.load import load_config
    from neuroevo.sweeps.implementations import train

    parent, implementation, file, folder, trust = arguments
    end_with(int(parent))
    try:
        with reported_errors():
            train(implementation, load_config(file, trust=trust == "1"), Path(folder))
    except typer.Exit as end:
        sys.exit(end.exit_code)
