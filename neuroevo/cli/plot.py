"""The command `neuroevo plot`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Trust, reported_errors
from neuroevo.cli.replays import Force
from neuroevo.core.errors import UserError

_KINDS = ("png", "pdf", "svg")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(plot)


def plot(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of runs, also in progress, or folders that contain runs."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The image to write: FILE.png, FILE.pdf or FILE.svg.")
    ] = Path("curves.png"),
    x: Annotated[Literal["frames", "steps", "time", "generations"], typer.Option(help="The x axis.")] = "frames",
    column: Annotated[
        str | None,
        typer.Option(
            "--y",
            metavar="NAME",
            help="The y axis, a column of metrics.csv [default: the elites' returns].",
            autocompletion=paths.columns,
        ),
    ] = None,
    behaviors: Annotated[
        bool, typer.Option("--map", help="Draw a map per run of the highest fitness by behavior instead.")
    ] = False,
    force: Force = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Plot the learning curves of one or several runs, or maps of behaviors.

    Runs that differ only in their seed become one line, their mean with its 95% confidence interval. Each environment
    has its own panel.
    """
    with reported_errors(debug):
        from neuroevo.analysis.behavior_maps import plot_maps
        from neuroevo.analysis.curves import figure_bytes
        from neuroevo.analysis.run_plots import plot as draw
        from neuroevo.runs.paths import runs_in
        from neuroevo.runs.reader import RunReader
        from neuroevo.system.files import written_aside

        kind = out.suffix.removeprefix(".").lower()
        if kind not in _KINDS:
            raise UserError(f"--out {out}: expected a name that ends in {', '.join(f'.{each}' for each in _KINDS)}")
        folders = list(dict.fromkeys(chain.from_iterable(runs_in(each.resolve()) for each in runs)))
        readers = [RunReader(each, trust=trust) for each in folders]
        if behaviors and column is not None:
            raise UserError(f"--y {column}: not supported with --map")
        figure = plot_maps(readers) if behaviors else draw(readers, x, column)
        with written_aside(out, force) as aside:
            aside.write_bytes(figure_bytes(figure, kind))
        what = "by behavior" if behaviors else f"against {x}"
        print(f"wrote {out}: {len(folders)} run{'' if len(folders) == 1 else 's'} {what}", flush=True)
