"""Progress of a run: a live bar and a table on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import override

from neuroevo.config.schema import Config
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import rows_of
from neuroevo.sessions.generation_table import GenerationTable
from neuroevo.system.console import clock, say
from neuroevo.training.callback import Callback
from neuroevo.training.record import Record, describe_row
from neuroevo.training.time_left import TimeLeft

_SILENCE_SECONDS = 60.0  # without output, before a line about the phase is printed
_LAST_ROWS = 5  # number of earlier rows shown when a run is resumed


class PlainProgress(Callback):
    """Printer for files and pipes: a line per generation, and after a minute without output a line about the phase."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        """Start the clock.

        Args:
            now: A clock, in seconds.
        """
        self._now = now
        self._printed = self._begun = now()
        self._phase, self._episodes = "", 0
        self._left: TimeLeft | None = None

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @override
    def begin(self, config: Config, folder: Path, generation: int) -> None:
        self._left = TimeLeft(config.training)
        for row in _last_rows(folder, generation):
            self._left.add(row)
            self._print(describe_row(row))

    @override
    def phase(self, generation: int, name: str, episodes: int) -> None:
        self._phase, self._episodes, self._begun = f"{name} of generation {generation}", episodes, self._now()

    @override
    def progress(self, finished: int, steps: int) -> None:
        now = self._now()
        if now - self._printed < _SILENCE_SECONDS:
            return
        seconds = now - self._begun
        rate = f", {steps / seconds:,.0f} steps/s" if steps and seconds else ""
        self._print(f"  {self._phase}: {finished:,} of {self._episodes:,} episodes after {clock(seconds)}{rate}")

    @override
    def generation(self, record: Record) -> None:
        left = None
        if self._left is not None:
            self._left.add(record.row())
            left = self._left.seconds()
        self._print(str(record) + (f"; about {clock(left)} left" if left else ""))

    def _print(self, text: str) -> None:
        say(text)
        self._printed = self._now()


class TerminalProgress(Callback):
    """Display on a terminal: a live bar for the current phase below a table with a row per generation."""

    def __init__(self, console: Console):
        """Make the bar, without showing it.

        Args:
            console: The terminal.
        """
        self._console = console
        self._bar = Progress(
            TextColumn("generation {task.fields[number]} {task.description:10}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:>6,.0f} steps/s"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._table = GenerationTable()
        self._task: TaskID | None = None
        self._begun = self._told = 0.0
        self._left: TimeLeft | None = None

    def __enter__(self) -> TerminalProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @override
    def begin(self, config: Config, folder: Path, generation: int) -> None:
        self._left = TimeLeft(config.training)
        for row in _last_rows(folder, generation):
            self._add(row)

    @override
    def phase(self, generation: int, name: str, episodes: int) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=episodes, number=generation, rate=0.0, left=self._time_left())
        self._begun = time.perf_counter()

    @override
    def progress(self, finished: int, steps: int) -> None:
        if self._task is not None:
            rate = steps / max(time.perf_counter() - self._begun, 1e-9)
            self._bar.update(self._task, completed=finished, rate=rate, left=self._time_left())

    @override
    def generation(self, record: Record) -> None:
        self._add(record.row())
        if record.failures:
            self._line(f"     {record.failure_summary}")

    def _add(self, row: dict[str, Any]) -> None:
        if self._left is not None:
            self._left.add(row)
        self._told = time.perf_counter()
        for line in self._table.lines(row, self._console.width):
            self._line(line)

    def _time_left(self) -> str:
        """Return the estimated remaining time of the run, not of the phase, as text."""
        seconds = None if self._left is None else self._left.seconds()
        if seconds is None:
            return ""
        return f"{clock(max(0.0, seconds - (time.perf_counter() - self._told)))} left"

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def make_progress() -> TerminalProgress | PlainProgress:
    """Choose the display that fits standard output or the notebook.

    Returns:
        The display, to be used as a context manager.
    """
    console = Console()
    widgets = console.is_jupyter and find_spec("ipywidgets") is not None  # required by rich for a bar in notebooks
    return TerminalProgress(console) if console.is_terminal or widgets else PlainProgress()


def _last_rows(folder: Path, generation: int) -> Iterable[dict[str, Any]]:
    """Read the last rows of a run that is resumed."""
    if not generation:
        return ()
    with Database(folder / DATABASE) as database:
        return rows_of(database, max(generation - _LAST_ROWS, 0), fitness=False)
