"""Incrementally read metrics and fitness of a run on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import rows_of
from neuroevo.runs.members import fitness_of


class Rows:
    """Rows of a run's metrics at the last refresh().

    Args:
        folder: The run's folder.

    Attributes:
        rows: The rows, without the members' fitness.
        fitness: Fitness of the members of each generation, float64 [N].
        problem: Reason why the database could not be read further; "" if it could.
    """

    def __init__(self, folder: Path):
        self._file = folder / DATABASE
        self._session: tuple[object, ...] | None = None
        self.problem = ""
        self._clear()

    def _clear(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.fitness: list[np.ndarray] = []

    def refresh(self) -> None:
        """Read new rows, or all rows if the run was resumed, which may have deleted generations."""
        try:
            with Database(self._file) as database:
                session = database.row(tuple[str, int | None], "SELECT token, (SELECT max(id) FROM sessions) FROM run")
                if session != self._session:
                    self._clear()
                self._session = session
                new = rows_of(database, len(self.rows), fitness=False)
                self.fitness += fitness_of(database, len(self.rows), len(self.rows) + len(new))
                self.rows += new
                self.problem = ""
        except (DiskError, UserError) as error:
            self.problem = str(error)
