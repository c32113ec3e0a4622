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
            metavar="RUN...", help="Folders of runs, also in progress, or of sweeps, or folders that contain runs."
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine that serves the page; 0: any free port.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder, metavar="DIR", help="Write the page as files to a new folder instead of serving it."
        ),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GENERATION:INDEX",
            help="With --export: members of the first run to render [default: the fittest of six generations].",
        ),
    ] = None,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Explore populations in the browser: the behavior and ancestry of each member, and videos of members playing.

    The page is served on this machine only, at a secret address, and needs no network. A run that references external
    code and that you did not create is shown without --trust, but its members cannot be played.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.core.extras import require

        require("inspect", "starlette", "uvicorn", "plotly")
        from neuroevo.inspector.inspection import Inspection

        if member and export is None:
            raise UserError("--member requires --export DIR; on the served page, click a member to play it")
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
