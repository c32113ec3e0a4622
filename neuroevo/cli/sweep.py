"""The command `neuroevo sweep`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Overrides, Trust, reported_errors, sigterm_raises
from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from neuroevo.sweeps.tune.sweep import Sweep


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
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Search values of a configuration's keys with Ray Tune, go on with a sweep that was stopped, and report on it."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.sweeps.tune.ledger import Ledger
        from neuroevo.sweeps.tune.report import write_report
        from neuroevo.sweeps.tune.status import statuses
        from neuroevo.sweeps.tune.sweep import load_sweep
        from neuroevo.system.console import say

        chosen = load_sweep(file, overrides or [], out, concurrent, trust)
        if not report_only:
            run_all(chosen)
        ledger = Ledger.read(chosen.out)
        if not ledger.trials:
            raise UserError(f"there is no trial of {file} in {chosen.out}; without --report-only they are started")
        ranked = statuses(ledger, chosen.metric, chosen.base, chosen.trust)
        tell = print if report_only else say
        tell("\n" + write_report(ranked, chosen.space, chosen.out))
        tell(f"this table, its CSV file, learning curves and parallel coordinates are in {chosen.out}")
        failed = sum(now.trial.status not in ("finished", "stopped") for now in ranked)
        if failed and not report_only:
            print(f"neuroevo: {failed} of {chosen.trials} trials failed", file=sys.stderr)
            raise typer.Exit(1)


def run_all(chosen: Sweep) -> None:
    """Runs the trials of a sweep that are not over, and shows their progress.

    Args:
        chosen: The sweep.

    Raises:
        KeyboardInterrupt: The sweep was interrupted or terminated; the message says how to go on.
    """
    from neuroevo.sweeps.tune.tuner import require_tune, run_sweep

    require_tune(chosen.settings.search)
    from neuroevo.cli.sweep_progress import make_sweep_watcher

    with make_sweep_watcher(chosen) as watcher:
        try:
            run_sweep(chosen, watcher)
        except KeyboardInterrupt as interrupt:
            command = shlex.join(["neuroevo", *sys.argv[1:]])
            raise type(interrupt)(f"; go on with: {command} (--report-only shows what is there)") from None
