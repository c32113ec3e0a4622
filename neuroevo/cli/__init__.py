"""The command `neuroevo`. Exit codes: 0, 1 for a failure, 2 for a user's mistake, 130 for Ctrl-C, 143 for SIGTERM."""

from __future__ import annotations

import sys

import typer

from neuroevo.cli import bench, config, info, play, suite, train

app = typer.Typer(
    help="Neuroevolution of deep networks: emulators on the CPU, a population of networks beside them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for commands in (train, play, suite, config, info, bench):
    commands.register(app)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
