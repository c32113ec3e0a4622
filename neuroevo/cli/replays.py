"""Options and progress bar shared by the commands that replay an elite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
ElitePath = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run's folder, or a genome file (see `neuroevo export --help`).")
]
Generation = Annotated[
    int | None, typer.Option(help="The generation of the elite [default: the last finished generation].")
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**63 - 1, help="Seed to draw the episodes' seeds from [default: the held-out seeds]."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file or folder.")]


@contextmanager
def progress_bar(episodes: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar during the block.

    The bar is shown on standard error if that is a terminal, so that standard output contains only results.

    Args:
        episodes: Number of episodes at which the bar is full.

    Yields:
        Function (finished, text) that updates the bar: the number of finished episodes, and a text to append.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("episodes{task.fields[text]}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=episodes, text="")
        yield lambda finished, text: bar.update(task, completed=finished, text=text)
