"""Progress of a sweep: a line per event, and on a terminal a live table of the trials below the lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from typing_extensions import override

from neuroevo.sweeps.driver import SweepWatcher
from neuroevo.sweeps.space import value_text
from neuroevo.sweeps.status import describe, number, rank
from neuroevo.sweeps.sweep import Sweep, Trial
from neuroevo.system.console import say

SECONDS_BETWEEN_LINES = 30  # about the generations of one trial
_ROWS = 20  # of the live table


class SweepProgress(SweepWatcher):
    """Printer of a line per event of a sweep.

    In files and pipes, lines about a trial's generations are at least half a minute apart. On a terminal, a table below
    the lines shows the generations instead, the best trial first, while the context manager `live` is entered.

    Args:
        sweep: The sweep.
        console: The console to print to; None: standard output.
    """

    def __init__(self, sweep: Sweep, console: Console | None = None):
        self._sweep, self._console = sweep, console or Console()
        self._trials: dict[int, Trial] = {}
        self._rows: dict[int, Mapping[str, Any]] = {}
        self._last_line: dict[int, float] = {}
        live = Live(console=self._console, auto_refresh=False, transient=True)
        self.live: Live | nullcontext[None] = live if self._console.is_terminal else nullcontext()

    @override
    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        self._trials = {trial.number: trial for trial in trials}
        of = Counter(trial.status for trial in trials if trial.status != "waiting")
        known = f" ({', '.join(f'{of[status]} {status}' for status in of)} before)" if of else ""
        search = self._sweep.settings.search
        how = "" if search == "grid" else f", {search} maximizing {self._sweep.metric}"
        self._say(f"{total} trials{known}, {parallel} in parallel, in {self._sweep.out}{how}")

    @override
    def started(self, trial: Trial, resumes: bool) -> None:
        self._trials[trial.number] = trial
        if trial.number in self._last_line:  # resumed by population-based training or by another process
            return
        values = ", ".join(f"{key} {value_text(value)}" for key, value in trial.values.items())
        self._say(f"{trial.name} {'resumes' if resumes else 'starts'}" + (f": {values}" if values else ""))
        self._last_line[trial.number] = time.monotonic()

    @override
    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        self._rows[trial.number] = row
        waited = time.monotonic() - self._last_line.get(trial.number, 0.0)
        if not isinstance(self.live, Live) and waited >= SECONDS_BETWEEN_LINES:
            self._last_line[trial.number] = time.monotonic()
            self._say(f"{trial.name}{self._clause(trial)}")

    @override
    def unreadable(self, trial: Trial, reason: str) -> None:
        self._say(f"{trial.name} continues, but its progress cannot be read: {reason}")

    @override
    def ended(self, trial: Trial) -> None:
        self._trials[trial.number] = trial
        reason = trial.reason.partition("\n")[0]
        self._say(f"{trial.name} {reason or trial.status}{self._clause(trial)}")

    @override
    def tick(self) -> None:
        if isinstance(self.live, Live):
            self.live.update(self.table(), refresh=True)

    def table(self) -> Table:
        """Build the table: trials with a result, best first, then other started trials, up to the maximum of rows."""
        sweep = self._sweep
        table = Table("trial", *sweep.space, sweep.metric, "generations", "steps", "status", box=None)
        begun = [(self._rows.get(each.number, {}), each) for each in self._trials.values() if each.status != "waiting"]
        for row, trial in sorted(begun, key=lambda each: rank(each[0].get(sweep.metric), each[1]))[:_ROWS]:
            values = [value_text(trial.values[key]) if key in trial.values else "-" for key in sweep.space]
            done = [str(row["generation"] + 1) if row else "-", number(row.get("steps_total"))]
            table.add_row(trial.name, *values, number(row.get(sweep.metric), 2), *done, trial.status)
        return table

    def _clause(self, trial: Trial) -> str:
        row = self._rows.get(trial.number)
        return f": {describe(self._sweep.config(trial), row)}" if row else ""

    def _say(self, text: str) -> None:
        if isinstance(self.live, Live):
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            say(text)
