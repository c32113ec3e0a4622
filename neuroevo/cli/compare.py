"""The command `neuroevo compare`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, reported_errors, sigterm_raises
from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from neuroevo.comparison.runner import JobFailure, JobResult
    from neuroevo.comparison.settings import Comparison, Job


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(compare)


def compare(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A comparison's TOML file, such as those in experiments/compare/.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder, metavar="PATH", help="The folder of results [default: the file's, or runs/NAME]."
        ),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report on what is there; measure nothing.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run the same evolution strategy here, on Brax, and by other libraries on Brax; measure and plot it all."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.comparison.report import write_report
        from neuroevo.comparison.runner import done
        from neuroevo.comparison.settings import load_comparison, require_packages
        from neuroevo.system.console import say

        comparison = load_comparison(file, out)
        failures: list[JobFailure] = []
        if not report_only:
            require_packages(comparison.settings)
            failures = _run(comparison)
        if not done(comparison.jobs, comparison.out):
            raise UserError(f"there is no result of {file} in {comparison.out}; without --report-only they are made")
        say("\n" + write_report(comparison))
        say(f"tables, curves and what differs between the simulators are in {comparison.out}")
        if failures:
            print(f"neuroevo: {len(failures)} of {len(comparison.jobs)} jobs failed:", file=sys.stderr)
            for each in failures:
                print(f"  {each.job.name} {each.reason}", *each.output, sep="\n    ", file=sys.stderr, flush=True)
            raise typer.Exit(1)


def _run(comparison: Comparison) -> list[JobFailure]:
    from neuroevo.comparison.runner import JobFailure, done, run_jobs
    from neuroevo.system.console import say

    before = len(done(comparison.jobs, comparison.out))
    say(f"{len(comparison.jobs)} jobs, {before} of them done, {comparison.devices} devices or cores")

    def on_end(end: JobResult | JobFailure) -> None:
        say(f"{end.job.name} {end.reason}" if isinstance(end, JobFailure) else _line(end))

    def on_start(job: Job) -> None:
        say(f"{job.name} ...")

    try:
        return run_jobs(comparison, on_start, on_end)
    except KeyboardInterrupt as interrupt:
        command = shlex.join(["neuroevo", *sys.argv[1:]])
        raise type(interrupt)(f"; to resume: {command} (--report-only reports on finished jobs)") from None


def _line(result: JobResult) -> str:
    from neuroevo.comparison.report import useful_rate

    text = f"{result.job.name}: {result.seconds:.0f} s"
    if result.job.kind == "evolve" and result.rows:
        last = result.rows[-1]
        text += f", of it compiling {last['compile_seconds']:.0f}; test {last['test_mean']:,.1f}"
        text += f", {useful_rate(result):,.0f} useful steps/s"
    if result.job.kind == "throughput":
        text += "; " + ", ".join(f"{row['width']:,}: {row['steps_per_s']:,.0f}/s" for row in result.rows)
    return text
