"""Shows how a suite goes: a line per event, and on a terminal live bars below the lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import override

from neuroevo.sweeps.status import Row, RunStatus, describe
from neuroevo.sweeps.suite import SuiteRun
from neuroevo.sweeps.watcher import Failure, SuiteWatcher
from neuroevo.system.console import say
from neuroevo.training.time_left import share_done

SECONDS_BETWEEN_LINES = 30  # about one run's generations


class PlainSuiteWatcher(SuiteWatcher):
    """Prints a line per event, for files and pipes; at most every half a minute one about a run's generations."""

    def __init__(self) -> None:
        self._last_line: dict[str, float] = {}

    def __enter__(self) -> PlainSuiteWatcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @override
    def begin(self, statuses: Sequence[RunStatus], parallel: int) -> None:
        of = Counter(each.status for each in statuses)
        known = ", ".join(f"{of[status]} {status}" for status in of)
        at_a_time = f", {parallel} at a time" if of["finished"] < len(statuses) else ""
        self._say(f"{len(statuses)} runs ({known}){at_a_time}")

    @override
    def started(self, run: SuiteRun, generations: int, threads: int | None) -> None:
        where = f"goes on from generation {generations}" if generations else "starts"
        self._say(f"{run.name} {where}" + (f", threads {threads}" if threads else ""))
        self._last_line[run.name] = time.monotonic()

    @override
    def generation(self, run: SuiteRun, row: Row) -> None:
        if time.monotonic() - self._last_line[run.name] >= SECONDS_BETWEEN_LINES:
            self._last_line[run.name] = time.monotonic()
            self._say(f"{run.name}: {describe(run, row)}")

    @override
    def unreadable(self, run: SuiteRun, reason: str) -> None:
        self._say(f"{run.name} goes on without being shown: {reason}")

    @override
    def finished(self, now: RunStatus) -> None:
        self._say(f"{now.run.name} finished: {describe(now.run, now.rows[-1])}")

    @override
    def failed(self, failure: Failure) -> None:
        self._say(f"{failure.run.name} {failure.reason}")

    def _say(self, text: str) -> None:
        say(text)


class TerminalSuiteWatcher(PlainSuiteWatcher):
    """Prints the same lines except those about generations; below, shows a bar for the suite and one for each run."""

    def __init__(self, console: Console):
        """Shows nothing yet.

        Args:
            console: The terminal.
        """
        super().__init__()
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            auto_refresh=False,  # tick() does it; a thread would be one too many beside the starting of processes
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> TerminalSuiteWatcher:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @override
    def begin(self, statuses: Sequence[RunStatus], parallel: int) -> None:
        super().begin(statuses, parallel)
        finished = sum(each.status == "finished" for each in statuses)
        self._suite = self._bars.add_task("all runs", total=len(statuses), completed=finished, text="")

    @override
    def started(self, run: SuiteRun, generations: int, threads: int | None) -> None:
        super().started(run, generations, threads)
        self._tasks[run.name] = self._bars.add_task(run.name, total=1.0, text="")

    @override
    def generation(self, run: SuiteRun, row: Row) -> None:
        self._bars.update(
            self._tasks[run.name], completed=share_done(run.config.training, row), text=describe(run, row)
        )

    @override
    def finished(self, now: RunStatus) -> None:
        super().finished(now)
        self._end(now.run)

    @override
    def failed(self, failure: Failure) -> None:
        super().failed(failure)
        self._end(failure.run)

    @override
    def tick(self) -> None:
        self._bars.refresh()

    def _end(self, run: SuiteRun) -> None:
        if run.name in self._tasks:  # not where it could not be started
            self._bars.remove_task(self._tasks.pop(run.name))
        self._bars.advance(self._suite)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def make_suite_watcher() -> PlainSuiteWatcher:
    """Chooses the watcher that fits standard output.

    Returns:
        The watcher, to be used as a context manager.
    """
    console = Console()
    return TerminalSuiteWatcher(console) if console.is_terminal else PlainSuiteWatcher()
