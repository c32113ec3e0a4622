"""The command `neuroevo`. Exit codes: 0, 1 for a failure, 2 for a user's mistake, 130 for Ctrl-C, 143 for SIGTERM,
129 for SIGHUP, 141 if nobody reads what it prints."""

from __future__ import annotations

import os
import sys

import typer

from neuroevo.cli import bench, config, evaluate, export, info, render, suite, train

app = typer.Typer(
    help="Neuroevolution of deep networks: emulators on the CPU, a population of networks beside them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for commands in (train, evaluate, export, render, suite, config, info, bench):
    commands.register(app)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except (SystemExit, KeyboardInterrupt) as end:
        code = 130 if isinstance(end, KeyboardInterrupt) else end.code
        if code != 130:
            raise
        # Once a Ctrl-C has come while exec() ran a text, as in the making of a dataclass, Python 3.11 ends with SIGINT
        # instead of any exit code. Everything is closed by now, so this is all that is left to do at exit.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
