"""Write TensorBoard event files: scalars and a fitness histogram per generation, and the hyperparameters of the run.

Events are written in the caller's thread. tensorboardX's own SummaryWriter hands them to another thread; when that
thread dies, for example because the disk is full, the writer waits for it forever.
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
    """Writes a new event file, in which a step is a generation.

    Args:
        folder: The folder of event files, which is made if it is missing.
        tables: The configuration's keys and values by section; a value that is not a number is written as text.
        first_generation: The generation from which the run starts or goes on. TensorBoard drops the events of this and
            later generations that earlier files in the folder hold.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, folder: Path, tables: Mapping[str, Mapping[str, Any]], first_generation: int):
        folder.mkdir(exist_ok=True)
        # The name has the time in whole seconds; TensorBoard reads files of the same second in order of their names.
        self._writer = EventsWriter(str(folder / "events"), f".{sum(1 for _ in folder.iterdir()):06d}")
        session = SessionLog(status=SessionLog.START)
        self._write(Event(session_log=session, step=first_generation))
        plain = {
            f"{section}.{key}": value if isinstance(value, (int, float)) else str(value)
            for section, table in tables.items()
            for key, value in table.items()
        }
        experiment, start, self._end = summary.hparams(plain, dict.fromkeys(("validation/mean", "test/mean"), 0.0))
        self._write(Event(summary=experiment))
        self._write(Event(summary=start))
        self._writer.flush()

    def add(self, record: Record) -> None:
        """Writes the scalars and the fitness histogram of a finished generation.

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
    """Turns fitness_mean into fitness/mean, so that TensorBoard shows related curves together."""
    group, underscore, rest = name.partition("_")
    return f"{group}/{rest}" if underscore and group in _GROUPS else name
