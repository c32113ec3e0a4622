"""The command `neuroevo inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Trust, reported_errors, sigterm_raises
from neuroevo.core.errors import UserError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(inspect)


def inspect(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders of runs, which may be going on, of sweeps, or with runs in them."
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the page is served on this machine; 0: at a free port.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder, metavar="DIR", help="Write the page as files into a new folder; nothing is served."
        ),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GENERATION:INDEX",
            help="With --export: whose video is in it, of the first run [default: the fittest of six generations].",
        ),
    ] = None,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Look into populations on a page in the browser: everyone's behavior, who came from whom, anyone at play.

    The page is served on this machine alone, at an address that nobody else knows, and needs no network. A run of
    somebody else's that names code of theirs is shown without --trust, but nobody of it plays.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.core.extras import require

        require("inspect", "starlette", "uvicorn", "plotly")
        from neuroevo.inspector.inspection import Inspection

        if member and export is None:
            raise UserError("--member is for --export DIR; the page plays whoever is clicked on")
        with Inspection(runs, trust) as inspection:
            if export is None:
                from neuroevo.inspector.serving import serve

                serve(inspection, port, browser)
                return
            from neuroevo.inspector.export import export as write
            from neuroevo.inspector.export import parse_member

            chosen = [parse_member(each) for each in member or []]
            videos = write(inspection, export, chosen, lambda line: print(line, flush=True))
            print(f"wrote {export / 'index.html'} and {videos} video{'' if videos == 1 else 's'}", flush=True)
