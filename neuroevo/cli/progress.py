"""Shows how a run goes: a live bar and a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import override

from neuroevo.system.console import clock, say
from neuroevo.training.callback import Callback
from neuroevo.training.record import Record, describe

_SILENCE_SECONDS = 60.0  # after which a line says how far a phase is

_Column = tuple[str, int, Callable[[Record], str]]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _test(record: Record) -> str:
    error = "" if record.test.standard_error is None else f" ± {record.test.standard_error:,.1f}"
    return _number(record.test.mean) + error


_COLUMNS: list[_Column] = [
    ("gen", 4, lambda record: str(record.generation)),
    ("mean", 9, lambda record: _number(float(record.fitness.mean()))),
    ("max", 9, lambda record: _number(float(record.fitness.max()))),
    ("elite valid.", 12, lambda record: _number(record.validation_mean)),
    ("elite test", 17, _test),
    ("steps", 12, lambda record: f"{record.steps_total:,}"),
    ("steps/s", 8, lambda record: f"{record.steps_per_s:,.0f}"),
    ("idle", 6, lambda record: f"{record.idle_share:.1%}"),
    ("time", 9, lambda record: clock(record.seconds_total)),
]


class PlainProgress(Callback):
    """Prints a line per generation, for files and pipes, and after a minute without one a line about the phase."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        """Prints nothing yet.

        Args:
            now: A clock, in seconds.
        """
        self._now = now
        self._printed = self._begun = now()
        self._phase, self._episodes = "", 0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

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
        self._print(describe(record))

    def _print(self, text: str) -> None:
        say(text)
        self._printed = self._now()


class TerminalProgress(Callback):
    """Shows a live bar for the current phase, and above it a table that gains a row per generation."""

    def __init__(self, console: Console):
        """Shows nothing yet.

        Args:
            console: The terminal.
        """
        self._console = console
        self._bar = Progress(
            TextColumn("generation {task.fields[number]} {task.description:10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("episodes {task.fields[rate]:>7,.0f} steps/s"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._begun = 0.0
        self._headed = False

    def __enter__(self) -> TerminalProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @override
    def phase(self, generation: int, name: str, episodes: int) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=episodes, number=generation, rate=0.0)
        self._begun = time.perf_counter()

    @override
    def progress(self, finished: int, steps: int) -> None:
        if self._task is not None:
            rate = steps / max(time.perf_counter() - self._begun, 1e-9)
            self._bar.update(self._task, completed=finished, rate=rate)

    @override
    def generation(self, record: Record) -> None:
        if not self._headed:
            self._headed = True
            self._line(" ".join(f"{name:>{width}}" for name, width, _ in _COLUMNS))
        self._line(" ".join(f"{show(record):>{width}}" for _, width, show in _COLUMNS))
        if record.failures:
            self._line(f"     {record.failure_summary}")

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def make_progress() -> TerminalProgress | PlainProgress:
    """Chooses the display that fits standard output.

    Returns:
        The display, to be used as a context manager.
    """
    console = Console()
    return TerminalProgress(console) if console.is_terminal else PlainProgress()
