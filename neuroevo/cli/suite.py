"""The command `neuroevo suite`."""

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
    from neuroevo.sweeps.suite import Suite
    from neuroevo.sweeps.watcher import Failure


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(suite)


def suite(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A suite's TOML file, such as those in experiments/suites/.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder, metavar="PATH", help="The suite's folder [default: the file's, or runs/NAME]."
        ),
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Number of runs at a time [default: the file's, or 1].")
    ] = None,
    overrides: Overrides = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report on the runs that are there; start none.")
    ] = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Train games x seeds x configurations, resume runs that were stopped, and report on all of them."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.sweeps.report import write_report
        from neuroevo.sweeps.status import status_of
        from neuroevo.sweeps.suite import load_suite
        from neuroevo.system.console import say

        chosen = load_suite(file, overrides or [], out, parallel, trust)
        failures = [] if report_only else run_all(chosen)
        statuses = [status_of(run) for run in chosen.runs]
        if report_only and all(each.status == "not started" for each in statuses):
            raise UserError(f"there is no run of {file} in {chosen.out}; without --report-only they are started")
        tell = print if report_only else say
        tell("\n" + write_report(statuses, chosen.out, chosen.scales))
        tell(f"this table, CSV files and learning curves are in {chosen.out}")
        if failures:
            report_failures(failures, len(chosen.runs))
            raise typer.Exit(1)


def run_all(chosen: Suite) -> list[Failure]:
    """Starts or resumes all runs of a suite that are not finished, and shows their progress.

    Args:
        chosen: The suite.

    Returns:
        The runs that failed.

    Raises:
        KeyboardInterrupt: The suite was interrupted or terminated; the message says how to resume it.
    """
    from neuroevo.cli.suite_progress import make_suite_watcher
    from neuroevo.sweeps.runner import run_suite

    with make_suite_watcher() as watcher:
        try:
            return run_suite(chosen, watcher)
        except KeyboardInterrupt as interrupt:
            command = shlex.join(["neuroevo", *sys.argv[1:]])
            raise type(interrupt)(f"; go on with: {command} (--report-only shows what is there)") from None


def report_failures(failures: Sequence[Failure], runs: int) -> None:
    """Prints each failure to standard error, with the last lines of the run's output.

    Args:
        failures: The runs that failed.
        runs: The number of all runs of the suite.
    """
    print(f"neuroevo: {len(failures)} of {runs} runs failed:", file=sys.stderr)
    for failure in failures:
        output = f"; {failure.run.beside('.out')} ends with:" if failure.output else ""
        print(f"  {failure.run.name} {failure.reason}{output}", file=sys.stderr)
        print("".join(f"    {line}\n" for line in failure.output), end="", file=sys.stderr, flush=True)
