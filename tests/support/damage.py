"""Ways in which a stored state can be wrong, and the words of the message about each."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from neuroevo.runs.database import DATABASE, checksum
from tests.support.databases import change, query

_STATE = "SELECT generation, steps, seconds, value, last_genome FROM states WHERE generation = ?"


def with_checksum(path: Path, sql: str, row: str, *key: object) -> None:
    """Change a row of a run's database that nobody has opened, and then its checksum as well.

    Args:
        path: The run's folder.
        sql: The change; TABLE, from which the row comes, is its last word but the condition.
        row: Selects what the checksum is of, in order: "SELECT ... FROM table WHERE condition".
        key: The parameters of both conditions.
    """
    change(path, sql, *key)
    table = row.partition(" FROM ")[2]
    for found in query(path, row, *key):
        name, _, condition = table.partition(" WHERE ")
        change(path, f"UPDATE {name} SET checksum = ? WHERE {condition}", checksum(*found), *key)


def set_value(path: Path, generation: int, text: str) -> None:
    """Replace the JSON of a state; its checksum is right."""
    with closing(sqlite3.connect(path / DATABASE)) as connection, connection:
        connection.execute("UPDATE states SET value = ? WHERE generation = ?", [text, generation])
    with_checksum(path, "UPDATE states SET steps = steps WHERE generation = ?", _STATE, generation)


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
    change(path, "DELETE FROM states WHERE generation = ?", generation)
    change(path, "UPDATE states SET generation = ? WHERE generation = ?", generation, generation - 1)


def write_no_json(path: Path, generation: int) -> None:
    set_value(path, generation, '{"values": [')


def take_another_algorithms(path: Path, generation: int) -> None:
    value = value_of(path, generation)
    set_value(path, generation, json.dumps({**value, "values": [{"fields": {"x": 1}}, *value["values"][1:]]}))


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
