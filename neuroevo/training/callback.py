"""What hears of a run while it goes on: progress displays, trackers, and functions of the user's own."""

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
    """Hears how a run goes; a subclass overrides what it wants to hear.

    An exception in any of these ends the run, which can be resumed.
    """

    def begin(self, config: Config, folder: Path, generation: int) -> None:
        """Called before the first generation is played.

        Args:
            config: The run's configuration.
            folder: The run's folder.
            generation: The generation that the run begins or goes on with.
        """

    def phase(self, generation: int, name: str, episodes: int) -> None:
        """Called when a phase begins.

        Args:
            generation: The generation's number.
            name: "population", "validation" or "test".
            episodes: Number of episodes that will be played.
        """

    def progress(self, finished: int, steps: int) -> None:
        """Called a few times a second while a phase goes on.

        Args:
            finished: Number of the phase's episodes that are over.
            steps: Of those that ended since the phase began, whose rate this is for: an episode that a resumed run
                knows, or that was tested beside the generations before, is not among them.
        """

    def population(self, generation: int, played: Played, steps: np.ndarray, novelties: np.ndarray | None) -> None:
        """Called when a generation's population and validation are over, before anything of it is written.

        Args:
            generation: The generation's number.
            played: The population, with behaviors if they are recorded.
            steps: Steps of all episodes of each genome, int64 [N].
            novelties: Of each genome, float64 [N], NaN where its behavior is unknown; None if it is not measured.
        """

    def generation(self, record: Record) -> None:
        """Called when a generation's record is complete and has been written.

        Test episodes fill idle slots, so a record may come after later generations have been played.

        Args:
            record: The record.
        """

    def end(self, error: BaseException | None) -> None:
        """Called once after begin(), when the run is over and its files are written.

        Args:
            error: What ended it, such as KeyboardInterrupt; None where its budget is spent.
        """


AnyCallback: TypeAlias = Callback | Callable[[Record], object]
"""A callback, or a function of each generation's record."""


class Callbacks(Callback):
    """Several callbacks as one, called in their order."""

    def __init__(self, given: Iterable[AnyCallback]):
        """Calls none yet.

        Args:
            given: The callbacks; a function hears of generations alone.

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
        """Tells all that have begun, also where one of them raises an exception; the first of these is raised then."""
        raised: list[BaseException] = []
        for each in self._begun:
            try:
                each.end(error)
            except BaseException as its_own:  # noqa: BLE001 - raised below
                raised.append(its_own)
        if raised:
            raise raised[0]


class _OfGenerations(Callback):
    """A function of each generation's record."""

    def __init__(self, function: Callable[[Record], object]):
        if not callable(function):
            raise TypeError(f"a callback is {function!r}, expected a neuroevo.Callback or a function of a record")
        self._function = function

    @override
    def generation(self, record: Record) -> None:
        self._function(record)
