"""Run the command neuroevo as a child process that does not outlive its parent.

When the parent exits for any reason, Linux sends SIGTERM to the child, which stores its state and exits. Other systems
have no such mechanism, so the child keeps running there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from neuroevo.cli import main
from neuroevo.cli.common import reported_errors
from neuroevo.system.processes import end_with


def run(arguments: list[str]) -> None:
    """Run a neuroevo command line as a child process.

    Args:
        arguments: The parent's process id, then the arguments of the command.

    Raises:
        SystemExit: The command has finished, or the parent has already exited.
    """
    end_with(int(arguments[0]))
    sys.argv = ["neuroevo", *arguments[1:]]
    main()


def run_implementation(arguments: list[str]) -> None:
    """Train a trial of a sweep with another implementation, in a child process.

    Args:
        arguments: The parent's process id, the implementation, the configuration file, the trial's folder, and "1" to
            allow external code referenced by the configuration, else "0".

    Raises:
        SystemExit: Training failed, or the parent has already exited.
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
