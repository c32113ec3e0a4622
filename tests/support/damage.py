"""Ways in which a stored state can be wrong, and the words of the message about each."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from neuroevo.runs.database import DATABASE, checksum
from tests.support.databases import change, query

_CHECKED = {  # what a row's checksum is of
    "run": "token, config, origin, info, reference",
    "arrays": "state, dtype, shape, data",
    "states": "generation, steps, seconds, value, last_genome",
    "genomes": "digest, generation, place",
    "episodes": "digest, return, steps, retries, failure, sums, dtype, behavior",
}


def forge(path: Path, table: str, where: str, **changes: object) -> None:
    """Change columns of rows of a run's database that nobody has opened, and their checksums so that they are right."""
    with closing(sqlite3.connect(path / DATABASE)) as connection, connection:
        columns = _CHECKED.get(table)
        if columns is None:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(name for name in names if name != "checksum")
        sets = ", ".join(f"{name} = ?" for name in changes)
        connection.execute(f"UPDATE {table} SET {sets} WHERE {where}", list(changes.values()))
        for number, *row in connection.execute(f"SELECT rowid, {columns} FROM {table} WHERE {where}").fetchall():
            connection.execute(f"UPDATE {table} SET checksum = ? WHERE rowid = ?", [checksum(*row), number])


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
    "a changed number": Damage(change_a_number, "is damaged: its checksum is another one"),
    "a cut value": Damage(cut_the_value, "is damaged: its checksum is another one"),
    "misplaced": Damage(take_an_earlier_one, "is damaged: its checksum is another one"),
    "not JSON": Damage(write_no_json, "is damaged: Expecting value"),
    "another algorithm's": Damage(take_another_algorithms, r"is damaged: .* has the fields \['x'\], expected"),
    "a changed genome": Damage(change_a_genome, "is damaged: .*genome .* digest"),
    "a lost genome": Damage(lose_a_genome, "is damaged: .*genome .* is missing"),
}
