"""Write TensorBoard event files: scalars and a fitness histogram per generation, and the hyperparameters of the run.

The scalars are written twice, so that curves can be looked at against generations and, in the folder frames, which
TensorBoard shows as a run of its own, against the frames that populations and validations have played so far.

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

FRAMES = "frames"
_GROUPS = ("fitness", "validation", "test", "steps", "frames", "failures", "seconds")


class TensorBoardWriter:
    """Writes a new event file in which a step is a generation, and one in which it is a frame.

    Args:
        folder: The folder of event files, which is made if it is missing.
        tables: The configuration's keys and values by section; a value that is not a number is written as text.
        first_generation: The generation from which the run starts or goes on. TensorBoard drops the events of this and
            later generations that earlier files in the folder hold.
        first_frame: The number of frames from which on it drops those of earlier files in the folder frames.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(
        self, folder: Path, tables: Mapping[str, Mapping[str, Any]], first_generation: int, first_frame: int = 0
    ):
        self._writer = _started(folder, first_generation)
        self._frames = _started(folder / FRAMES, first_frame)
        plain = {
            f"{section}.{key}": value if isinstance(value, (int, float)) else str(value)
            for section, table in tables.items()
            for key, value in table.items()
        }
        experiment, start, self._end = summary.hparams(plain, dict.fromkeys(("validation/mean", "test/mean"), 0.0))
        _write(self._writer, Event(summary=experiment))
        _write(self._writer, Event(summary=start))
        self._writer.flush()

    def add(self, record: Record) -> None:
        """Writes the scalars and the fitness histogram of a finished generation.

        Raises:
            OSError: The file cannot be written.
        """
        for name, value in record.row().items():
            if isinstance(value, (int, float)) and name != "generation":
                scalar = summary.scalar(_tag(name), value)
                _write(self._writer, Event(summary=scalar, step=record.generation))
                _write(self._frames, Event(summary=scalar, step=record.frames_total))
        histogram = summary.histogram("fitness/distribution", record.fitness, bins=30)
        _write(self._writer, Event(summary=histogram, step=record.generation))
        self._writer.flush()
        self._frames.flush()

    def close(self) -> None:
        """Marks the end of the session and closes the file.

        Raises:
            OSError: The file cannot be written.
        """
        _write(self._writer, Event(summary=self._end))
        self._writer.close()
        self._frames.close()


def _started(folder: Path, first_step: int) -> EventsWriter:
    folder.mkdir(exist_ok=True)
    # The name has the time in whole seconds; TensorBoard reads files of the same second in order of their names.
    writer = EventsWriter(str(folder / "events"), f".{sum(1 for _ in folder.iterdir()):06d}")
    _write(writer, Event(session_log=SessionLog(status=SessionLog.START), step=first_step))
    return writer


def _write(writer: EventsWriter, event: Event) -> None:
    event.wall_time = time.time()
    writer.write_event(event)


def _tag(name: str) -> str:
    """Turns fitness_mean into fitness/mean, so that TensorBoard shows related curves together."""
    group, underscore, rest = name.partition("_")
    return f"{group}/{rest}" if underscore and group in _GROUPS else name
