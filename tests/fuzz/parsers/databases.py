"""Fuzz target of run.db: an untrusted database is read in all ways, and resumed."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import DiskError, UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.runs.database import _SCHEMA, DATABASE, Database
from neuroevo.runs.episode_rows import EpisodeRows
from neuroevo.runs.genome_rows import _decode
from neuroevo.runs.members import MembersReader, fitness_sum, rows_sum
from neuroevo.runs.reader import RunReader
from neuroevo.runs.values import checksum
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.resume import newest_state
from tests.fuzz.parsers.target import Target
from tests.support.runs import config, interrupted_run, new_run

_TEMPORARY = TemporaryDirectory(prefix="neuroevo_fuzz_")  # as long as the process
_FOLDER = Path(_TEMPORARY.name)
_TABLES = ("run", "sessions", "arrays", "centers", "genomes", "generations", "members", "populations", "states")
_TABLES += ("state_centers", "episodes")
_SEALED = {"run": "id", "arrays": "id", "genomes": "id", "generations": "generation", "populations": "generation"}
_SEALED |= {"states": "generation", "episodes": "digest"}  # tables with checksums, and their keys
_MOST = 3  # generations that are read
_ES = {"name": "es", "population": 2}
_SMALL: dict[str, dict[str, Any]] = {
    "ga": {"algorithm": {"name": "ga", "population": 3, "parents": 1, "validation_candidates": 2}},
    "es": {
        "env": {"name": "InvertedPendulum-v5"},
        "network": {"name": "mlp", "normalize_observations": True},
        "algorithm": _ES,
    },
    "ns_es": {
        "env": {"name": "HardMaze-v0"},
        "network": {"name": "mlp", "hidden": [6]},
        "algorithm": {**_ES, "name": "ns_es", "centers": 2, "k": 1},
    },
}


def _database(data: bytes) -> None:
    """A file after its first byte; if that is odd, lines of JSON, each a row, that get the right checksums."""
    path = _FOLDER / "run"
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        if file.is_file():
            file.unlink()
    if data[:1] and data[0] % 2:
        _build(path / DATABASE, data[1:])
    else:
        (path / DATABASE).write_bytes(data[1:])
    logging.disable()
    try:
        for read in (lambda: _look(path), lambda: _members(path), lambda: _newest(path), lambda: _outcomes(path)):
            _try(read)
        with patch("neuroevo.sessions.folder.provenance", return_value={"versions": {"neuroevo": "0"}}):  # it asks Git
            _try(lambda: RunFolder.resume(path).open(["fuzz"]).close())
    finally:
        logging.disable(logging.NOTSET)


def _try(read: Callable[[], object]) -> None:
    """Call a reader. Raise AssertionError for an error without a message; exceptions of other types are findings."""
    try:
        read()
    except (UserError, DiskError) as error:
        assert str(error)


def _look(path: Path) -> None:
    reader = RunReader(path)
    for read in (reader.about, reader.rows, reader.elite, reader.checkpoints, reader.state, reader.reference_batch):
        _try(read)
    for generation in range(_MOST):
        _try(lambda at=generation: reader.elite(at))
        _try(lambda at=generation: reader.algorithm_state(at))


def _members(path: Path) -> None:
    reader = MembersReader(path)
    _try(lambda: (reader.generations, reader.kept(), list(islice(reader.each(), 100))))
    for generation in range(_MOST):
        _try(lambda at=generation: (len(reader.read(at)), reader.genomes(at)))
        _try(lambda at=generation: reader.lineage(at, at % 2))


def _newest(path: Path) -> None:
    for settings in _configurations():
        with Database(path / DATABASE) as database:
            _try(lambda at=database, settings=settings: newest_state(at, settings))


@cache
def _configurations() -> list[Config]:
    return [config(**changes) for changes in _SMALL.values()]


def _outcomes(path: Path) -> None:
    with Database(path / DATABASE) as database:
        rows = EpisodeRows(database, 0.0)  # type: ignore[arg-type]
        rows.known(list(rows.known_episodes))


def _build(file: Path, text: bytes) -> None:
    """Make a database from the valid rows."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.executescript(f"PRAGMA synchronous = OFF; {_SCHEMA.read_text()} BEGIN;")
        for line in text.split(b"\n"):
            with suppress(
                ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, sqlite3.Error
            ):
                table, row = json.loads(line)
                if table in _TABLES:
                    values = [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each for each in row.values()]
                    marks = ", ".join("?" * len(row))
                    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values)
        with suppress(OverflowError, sqlite3.Error):
            _seal(database)
        database.execute("COMMIT")


def _seal(database: sqlite3.Connection) -> None:
    """Set the correct digests and checksums of rows."""
    database.row_factory = sqlite3.Row
    genomes: dict[int, Genome] = {}
    centers = {number: Center.named(name) for number, name in database.execute("SELECT id, name FROM centers")}
    for row in database.execute("SELECT * FROM genomes ORDER BY id").fetchall():
        with suppress(KeyError, TypeError, ValueError):
            genomes[row["id"]] = genome = _decode(row[1:7], genomes, centers)
            database.execute("UPDATE genomes SET digest = ? WHERE id = ?", [genome.digest, row["id"]])
    for table, key in _SEALED.items():
        for row in database.execute(f"SELECT * FROM {table}").fetchall():
            values = {name: row[name] for name in dict(row) if name not in ("id", "checksum")}
            if table == "genomes":
                values = {name: row[name] for name in ("digest", "generation", "place")}
            elif table == "populations":
                query = "SELECT place, genome, fitness, steps, novelty FROM members WHERE generation = ? ORDER BY place"
                members = [tuple(each) for each in database.execute(query, [row[key]])]
                values["fitness"] = fitness_sum(np.array([each[2] for each in members]))
                database.execute(f"UPDATE {table} SET fitness = ? WHERE {key} = ?", [values["fitness"], row[key]])
                values["sum"] = rows_sum(members)
            total = checksum(*values.values())
            database.execute(f"UPDATE {table} SET checksum = ? WHERE {key} = ?", [total, row[key]])


def _seeds() -> list[bytes]:
    """Runs of two generations, and one that was interrupted in its third: as files of small pages, and as rows."""
    made: list[bytes] = []
    with TemporaryDirectory(prefix="neuroevo_fuzz_") as folder:
        for kind, changes in _SMALL.items():
            path = Path(folder, kind)
            training = {"generations": 2, "validation_episodes": 1, "test_episodes": 1}
            new_run(path, **{**changes, "training": training})
            made += _seeds_of(path / DATABASE)
        made += _seeds_of(interrupted_run(Path(folder, "interrupted"), 2, **_SMALL["ga"]) / DATABASE)
    return made


def _seeds_of(file: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM")
        database.row_factory = sqlite3.Row
        rows = [[table, dict(row)] for table in _TABLES for row in database.execute(f"SELECT * FROM {table}")]
    yield b"\0" + file.read_bytes()
    yield b"\1" + b"\n".join(json.dumps(row, default=lambda data: {"hex": data.hex()}).encode() for row in rows)


TARGETS = {"database": Target(_database, _seeds)}
