"""Ways in which rows of a run's database can be wrong, the words of the messages, and what readers make of it."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.database import DATABASE
from neuroevo.runs.members import MembersReader, rows_sum
from neuroevo.runs.reader import RunReader
from neuroevo.runs.values import checksum
from tests.support.databases import change, query, timeless
from tests.support.saved_states import same

REFUSED = "refused"

_CHECKED = {  # what a row's checksum is of
    "run": "token, config, origin, info, reference",
    "arrays": "state, dtype, shape, data",
    "states": "generation, steps, seconds, value, last_genome",
    "genomes": "digest, generation, place",
    "episodes": "digest, return, steps, retries, failure, sums, dtype, behavior",
}


def forge(path: Path, table: str, where: str, **changes: object) -> None:
    """Change columns of rows of a run's database, which must not be open, and update the checksums.

    Types and constraints of the table are ignored.
    """
    with closing(sqlite3.connect(path / DATABASE)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        with _loose(connection, table):
            sets = ", ".join(f"{name} = ?" for name in changes)
            connection.execute(f"UPDATE {table} SET {sets} WHERE {where}", list(changes.values()))
            _correct(connection, "populations" if table == "members" else table)


@contextmanager
def _loose(connection: sqlite3.Connection, table: str) -> Iterator[None]:
    """Lift a table's types and constraints in the block."""
    (strict,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", [table]).fetchone()
    for sql in (re.sub(r",? STRICT$| NOT NULL", "", strict), strict):
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", [sql, table])
        connection.commit()
        connection.execute("PRAGMA writable_schema = RESET")
        if sql != strict:
            yield


def _correct(connection: sqlite3.Connection, table: str) -> None:
    """Compute the checksums of a table."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    if "checksum" not in columns:
        return
    names = _CHECKED.get(table, ", ".join(name for name in columns if name != "checksum"))
    for row in connection.execute(f"SELECT {names} FROM {table}").fetchall():
        total, same_row = checksum(*row), " AND ".join(f"{name} IS ?" for name in names.split(", "))
        if table == "populations":
            members = "SELECT place, genome, fitness, steps, novelty FROM members WHERE generation = ? ORDER BY place"
            with suppress(TypeError, ValueError):  # of members that are no numbers
                total = checksum(*row, rows_sum(connection.execute(members, row[:1]).fetchall()))
        connection.execute(f"UPDATE {table} SET checksum = ? WHERE {same_row}", [total, *row])


def put(path: Path, table: str, column: str, value: object, right: bool) -> None:
    """Change a column of the last row of a table, and with `right` the checksum."""
    with closing(sqlite3.connect(path / DATABASE)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        with _loose(connection, table):
            key = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
            last = connection.execute(f"SELECT {', '.join(key)} FROM {table} ORDER BY {' DESC, '.join(key)} DESC")
            where = " AND ".join(f"{name} = ?" for name in key)
            with suppress(sqlite3.IntegrityError):  # a key that another row has
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", [value, *last.fetchone()])
            if right:
                _correct(connection, "populations" if table == "members" else table)


def value_of(path: Path, generation: int) -> dict:
    """The JSON of a state."""
    return json.loads(query(path, "SELECT value FROM states WHERE generation = ?", generation)[0][0])


def own_genome(path: Path, generation: int) -> int:
    """The number of a genome that a state has and no earlier one."""
    (earlier,) = query(path, "SELECT last_genome FROM states WHERE generation < ? ORDER BY generation", generation)[-1]
    return max(number for number in value_of(path, generation)["genomes"] if number > earlier)


def change_a_number(path: Path, generation: int) -> None:
    change(path, "UPDATE states SET steps = steps + 1 WHERE generation = ?", generation)


def cut_the_value(path: Path, generation: int) -> None:
    change(path, "UPDATE states SET value = substr(value, 1, 99) WHERE generation = ?", generation)


def take_an_earlier_one(path: Path, generation: int) -> None:
    columns = "steps, seconds, value, last_genome, checksum"
    earlier = f"SELECT {columns} FROM states WHERE generation = ?"
    change(path, f"UPDATE states SET ({columns}) = ({earlier}) WHERE generation = ?", generation - 1, generation)


def write_no_json(path: Path, generation: int) -> None:
    forge(path, "states", f"generation = {generation}", value='{"values": [')


def take_another_algorithms(path: Path, generation: int) -> None:
    value = value_of(path, generation)
    text = json.dumps({**value, "values": [{"fields": {"x": 1}}, *value["values"][1:]]})
    forge(path, "states", f"generation = {generation}", value=text)


def change_a_genome(path: Path, generation: int) -> None:
    change(path, "UPDATE genomes SET seed = seed - 1 WHERE id = ?", own_genome(path, generation))


def lose_a_genome(path: Path, generation: int) -> None:
    change(path, "DELETE FROM genomes WHERE id = ?", own_genome(path, generation))


@dataclass(frozen=True)
class Damage:
    """to: does it to the state after a generation, which has to have genomes that the one before has not. message: a
    regular expression for what is said of the state then."""

    to: Callable[[Path, int], None]
    message: str


DAMAGES = {
    "a changed number": Damage(change_a_number, "is damaged: its checksum does not match"),
    "a cut value": Damage(cut_the_value, "is damaged: its checksum does not match"),
    "misplaced": Damage(take_an_earlier_one, "is damaged: its checksum does not match"),
    "not JSON": Damage(write_no_json, "is damaged: Expecting value"),
    "another algorithm's": Damage(take_another_algorithms, r"is damaged: .* has the fields \['x'\], expected"),
    "a changed genome": Damage(change_a_genome, "is damaged: .*genome .* digest"),
    "a lost genome": Damage(lose_a_genome, "is damaged: .*genome .* is missing"),
}


def attempt(read):
    """What a reader returns, or that it refused; anything else that it raises is an error."""
    try:
        return read()
    except (UserError, DiskError) as error:
        assert any(words in str(error) for words in ("run.db", "config.toml", "expected one in", "weights of")), error
        return REFUSED


def members_of(path, generation):
    """All arrays of a generation's members, and what else is known of them."""
    reader = MembersReader(path)
    members = reader.read(generation)
    values = [getattr(members, each.name) for each in fields(members)]
    plain = [each.tolist() if isinstance(each, np.ndarray) else each for each in values]
    return plain, reader.genomes(generation), [reader.lineage(generation, place) for place in range(len(members))]


def everything(path, generations):
    """What every reader says of a run."""
    reads = {
        "rows": lambda: [timeless(row) for row in RunReader(path).rows()],
        "elite": lambda: RunReader(path).elite(),
        "state": lambda: RunReader(path).state(),
    }
    for generation in range(generations):
        reads[f"elite {generation}"] = lambda generation=generation: RunReader(path).elite(generation)
        reads[f"members {generation}"] = lambda generation=generation: members_of(path, generation)
    return {name: attempt(read) for name, read in reads.items()}


def assert_equal_or_refused(found, expected, states):
    """The newest state, and an elite that has its weights from one, may be those of an earlier generation."""
    for name, value in found.items():
        if isinstance(value, str):
            continue
        if name == "state":
            assert same(replace(value, seconds=0.0), replace(states[value.generation], seconds=0.0)), name
        elif name == "elite":
            assert value == expected[f"elite {value[0]}"], name
        else:
            assert value == expected[name], name
