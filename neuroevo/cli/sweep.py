"""The command `neuroevo sweep`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Overrides, reported_errors, sigterm_raises


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(sweep)


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A sweep's TOML file, such as those in experiments/sweeps/.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder, metavar="PATH", help="The sweep's folder [default: the file's, or runs/NAME]."
        ),
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(min=1, help="Number of trials at a time [default: the file's, or 1].")
    ] = None,
    overrides: Overrides = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report on the trials that are there; start none.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Search values of a configuration's keys with Ray Tune, go on with a sweep that was stopped, and report on it."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.sweeps.tune.ledger import Ledger
        from neuroevo.sweeps.tune.sweep import load_sweep
        from neuroevo.sweeps.tune.tuner import require_tune, run_sweep
        from neuroevo.system.console import say

        chosen = load_sweep(file, overrides or [], out, concurrent)
        if not report_only:
            require_tune(chosen.settings.search)
            try:
                run_sweep(chosen)
            except KeyboardInterrupt as interrupt:
                command = shlex.join(["neuroevo", *sys.argv[1:]])
                raise type(interrupt)(f"; go on with: {command} (--report-only shows what is there)") from None
        for trial in Ledger.read(chosen.out).trials.values():
            say(str(trial))
