"""TensorBoard event files: scalars and the histogram of fitness per generation, the configuration as hyperparameters.

Written in the caller's thread: tensorboardX's SummaryWriter hands events to a thread of its own, and when that dies, of
a full disk say, the writer waits for it forever.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog

from neuroevo.training.record import Record

_GROUPS = ("fitness", "validation", "test", "steps", "frames", "failures", "seconds")


class TensorBoardWriter:
    """Appends to a new event file in `folder`; a step is a generation."""

    def __init__(self, folder: Path, hyperparameters: Mapping[str, Any], first_generation: int):
        """Creates the file.

        Args:
            folder: Where the event files are.
            hyperparameters: The configuration's values, by section and key.
            first_generation: The first generation that will be added; TensorBoard drops what earlier files of the
                folder have of it and of later ones.

        Raises:
            OSError: The file cannot be written.
        """
        folder.mkdir(exist_ok=True)
        # The name has the time in seconds; TensorBoard reads the files of a second in the order of their names.
        self._writer = EventsWriter(str(folder / "events"), f".{sum(1 for _ in folder.iterdir()):06d}")
        session = SessionLog(status=SessionLog.START)
        self._write(Event(session_log=session, step=first_generation))
        plain = {
            name: value if isinstance(value, (int, float)) else str(value) for name, value in hyperparameters.items()
        }
        experiment, start, self._end = summary.hparams(plain, dict.fromkeys(("validation/mean", "test/mean"), 0.0))
        self._write(Event(summary=experiment))
        self._write(Event(summary=start))
        self._writer.flush()

    def add(self, record: Record) -> None:
        """Writes a generation's numbers.

        Args:
            record: Its complete record.

        Raises:
            OSError: The file cannot be written.
        """
        for name, value in record.row().items():
            if isinstance(value, (int, float)) and name != "generation":
                self._write(Event(summary=summary.scalar(_tag(name), value), step=record.generation))
        histogram = summary.histogram("fitness/distribution", record.fitness, bins=30)
        self._write(Event(summary=histogram, step=record.generation))
        self._writer.flush()

    def close(self) -> None:
        """Marks the end of the session and closes the file.

        Raises:
            OSError: The file cannot be written.
        """
        self._write(Event(summary=self._end))
        self._writer.close()

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)


def _tag(name: str) -> str:
    """fitness_mean as fitness/mean, so that TensorBoard shows related curves together."""
    group, underscore, rest = name.partition("_")
    return f"{group}/{rest}" if underscore and group in _GROUPS else name
