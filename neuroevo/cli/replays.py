"""What the commands that replay an elite share: options, and a live bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
Generation = Annotated[int | None, typer.Option(help="Of which generation [default: the last finished one].")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**63 - 1, help="What episodes' seeds follow from [default: the held-out ones]."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


@contextmanager
def progress_bar(episodes: int) -> Iterator[Callable[[int, str], None]]:
    """Yields a function of (how many episodes are over, a text beside that).

    The bar is on standard error, so that standard output holds results only; without a terminal there is none.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("episodes{task.fields[text]}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=episodes, text="")
        yield lambda finished, text: bar.update(task, completed=finished, text=text)
