"""Resume a run from its newest usable state, possibly with a changed configuration.

Only settings that do not affect results may change: budgets, [hardware], [checkpoints], [cluster], [logging], workers
and timeout of Gymnasium environments, and the path of an environment's file if its content is the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.load import load_run_config
from neuroevo.config.own_modules import changed_modules
from neuroevo.config.own_runs import is_own
from neuroevo.config.schema import Config
from neuroevo.config.trust import Recorded, require_trust
from neuroevo.core.errors import UserError
from neuroevo.core.problems import inline, shown
from neuroevo.runs.about import read_about, read_reference
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import write_generation
from neuroevo.runs.genome_rows import GenomeWriter, forget_births
from neuroevo.runs.paths import CONFIG, check_names, check_run, readable
from neuroevo.runs.state_rows import StoredState, Unusable, delete_states, generations_of_states, newest_state
from neuroevo.runs.writer import Writer, last_session, new_database

log = logging.getLogger("neuroevo")


@dataclass(frozen=True)
class Resumed:
    """Content of a run that is being resumed.

    Attributes:
        database: The run's locked database, which the caller closes.
        config: The new configuration.
        stored: The newest usable state.
        unusable: Newer states, which cannot be used.
        messages: Warnings for the user.
        ended: Whether the last process that trained the run exited cleanly.
        trusted: Whether the run was started on this machine, or the user trusts it.
        reference_batch: Reference batch of the networks, [128, ...], or None.
    """

    database: Writer
    config: Config
    stored: StoredState
    unusable: list[Unusable]
    messages: list[str]
    ended: bool
    trusted: bool
    reference_batch: np.ndarray | None


def prepare_resume(
    path: Path, overrides: Sequence[str] = (), config: Config | None = None, trust: bool = False
) -> Resumed:
    """Lock a run and read its content; write nothing, except that a database with several hard links is copied.

    The arguments and exceptions are those of RunFolder.resume().
    """
    check_run(path)
    with readable(path), ExitStack() as opened:
        check_names(path)
        database = Writer(path / DATABASE)
        if os.stat(path / DATABASE).st_nlink > 1:  # other hard links, such as backups, must not change
            database.close()
            new_database(path, lambda _: None, path / DATABASE)
            database = Writer(path / DATABASE)
        opened.callback(database.close)
        database.check()
        about, file = read_about(database), path / CONFIG
        trust = trust or is_own(database.file)
        require_trust(file, about.recorded, overrides, trust=trust, like=config, trains=config is None)
        config = config or load_run_config(file, overrides, recorded=about.recorded, trust=trust, trains=True)
        _check_changes(file, about.recorded, config, trust)
        if config.environment.file is not None:
            config.environment.check_file(about.origin["env"].get("file"), path)
        stored, unusable = newest_state(database, config, trust)
        messages = [*changed_modules(config, path), *_edited(file, about.config)]
        reference_batch = read_reference(database, config)
        ended = last_session(database) is None
        made = Resumed(database, config, stored, unusable, messages, ended, trust, reference_batch)
        opened.pop_all()
    return made


def cut_back(database: Database, stored: StoredState) -> GenomeWriter:
    """Delete the generations after a state, in a transaction; return the writer of further genomes."""
    generation, genomes = stored.state.generation, GenomeWriter(database, stored.known)
    delete_states(database, [number for number in generations_of_states(database) if number > generation])
    for table in ("members", "populations", "generations"):
        database.execute(f"DELETE FROM {table} WHERE generation >= ?", [generation])
    database.execute("DELETE FROM genomes WHERE id > ?", [stored.last])
    forget_births(database, generation)
    database.execute(
        "DELETE FROM centers WHERE id NOT IN (SELECT center FROM genomes WHERE center IS NOT NULL) "
        "AND id NOT IN (SELECT center FROM state_centers)"
    )
    for each in stored.state.pending:  # whose elites may have been tested since
        write_generation(database, each.record, genomes)
    return genomes


def differences(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield section, key and both values of each difference of two configurations; None for unset values."""
    for section in dict.fromkeys([*before, *after]):
        old, new = before.get(section, {}), after.get(section, {})
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield section, key, old.get(key), new.get(key)


def _check_changes(file: Path, recorded: Recorded, after: Config, trust: bool) -> None:
    """Check that results do not depend on the changes of the configuration. UserError: they do."""
    before = _before(file, recorded, after, trust)
    free = before.environment.free_options
    for section, key, was, value in differences(before.origin(), after.origin()):
        if section == "env" and key != "name":  # report the given options, with paths instead of content
            key, was, value = "options", before.env.options, after.env.options
        raise UserError(
            f"{section}.{key} is {shown(was)} and cannot become {shown(value)} when a run is resumed; allowed changes: "
            "total_steps, generations, minutes, target of [training], [hardware], [cluster], [checkpoints], [logging]"
            + (f", {' and '.join(free)} of [env.options]" if free else "")
        )


def _before(file: Path, recorded: Recorded, after: Config, trust: bool) -> Config:
    """Return the run's configuration; if its environment's file is missing, with the file of `after`."""
    try:
        return load_run_config(file, recorded=recorded, trust=trust, like=after)
    except UserError:
        moved = after.environment.file
        if moved is None:
            raise
        changes = [f"env.options.{moved.option}={inline(str(moved.path))}"]
        return load_run_config(file, changes, recorded=recorded, trust=trust, like=after)


def _edited(file: Path, text: str) -> list[str]:
    """Return a warning if the user has edited config.toml, else an empty list."""
    try:
        found = file.read_text()
    except (OSError, UnicodeDecodeError):
        return []
    if found == text:
        return []
    return [f"{file} differs from the run's configuration and is overwritten; to change a key, use --set KEY=VALUE"]
