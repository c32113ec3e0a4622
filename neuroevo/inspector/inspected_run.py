"""A run that the page shows: its files, its configuration where that may be used, and its members."""

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
    """A run, into which another process may be training meanwhile; nothing is written into its folder.

    Attributes:
        path: The folder.
        name: What the page calls it.
        reader: What replays members; None where the configuration cannot or may not be used.
        why_not: The reason, which the page shows; "" without one.
        modules: The source of the user's own modules that it names and has kept, by their names.
        metrics: The rows of its metrics.
        members: Who was in its generations, as far as the run has kept it.
        kept: How many generations it had members of at the last refresh().
    """

    def __init__(self, path: Path, name: str, trust: bool):
        """Read the configuration and the metrics.

        Args:
            path: The folder.
            name: What to call it.
            trust: As RunReader takes it. Without it, a run that names code of others is shown, but nothing is played.

        Raises:
            UserError: There is no run, or its members cannot be read.
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
        """Has nobody of it play from now on, for a reason."""
        self.reader, self.why_not = None, reason

    def to_play(self) -> RunReader:
        """Return a reader that replays members; only the modules of the run that was read last are found.

        Raises:
            UserError: The configuration cannot or may not be used.
        """
        if self.reader is None:
            raise UserError(f"nothing of this run is played: {self.why_not}")
        return RunReader(self.path, trust=self._trust)

    @property
    def config(self) -> Config | None:
        """Its configuration, where it may be used."""
        return None if self.reader is None else self.reader.config

    @property
    def generations(self) -> int:
        """How many the page has a slider over: those with metrics, and those of which members are kept."""
        return max(len(self.metrics.fitness), self.kept)

    def refresh(self) -> None:
        """Read what the run has added.

        Raises:
            UserError: The folder is gone, or the database cannot be read.
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
            The members; None where they are not kept.

        Raises:
            UserError: There is no such generation, or the file is damaged.
        """
        if not 0 <= generation < self.generations:
            raise UserError(f"generation {generation} is out of range [0, {self.generations}) in {self.path}")
        return self.members.find(generation, behaviors)

    def size(self, generation: int) -> int:
        """Return the number of members of a generation. UserError: there is no such generation."""
        members = self.read(generation, behaviors=False)
        return len(self.metrics.fitness[generation]) if members is None else len(members)

    def settings(self) -> dict[str, Any]:
        """Return the tables of its configuration as they are written; none if it is not TOML."""
        try:
            with Database(self.path / DATABASE) as database:
                return parse_toml(read_about(database).config)
        except (DiskError, ValueError):  # UserError is one
            return {}

    def info(self) -> dict[str, Any]:
        """Return where the run was made; nothing if that is damaged."""
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
        """Return whether a process on this machine trains the run."""
        try:
            with Database(self.path / DATABASE) as database:
                process = last_session(database)
        except (DiskError, UserError):
            return False
        return process is not None and is_running(process)
