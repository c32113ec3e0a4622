"""The rows of a run's metrics.jsonl, of which only what was added is read again; a damaged line ends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.runs.json_lines import DamagedLine
from neuroevo.runs.metrics_rows import rows
from neuroevo.runs.paths import METRICS
from neuroevo.system.reading import open_regular

_CHUNK = 1 << 20


class Rows:
    """The rows that were there at the last refresh().

    Attributes:
        rows: Without the fitness of every member.
        fitness: Of every member of each generation, float64 [N].
        problem: Why there are not more: a line is damaged or the file cannot be read; "" where neither is so.
    """

    def __init__(self, folder: Path):
        """Reads nothing yet.

        Args:
            folder: The run's.
        """
        self._folder = folder
        self._state: tuple[int, int, int] | None = None
        self._clear()

    def _clear(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.fitness: list[np.ndarray] = []
        self.problem, self._end = "", 0

    def refresh(self) -> None:
        """Reads what was added; everything where the file was replaced, cut, or damaged before."""
        path = self._folder / METRICS
        try:
            status = path.stat()
            state = status.st_ino, status.st_size, status.st_mtime_ns
            if state == self._state:
                return
            if self.problem or self._state is None or state[0] != self._state[0] or status.st_size < self._end:
                self._clear()
            end = self._last_end(path)
            for row in rows(self._folder, length=end, after=(len(self.rows), self._end)):
                self.fitness.append(np.array(row.pop("fitness"), np.float64))
                self.rows.append(row)
            self._end, self._state = end, state
        except FileNotFoundError:  # a run that has only begun
            self._clear()
            self._state = None
        except OSError as error:
            self.problem, self._state = f"cannot read {path}: {error.strerror}", None
        except DamagedLine as error:
            self.problem, self._state = str(error), state

    def _last_end(self, path: Path) -> int:
        """How many bytes the complete lines have."""
        with open_regular(path) as file:
            at = end = self._end
            file.seek(at)
            while chunk := file.read(_CHUNK):
                newline = chunk.rfind(b"\n")
                end = at + newline + 1 if newline >= 0 else end
                at += len(chunk)
            return end
