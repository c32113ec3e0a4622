"""Callbacks that receive the events of a run: progress displays, trackers, and user functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from typing_extensions import override

from neuroevo.algorithms.base import Played
from neuroevo.config.schema import Config
from neuroevo.training.record import Record


class Callback:
    """Base class for receiving the events of a run; a subclass overrides the methods that it needs.

    An exception in any of these methods ends the run, which can be resumed.
    """

    def begin(self, config: Config, folder: Path, generation: int) -> None:
        """Handle the start of a run, before the first generation is played.

        Args:
            config: The run's configuration.
            folder: The run's folder.
            generation: The generation with which the run starts or continues.
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
            finished: Number of the phase's episodes that are over.
            steps: Steps of those that ended since the phase began, for computing a rate: an episode whose outcome a
                resumed run already has, or that was tested during earlier generations, is not among them.
        """

    def population(self, generation: int, played: Played, steps: np.ndarray, novelties: np.ndarray | None) -> None:
        """Handle the end of a generation's population and validation, before anything of it is written.

        Args:
            generation: The generation's number.
            played: The population, with behaviors if they are recorded.
            steps: Steps of all episodes of each genome, int64 [N].
            novelties: Novelty of each genome, float64 [N], NaN where its behavior is unknown; None if not measured.
        """

    def generation(self, record: Record) -> None:
        """Handle a generation's record, which is complete and has been written.

        Test episodes fill idle slots, so a record may come after later generations have been played.

        Args:
            record: The record.
        """

    def end(self, error: BaseException | None) -> None:
        """Handle the end of a run, once after begin(), when its files are written.

        Args:
            error: The exception that ended it, such as KeyboardInterrupt; None where its budget is spent.
        """


AnyCallback: TypeAlias = Callback | Callable[[Record], object]
"""A callback, or a function of each generation's record."""


class Callbacks(Callback):
    """Several callbacks as one, called in their order."""

    def __init__(self, given: Iterable[AnyCallback]):
        """Combine callbacks, without calling any.

        Args:
            given: The callbacks; a function receives only the records of generations.

        Raises:
            TypeError: One is neither a Callback nor a function.
        """
        self._all = [each if isinstance(each, Callback) else _OfGenerations(each) for each in given]
        self._begun: list[Callback] = []

    @override
    def begin(self, config: Config, folder: Path, generation: int) -> None:
        for each in self._all:
            each.begin(config, folder, generation)
            self._begun.append(each)

    @override
    def phase(self, generation: int, name: str, episodes: int) -> None:
        for each in self._all:
            each.phase(generation, name, episodes)

    @override
    def progress(self, finished: int, steps: int) -> None:
        for each in self._all:
            each.progress(finished, steps)

    @override
    def population(self, generation: int, played: Played, steps: np.ndarray, novelties: np.ndarray | None) -> None:
        for each in self._all:
            each.population(generation, played, steps, novelties)

    @override
    def generation(self, record: Record) -> None:
        for each in self._all:
            each.generation(record)

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
        self._function(record)
