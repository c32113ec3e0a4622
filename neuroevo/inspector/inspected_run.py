"""A run on the page: its files, its members and, if it is trusted, its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError
from neuroevo.core.user_module import kept_modules
from neuroevo.inspector.rows import Rows
from neuroevo.runs.about import read_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.members import Members, MembersReader
from neuroevo.runs.paths import LOG, check_run, is_run
from neuroevo.runs.reader import RunReader
from neuroevo.runs.writer import last_session
from neuroevo.system.processes import is_running
from neuroevo.system.reading import open_regular, parse_toml

_LOG_BYTES = 1 << 16


class InspectedRun:
    """Read-only view of a run, which another process may be training.

    Attributes:
        path: The folder.
        name: Name of the run on the page.
        reader: Reader that replays members; None if the configuration is invalid or not trusted.
        why_not: Reason why playback is disabled, which the page shows; "" if it is enabled.
        modules: Source code of the external modules stored in the run, by module name.
        metrics: Rows of its metrics.
        members: Reader of its stored members.
        kept: Number of generations with stored members at the last refresh().
    """

    def __init__(self, path: Path, name: str, trust: bool):
        """Read the configuration and the metrics.

        Args:
            path: The folder.
            name: Name of the run on the page.
            trust: As for RunReader. Without it, a run that references external code is shown without playback.

        Raises:
            UserError: The folder does not contain a run, or its members cannot be read.
        """
        check_run(path)
        self.path, self.name, self._trust = path, name, trust
        self.reader: RunReader | None = None
        self.why_not = ""
        self.modules: Mapping[str, bytes] = {}
        try:
            self.reader = RunReader(path, trust=trust)
            self.modules = {module: kept.source for module, kept in kept_modules().items()}
        except UserError as error:
            self.why_not = str(error)
        self.metrics = Rows(path)
        self.metrics.refresh()
        self.members = MembersReader(path)
        self.kept = self.members.generations

    def leave(self, reason: str) -> None:
        """Disable playback for a reason."""
        self.reader, self.why_not = None, reason

    def to_play(self) -> RunReader:
        """Return a new reader that replays members, since only modules of the most recently opened run can be imported.

        Raises:
            UserError: The configuration is invalid or not trusted.
        """
        if self.reader is None:
            raise UserError(f"playback of this run is disabled: {self.why_not}")
        return RunReader(self.path, trust=self._trust)

    @property
    def config(self) -> Config | None:
        """The run's configuration; None if it is invalid or not trusted."""
        return None if self.reader is None else self.reader.config

    @property
    def generations(self) -> int:
        """Number of generations of the page's slider, those with metrics or with stored members."""
        return max(len(self.metrics.fitness), self.kept)

    def refresh(self) -> None:
        """Read new generations of the run.

        Raises:
            UserError: The folder was deleted, or the database cannot be read.
        """
        if not is_run(self.path):
            raise UserError(f"the run in {self.path} is gone: expected {self.path / DATABASE}")
        self.metrics.refresh()
        self.kept = self.members.generations

    def read(self, generation: int, behaviors: bool = True) -> Members | None:
        """Read a generation's members.

        Args:
            generation: Its number.
            behaviors: Whether to read their behaviors.

        Returns:
            The members; None if they are not stored.

        Raises:
            UserError: The generation does not exist, or the file is damaged.
        """
        if not 0 <= generation < self.generations:
            raise UserError(f"generation {generation} is out of range [0, {self.generations}) in {self.path}")
        return self.members.find(generation, behaviors)

    def size(self, generation: int) -> int:
        """Return the number of members of a generation. UserError: the generation does not exist."""
        members = self.read(generation, behaviors=False)
        return len(self.metrics.fitness[generation]) if members is None else len(members)

    def settings(self) -> dict[str, Any]:
        """Return the unvalidated tables of its configuration, or an empty dict if it is not valid TOML."""
        try:
            with Database(self.path / DATABASE) as database:
                return parse_toml(read_about(database).config)
        except (DiskError, ValueError):  # UserError is one
            return {}

    def info(self) -> dict[str, Any]:
        """Return the provenance of the run, or an empty dict if it is damaged."""
        try:
            with Database(self.path / DATABASE) as database:
                return dict(read_about(database).info)
        except (DiskError, UserError):
            return {}

    def log(self) -> list[str]:
        """Return the last lines of log.txt."""
        try:
            with open_regular(self.path / LOG) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _LOG_BYTES, 0))
                lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()
        except OSError:
            return []
        return lines[1:] if size > _LOG_BYTES else lines

    def goes_on(self) -> bool:
        """Return whether a process on this machine is training the run."""
        try:
            with Database(self.path / DATABASE) as database:
                process = last_session(database)
        except (DiskError, UserError):
            return False
        return process is not None and is_running(process)
