"""What a suite reports while its runs go on: to whom, and how a run failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuroevo.sweeps.status import Row, RunStatus
from neuroevo.sweeps.suite import SuiteRun


@dataclass(frozen=True)
class Failure:
    """A run that did not finish.

    Attributes:
        run: The run.
        reason: What happened, as the end of a sentence that begins with the run's name.
        output: The last lines that its process printed.
    """

    run: SuiteRun
    reason: str
    output: list[str]


class SuiteWatcher:
    """Hears from `run_suite` how a suite goes. This one ignores it all."""

    def begin(self, statuses: Sequence[RunStatus], parallel: int) -> None:
        """Called before the first run is started.

        Args:
            statuses: How far every run is.
            parallel: Number of runs that will go on at a time.
        """

    def started(self, run: SuiteRun, generations: int, threads: int | None) -> None:
        """Called when a run's process has been started.

        Args:
            run: The run.
            generations: Number of generations that it has finished before.
            threads: Its worker threads; None leaves the number to the run.
        """

    def generation(self, run: SuiteRun, row: Row) -> None:
        """Called when a run has finished one or more generations.

        Args:
            run: The run.
            row: The last generation's numbers, from metrics.csv.
        """

    def unreadable(self, run: SuiteRun, reason: str) -> None:
        """Called once for a run whose metrics.csv cannot be read, so that its generations are not heard of.

        Args:
            run: The run.
            reason: What is wrong with the file, with its name.
        """

    def finished(self, now: RunStatus) -> None:
        """Called when a run is finished.

        Args:
            now: The run as it is now.
        """

    def failed(self, failure: Failure) -> None:
        """Called when a run's process could not be started, or ended without finishing the run.

        Args:
            failure: What happened.
        """

    def tick(self) -> None:
        """Called several times a second."""
