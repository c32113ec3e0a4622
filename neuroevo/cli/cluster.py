"""The commands `neuroevo cluster ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from neuroevo.cli.common import Debug, reported_errors, sigterm_raises
from neuroevo.core.errors import UserError

commands = typer.Typer(help="Inspect a Ray cluster that evaluates episodes.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(commands, name="cluster")


@commands.command()
def check(
    address: Annotated[str, typer.Argument(help="local, auto, or HOST:PORT of the cluster's head.")] = "auto",
    debug: Debug = False,
) -> None:
    """List the machines of a Ray cluster, with the reason for each machine that cannot play episodes."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.core.extras import require

        require("cluster", "ray")
        from neuroevo.cluster.connection import join, leave
        from neuroevo.cluster.probe import probe

        leaves = join(address)
        try:
            reports = probe()
        finally:
            if leaves:
                leave()
        for report in reports:
            can = report.why_not or "can play"
            details = ", ".join(
                text
                for key, text in (
                    ("python", "Python {}"),
                    ("gpu", "GPU {}"),
                    ("shared_mib", "{} MiB of /dev/shm"),
                    ("milliseconds", "{:.1f} ms round trip"),
                )
                if (value := report.details.get(key))
                for text in [text.format(value)]
            )
            head = " (head)" if report.is_head else ""
            print(f"{report.host}{head}: {report.cores} cores; {can}" + (f"; {details}" if details else ""))
            for warning in report.warnings:
                print(f"  {warning}")
        able = [report for report in reports if not report.why_not]
        print(f"{len(able)} of {len(reports)} machines can play, with {sum(report.cores for report in able)} cores")
        if not able:
            raise UserError(f"no machine of the cluster at {address!r} can play")
