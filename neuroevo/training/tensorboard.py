"""Write TensorBoard event files: scalars and a fitness histogram per generation, and the hyperparameters of the run.

The scalars are written twice: against generations, and in the subfolder frames, which TensorBoard shows as a separate
run, against the number of frames that populations and validations have played so far.

Events are written in the caller's thread, since tensorboardX's threaded writer blocks forever once its thread has died
on a full disk.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog

from neuroevo.core.statistics import without_overflow
from neuroevo.system.files import check_kind, make_folder
from neuroevo.training.record import Record

FRAMES = "frames"
_BINS = 30
_GROUPS = ("fitness", "validation", "test", "steps", "frames", "failures", "seconds")


class TensorBoardWriter:
    """Writer of two new event files: in one of them a step is a generation, in the other a frame.

    Args:
        folder: Folder of event files, created if it does not exist.
        tables: The configuration's keys and values by section; a value that is not a number is written as text.
        first_generation: The generation from which the run starts or continues. TensorBoard drops the events of this
            and later generations from earlier files in the folder.
        first_frame: Number of frames from which TensorBoard drops the events of earlier files in the subfolder frames.

    Raises:
        OSError: The file cannot be written.
        UserError: The folder is a link.
    """

    def __init__(self, folder: Path, tables: Mapping[str, Mapping[str, Any]], first_generation: int, first_frame: int):
        with ExitStack() as opened:
            self._generations = opened.enter_context(closing(_EventFile(folder, first_generation)))
            self._frames = opened.enter_context(closing(_EventFile(folder / FRAMES, first_frame)))
            self._begin(tables)
            self._open = opened.pop_all()

    def _begin(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        plain = {
            f"{section}.{key}": value if isinstance(value, (int, float)) else str(value)
            for section, table in tables.items()
            for key, value in table.items()
        }
        experiment, start, self._end = summary.hparams(plain, dict.fromkeys(("validation/mean", "test/mean"), 0.0))
        self._generations.add(Event(summary=experiment), Event(summary=start))

    def add(self, record: Record) -> None:
        """Write the scalars and the fitness histogram of a finished generation.

        Raises:
            OSError: The file cannot be written.
        """
        scalars = [
            summary.scalar(_tag(name), value)
            for name, value in record.row().items()
            if isinstance(value, (int, float)) and name != "generation"
        ]
        summaries = [*scalars, _histogram("fitness/distribution", record.fitness)]
        self._generations.add(*(Event(summary=each, step=record.generation) for each in summaries))
        self._frames.add(*(Event(summary=each, step=record.frames_total) for each in scalars))

    def close(self) -> None:
        """Mark the end of the session and close the files.

        Raises:
            OSError: The file cannot be written.
        """
        with self._open:
            self._generations.add(Event(summary=self._end))


class _EventFile:
    """A new event file that starts at a step."""

    def __init__(self, folder: Path, first_step: int):
        check_kind(folder, stat.S_IFDIR)
        make_folder(folder)
        # TensorBoard reads files of the same second in order of their names.
        number = len(os.listdir(folder))
        self._writer = EventsWriter(str(folder.absolute() / "events"), f".{number:06d}")
        self.add(Event(session_log=SessionLog(status=SessionLog.START), step=first_step))

    def add(self, *events: Event) -> None:
        for event in events:
            event.wall_time = time.time()
            self._writer.write_event(event)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def _histogram(tag: str, values: np.ndarray) -> summary.Summary:
    """Count values in evenly spaced bins, or fewer bins if there are too few floats between minimum and maximum."""
    low, high = values.min(), values.max()
    edges = without_overflow(lambda of: np.linspace(of.min(), of.max(), _BINS + 1), values)
    limits = np.unique([low, *edges[1:-1], high])  # upper limit of each bin
    counts = np.bincount(np.searchsorted(limits, values))
    with np.errstate(over="ignore"):
        sums = values.sum(), np.square(values).sum()
    return summary.histogram_raw(tag, low, high, len(values), *sums, limits.tolist(), counts.tolist())


def _tag(name: str) -> str:
    """Turn fitness_mean into fitness/mean, so that TensorBoard shows related curves together."""
    group, underscore, rest = name.partition("_")
    return f"{group}/{rest}" if underscore and group in _GROUPS else name
