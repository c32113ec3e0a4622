"""Shows how a sweep goes: a line per event, and on a terminal a live table of the trials below the lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from typing_extensions import override

from neuroevo.sweeps.space import value_text
from neuroevo.sweeps.status import describe
from neuroevo.sweeps.sweep import Sweep, Trial
from neuroevo.sweeps.watcher import SweepWatcher
from neuroevo.system.console import say

SECONDS_BETWEEN_LINES = 30  # about one trial's generations
_ROWS = 20  # of the live table


class PlainSweepWatcher(SweepWatcher):
    """Prints a line per event, for files and pipes; at most every half a minute one about a trial's generations."""

    def __init__(self, sweep: Sweep) -> None:
        """Shows nothing yet.

        Args:
            sweep: The sweep.
        """
        self._sweep = sweep
        self._rows: dict[int, Mapping[str, Any]] = {}
        self._last_line: dict[int, float] = {}

    def __enter__(self) -> PlainSweepWatcher:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @override
    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        of = Counter(trial.status for trial in trials)
        begun = [f"{of[status]} {status}" for status in of if status != "waiting"]
        known = f" ({', '.join(begun)} before)" if begun else ""
        search = self._sweep.settings.search
        how = "" if search == "grid" else f", {search} maximizing {self._metric}"
        self._say(f"{total} trials{known}, {parallel} in parallel, in {self._sweep.out}{how}")

    @override
    def started(self, trial: Trial, resumes: bool) -> None:
        if trial.number in self._last_line:  # another part of population-based training, or another process
            return
        values = ", ".join(f"{key} {value_text(value)}" for key, value in trial.values.items())
        self._say(f"{trial.name} {'resumes' if resumes else 'starts'}" + (f": {values}" if values else ""))
        self._last_line[trial.number] = time.monotonic()

    @override
    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        self._rows[trial.number] = row
        if time.monotonic() - self._last_line.get(trial.number, 0.0) >= SECONDS_BETWEEN_LINES:
            self._last_line[trial.number] = time.monotonic()
            self._generation(trial)

    @override
    def unreadable(self, trial: Trial, reason: str) -> None:
        self._say(f"{trial.name} continues, but cannot be shown: {reason}")

    @override
    def ended(self, trial: Trial) -> None:
        reason = trial.reason.partition("\n")[0]
        self._say(f"{trial.name} {reason or trial.status}{self._clause(trial)}")

    @property
    def _metric(self) -> str:
        return self._sweep.metric

    def _generation(self, trial: Trial) -> None:
        self._say(f"{trial.name}{self._clause(trial)}")

    def _clause(self, trial: Trial) -> str:
        row = self._rows.get(trial.number)
        if row is None:
            return ""
        return f": {describe(self._sweep.config(trial), dict(row))}"

    def _value(self, row: Mapping[str, Any]) -> str:
        value = row.get(self._metric)
        return "-" if value is None else f"{value:,.2f}"

    def _say(self, text: str) -> None:
        say(text)


class TerminalSweepWatcher(PlainSweepWatcher):
    """Prints the same lines except those about generations; below, shows a table of the trials, the best first."""

    def __init__(self, sweep: Sweep, console: Console):
        """Shows nothing yet.

        Args:
            sweep: The sweep.
            console: The terminal.
        """
        super().__init__(sweep)
        self._console = console
        self._trials: dict[int, Trial] = {}
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> TerminalSweepWatcher:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    @override
    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        super().begin(trials, total, parallel)
        self._trials = {trial.number: trial for trial in trials}

    @override
    def started(self, trial: Trial, resumes: bool) -> None:
        super().started(trial, resumes)
        self._trials[trial.number] = trial

    @override
    def ended(self, trial: Trial) -> None:
        super().ended(trial)
        self._trials[trial.number] = trial

    @override
    def tick(self) -> None:
        self._live.update(self.table(), refresh=True)

    def table(self) -> Table:
        """Makes the table: trials with a result, the best first, then those that have begun.

        Returns:
            The table, of as many rows as fit.
        """
        table = Table("trial", *self._sweep.space, self._metric, "generations", "steps", "status", box=None)

        def place(trial: Trial) -> tuple[bool, float, int]:
            value = self._rows.get(trial.number, {}).get(self._metric)
            return value is None, -(value or 0.0), trial.number

        begun = [trial for trial in self._trials.values() if trial.status != "waiting"]
        for trial in sorted(begun, key=place)[:_ROWS]:
            row = self._rows.get(trial.number, {})
            done = [self._value(row), str(row["generation"] + 1), f"{row['steps_total']:,}"] if row else ["-", "-", "-"]
            values = [value_text(trial.values[key]) if key in trial.values else "-" for key in self._sweep.space]
            table.add_row(trial.name, *values, *done, trial.status)
        return table

    @override
    def _generation(self, trial: Trial) -> None:
        pass

    @override
    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def make_sweep_watcher(sweep: Sweep) -> PlainSweepWatcher:
    """Chooses the watcher that fits standard output.

    Args:
        sweep: The sweep.

    Returns:
        The watcher, to be used as a context manager.
    """
    console = Console()
    return TerminalSweepWatcher(sweep, console) if console.is_terminal else PlainSweepWatcher(sweep)
