"""What the database of a run contains, without numbers of rows and without what depends on the clock."""

import json
import sqlite3
from contextlib import closing

import numpy as np

from neuroevo.config.load import load_run_config
from neuroevo.core.state_codec import encode
from neuroevo.runs.about import read_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import read_elite, rows_of
from neuroevo.runs.state_rows import generations_of_states, read_state

CLOCKED = ("steps_per_s", "idle_share")  # besides seconds_*
_QUERIES = {
    "members": """
        SELECT generation, place, digest, fitness, steps, novelty FROM
        (SELECT members.*, genomes.digest FROM members LEFT JOIN genomes ON genomes.id = members.genome)
        ORDER BY generation, place""",
    "behaviors": "SELECT generation, members, dtype, behaviors FROM populations ORDER BY generation",
    "genomes": """
        SELECT own.digest, parent.digest, own.seed, own.scale, own.rank, name, own.network, own.generation, own.place
        FROM genomes AS own LEFT JOIN genomes AS parent ON parent.id = own.parent
        LEFT JOIN centers ON centers.id = own.center ORDER BY own.digest""",
    "centers": "SELECT name, weights IS NOT NULL FROM centers ORDER BY name",
    "episodes": "SELECT digest FROM episodes",
    "tested": "SELECT generation, tested FROM generations ORDER BY generation",
    "broken references": "PRAGMA foreign_key_check",
    "damage": "PRAGMA integrity_check",
}


def query(path, sql, *values):
    """The rows that SQLite itself finds in a run's database."""
    with closing(sqlite3.connect(f"file:{path / DATABASE}?mode=ro", uri=True)) as connection:
        return connection.execute(sql, values).fetchall()


def dump(path):
    """All of a run's database as SQL; the bytes of one that is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{path / DATABASE}?mode=ro", uri=True)) as connection:
            return list(connection.iterdump())
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return (path / DATABASE).read_bytes()


def change(path, sql, *values):
    """Execute a statement in a run's database, which must not be open."""
    with closing(sqlite3.connect(path / DATABASE)) as connection, connection:
        return connection.execute(sql, values).rowcount


def delete_states_after(path, finished):
    """As if a run had been killed before they were stored; all else stays."""
    for table, column in (("arrays", "state"), ("state_centers", "state"), ("states", "generation")):
        change(path, f"DELETE FROM {table} WHERE {column} > ?", finished)
    change(path, "UPDATE centers SET weights = NULL WHERE id NOT IN (SELECT center FROM state_centers)")


def read_rows(path, fitness=True):
    """A row for each finished generation."""
    with Database(path / DATABASE) as database:
        return rows_of(database, fitness=fitness)


def count_rows(path):
    """How many generations are finished and tested; 0 before there is a run."""
    if not (path / DATABASE).exists():
        return 0
    return query(path, "SELECT count(*) FROM generations WHERE tested = 1")[0][0]


def read_elites(path):
    """The genome and the normalizer of each finished generation's elite; centers have their names alone."""
    found = []
    for number in range(count_rows(path)):
        with Database(path / DATABASE) as database:
            genome, normalizer = read_elite(database, number)
        seen = None if normalizer is None else (normalizer.mean.tolist(), normalizer.std.tolist())
        found.append((genome, seen))
    return found


def checkpoints_of(path):
    """How many generations are finished in each state of a run."""
    with Database(path / DATABASE) as database:
        return generations_of_states(database)


def timeless(row):
    """A row without what depends on the clock."""
    return {key: value for key, value in row.items() if not key.startswith("seconds") and key not in CLOCKED}


def states_of(path, pending=False):
    """The states of a run as plain values, by their generation."""
    found = {}
    with Database(path / DATABASE) as database:
        about = read_about(database)
        kind = load_run_config(path / "config.toml", recorded=about.recorded, trust=True).algorithm.state_type
        for generation in generations_of_states(database):
            state = read_state(database, generation, kind, trust=True).state
            encoded = encode(state.algorithm, state.pending if pending else (), state.observation_statistics)
            found[generation] = {
                "values": encoded.values,
                "genomes": [genome.digest for genome in encoded.genomes],
                "arrays": [(array.dtype.str, array.shape, array.tobytes()) for array in encoded.arrays],
                "loop": (state.max_episode_steps, state.steps, state.confirmed_mean if pending else None),
            }
    return found


def database_contents(path):
    """All of a run's database that two runs which did the same have in common."""
    found = {name: query(path, sql) for name, sql in _QUERIES.items()}
    with Database(path / DATABASE) as database:
        about = read_about(database)
        batch = None if about.reference is None else database.array(about.reference)
    return {
        **found,
        "config": about.config,
        "origin": about.origin,
        "reference": None if batch is None else (str(batch.dtype), batch.shape, np.asarray(batch).tobytes()),
        "rows": [timeless(row) for row in read_rows(path)],
        "elites": read_elites(path),
        "states": states_of(path),
    }


def info_of(path):
    """What a run says of where it was made."""
    with Database(path / DATABASE) as database:
        return json.loads(json.dumps(read_about(database).info))
