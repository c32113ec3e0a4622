"""Callbacks that receive the events of a run: progress displays, trackers, and user functions."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from typing_extensions import override

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.schema import Config
from neuroevo.training.record import Record


class Stop(Exception):  # noqa: N818 - no error, like StopIteration
    """Request to finish a run after the current generation: raised by a callback, or returned by a function of records.

    The run counts as finished: its last elites are tested, and `neuroevo.train(..., resume="auto")` returns it without
    further training. With resume=True the run continues.

    Example:
        >>> def until_two_hundred(record):
        ...     if record.row()["validation_mean"] > 200:
        ...         raise neuroevo.Stop("validation is above 200")
    """


class Callback:
    """Base class for receiving the events of a run; a subclass overrides the methods that it needs.

    If a method raises `Stop`, the run finishes after the current generation. Any other exception ends the run
    immediately; the run can then be resumed.

    Attributes:
        stopped: Reason for finishing the run after the current generation; "" if no callback has raised `Stop`.

    Raises:
        TypeError: A method of a subclass seems to be a misspelt method of Callback.
    """

    stopped: str = ""

    def __init_subclass__(cls) -> None:
        """Check the names of the methods, since a method with a misspelt name would never be called."""
        super().__init_subclass__()
        for name in vars(cls):
            if callable(vars(cls)[name]) and not name.startswith("_") and name not in _events():
                for meant in difflib.get_close_matches(name.removeprefix("on_"), _events(), n=1, cutoff=0.85):
                    raise TypeError(f"callback {cls.__name__} has a method '{name}'; did you mean {meant}?")

    def begin(self, config: Config, folder: Path, generation: int) -> None:
        """Handle the start of a run, before the first generation is played.

        Args:
            config: The run's configuration.
            folder: The run's folder.
            generation: Index of the next generation.
        """

    def phase(self, generation: int, name: str, episodes: int) -> None:
        """Handle the start of a phase.

        Args:
            generation: The generation's number.
            name: "population", "validation" or "test".
            episodes: Number of episodes that will be played.
        """

    def progress(self, finished: int, steps: int) -> None:
        """Handle the progress of a phase, a few times per second.

        Args:
            finished: Number of finished episodes of the phase.
            steps: Steps of the episodes that finished since the phase began, for computing a rate. Excludes episodes
                with outcomes from before a resume, and test episodes played during earlier generations.
        """

    def population(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:
        """Handle the end of a generation's population and validation, before they are written to the run's folder.

        Args:
            generation: The generation's number.
            played: The evaluated population, with behaviors if they are recorded.
            steps: Total steps of each genome's episodes, int64 [N].
            novelties: Novelty of each genome, float64 [N], NaN where its behavior is unknown; None if not measured.
        """

    def generation(self, record: Record) -> None:
        """Handle a generation's complete record, after it is written to the run's folder.

        Test episodes fill idle slots, so a record may come after later generations have been played.

        Args:
            record: The record.
        """

    def end(self, error: BaseException | None) -> None:
        """Handle the end of a run, after its files are written. Called once for each begin().

        Args:
            error: The exception that ended the run, such as KeyboardInterrupt; None if the run is finished.
        """


def _events() -> list[str]:
    """Return the names of the methods that receive events."""
    return [name for name, each in vars(Callback).items() if callable(each) and not name.startswith("_")]


class Patience(Callback):
    """Callback for early stopping: finishes a run whose metric has not risen for a number of generations.

    Args:
        generations: Number of generations without a rise after which the run is finished, at least 1. The count
            restarts when a run is resumed.
        metric: Name of a column of metrics.csv.
        min_delta: Smallest difference that counts as a rise.

    Raises:
        ValueError: `generations` is below 1.
    """

    def __init__(self, generations: int, metric: str = "fitness_max", min_delta: float = 0.0):
        if generations < 1:
            raise ValueError(f"generations is {generations}, expected at least 1")
        self._generations, self._metric, self._min_delta = generations, metric, min_delta
        self._best, self._since = -math.inf, 0

    @override
    def generation(self, record: Record) -> None:
        row = record.row()
        if self._metric not in row:
            raise ValueError(f"metric is '{self._metric}', expected one of {', '.join(row)}")
        value = row[self._metric]
        if value is not None and value > self._best + self._min_delta:
            self._best, self._since = value, 0
            return
        self._since += 1
        if self._since >= self._generations:
            raise Stop(f"{self._metric} has not risen above {self._best:,.10g} for {self._since} generations")


AnyCallback: TypeAlias = Callback | Callable[[Record], object]
"""A callback, or a function of each generation's record."""


class Callbacks(Callback):
    """Combination of several callbacks, called in order."""

    def __init__(self, given: Iterable[AnyCallback]):
        """Combine callbacks, without calling any.

        Args:
            given: The callbacks; a function receives the records of generations only.

        Raises:
            TypeError: A callback is neither a Callback nor a function, or overrides no method.
        """
        self._all = [each if isinstance(each, Callback) else _OfGenerations(each) for each in given]
        self._begun: list[Callback] = []
        for each in self._all:
            if all(getattr(type(each), name) is getattr(Callback, name) for name in _events()):
                raise TypeError(f"callback {type(each).__name__} has none of the methods {', '.join(_events())}")

    @override
    def begin(self, config: Config, folder: Path, generation: int) -> None:
        for each in self._all:
            self._notify(each.begin, config, folder, generation)
            self._begun.append(each)

    @override
    def phase(self, generation: int, name: str, episodes: int) -> None:
        for each in self._all:
            self._notify(each.phase, generation, name, episodes)

    @override
    def progress(self, finished: int, steps: int) -> None:
        for each in self._all:
            self._notify(each.progress, finished, steps)

    @override
    def population(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:
        for each in self._all:
            self._notify(each.population, generation, played, steps, novelties)

    @override
    def generation(self, record: Record) -> None:
        for each in self._all:
            self._notify(each.generation, record)

    def _notify(self, method: Callable[..., None], *event: object) -> None:
        try:
            method(*event)
        except Stop as stop:
            self.stopped = self.stopped or str(stop) or "a callback stopped it"

    @override
    def end(self, error: BaseException | None) -> None:
        """Notify all callbacks that have begun, even if one raises an exception; then raise the first exception."""
        raised: list[BaseException] = []
        for each in self._begun:
            try:
                each.end(error)
            except BaseException as its_own:  # noqa: BLE001 - raised below
                raised.append(its_own)
        if raised:
            raise raised[0]


class _OfGenerations(Callback):
    """Callback that calls a function with each generation's record."""

    def __init__(self, function: Callable[[Record], object]):
        if not callable(function):
            raise TypeError(f"a callback is {function!r}, expected a neuroevo.Callback or a function of a record")
        self._function = function

    @override
    def generation(self, record: Record) -> None:
        returned = self._function(record)
        if isinstance(returned, Stop):
            raise returned
