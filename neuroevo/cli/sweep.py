"""The command `neuroevo sweep`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Overrides, Trust, reported_errors, sigterm_raises
from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from neuroevo.sweeps.sweep import Sweep, Trial


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
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
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Number of trials in parallel [default: the file's, or 1].")
    ] = None,
    overrides: Overrides = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report on the existing trials without starting any.")
    ] = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Train a grid of configurations x games x seeds, or search hyperparameters; resumes interrupted trials."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.sweeps.report import write_report
        from neuroevo.sweeps.status import status_of
        from neuroevo.sweeps.study import Study
        from neuroevo.sweeps.sweep import load_sweep
        from neuroevo.system.console import say

        chosen = load_sweep(file, overrides or [], out, parallel, trust)
        if not report_only:
            run_all(chosen)
        study = Study(chosen.out, chosen.trust)
        trials = study.trials(chosen)
        if all(trial.status == "waiting" for trial in trials):
            raise UserError(f"no trial of {file} in {chosen.out} has started; omit --report-only to start them")
        tell = print if report_only else say
        tell("\n" + write_report(chosen, [status_of(chosen, trial) for trial in trials], study))
        tell(f"this table, CSV files and figures are in {chosen.out}")
        failed = [trial for trial in trials if trial.status == "failed"]
        if failed and not report_only:
            report_failures(failed, chosen)
            raise typer.Exit(1)


def run_all(chosen: Sweep) -> None:
    """Run the unfinished trials of a sweep and show their progress; an interrupt's message says how to resume."""
    from neuroevo.cli.sweep_progress import SweepProgress
    from neuroevo.sweeps.driver import run_sweep

    progress = SweepProgress(chosen)
    try:
        with progress.live:
            run_sweep(chosen, progress)
    except KeyboardInterrupt as interrupt:
        command = shlex.join(["neuroevo", *sys.argv[1:]])
        raise type(interrupt)(f"; to resume: {command} (--report-only reports on finished generations)") from None


def report_failures(failed: Sequence[Trial], chosen: Sweep) -> None:
    """Print each failure to standard error, with the last lines of the trial's output."""
    print(f"neuroevo: {len(failed)} of {chosen.trials} trials failed:", file=sys.stderr)
    for trial in failed:
        how, *output = trial.reason.splitlines()
        print(f"  {trial.name} {how}{'; the last lines of its output:' if output else ''}", file=sys.stderr)
        print("".join(f"    {line}\n" for line in output), end="", file=sys.stderr, flush=True)
