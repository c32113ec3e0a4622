"""Resume a run: what it continues from, and what its configuration may change.

It may change only in what results do not depend on: budgets, [hardware], [checkpoints], workers and timeout of
Gymnasium's environments, and where an environment's file is, if its content is the same.
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
    """What a resumed run continues with.

    Attributes:
        database: Its database, locked, which whoever gets this has to close.
        config: Its configuration from now on.
        stored: Its newest usable state.
        unusable: The newer states, which cannot be used.
        messages: What to tell the user, a sentence each.
        ended: Whether the last process that trained it ended in order.
        trusted: Whether it was begun here, or the user trusts whoever made it.
        reference_batch: Of its networks, or None.
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
    """Lock a run and read what it continues with; write nothing, but for a copy of a file with several names.

    Arguments are those of RunFolder.resume(), and so is what it raises.
    """
    check_run(path)
    with readable(path), ExitStack() as opened:
        check_names(path)
        database = Writer(path / DATABASE)
        if os.stat(path / DATABASE).st_nlink > 1:  # what has the other names, such as a backup, stays as it is
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
    """Delete what a run has played after a state, in a transaction; return what writes genomes from then on."""
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
    for each in stored.state.pending:  # which may have been tested since
        write_generation(database, each.record, genomes)
    return genomes


def differences(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield the section, the key and both values of what differs in two configurations; None where it is not set."""
    for section in dict.fromkeys([*before, *after]):
        old, new = before.get(section, {}), after.get(section, {})
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield section, key, old.get(key), new.get(key)


def _check_changes(file: Path, recorded: Recorded, after: Config, trust: bool) -> None:
    """UserError: a configuration differs from the run's in what results depend on."""
    before = _before(file, recorded, after, trust)
    free = before.environment.free_options
    for section, key, was, value in differences(before.origin(), after.origin()):
        if section == "env" and key != "name":  # as they were given: a file by its path
            key, was, value = "options", before.env.options, after.env.options
        raise UserError(
            f"{section}.{key} is {shown(was)} and cannot become {shown(value)} when a run is resumed; what can: "
            "total_steps, generations and minutes of [training], [hardware], [checkpoints], [cluster]"
            + (f", {' and '.join(free)} of [env.options]" if free else "")
        )


def _before(file: Path, recorded: Recorded, after: Config, trust: bool) -> Config:
    """Return the run's configuration; if a file of its environment is gone, with the one of `after`."""
    try:
        return load_run_config(file, recorded=recorded, trust=trust, like=after)
    except UserError:
        moved = after.environment.file
        if moved is None:
            raise
        changes = [f"env.options.{moved.option}={inline(str(moved.path))}"]
        return load_run_config(file, changes, recorded=recorded, trust=trust, like=after)


def _edited(file: Path, text: str) -> list[str]:
    """Return a sentence about a config.toml that the user has edited."""
    try:
        found = file.read_text()
    except (OSError, UnicodeDecodeError):
        return []
    if found == text:
        return []
    return [f"{file} differs from the run's configuration and is written again; to change a key, use --set KEY=VALUE"]
