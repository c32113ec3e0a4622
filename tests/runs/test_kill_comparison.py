"""The comparison of a killed run with an uninterrupted run detects all differences except those of clocks."""

import shutil
import struct
from contextlib import suppress

import pytest

from neuroevo.core.errors import UserError
from tests.support.databases import change, query
from tests.support.run_files import differences, run_contents
from tests.support.runs import new_run

SQL = {  # changes of tables
    "members": "UPDATE genomes SET digest = x'00' WHERE id = (SELECT genome FROM members WHERE generation = 3)",
    "genomes": "INSERT INTO genomes (seed, network, digest, checksum) VALUES (1, 0, x'00', 0)",
    "the place of a genome": "UPDATE genomes SET place = place + 1 WHERE generation = 0 AND place = 7",
    "centers": "INSERT INTO centers (name) VALUES ('x')",
    "episodes": "INSERT INTO episodes VALUES (x'00', 1.0, 1, NULL, '', x'', '<f8', x'', 0)",
    "states": "DELETE FROM states WHERE generation = 4",
    "run": "UPDATE run SET info = replace(info, '\"seed\": 4', '\"seed\": 5')",
    "generations": "DELETE FROM generations WHERE generation = 4",
    "arrays": "INSERT INTO arrays (state, dtype, shape, data, checksum) VALUES (99, '|u1', '[0]', x'', 0)",
}
FILES = {  # changes of files: a function of a run folder, and the names that then differ
    "config.toml": lambda path: (path / "config.toml").open("ab").write(b"#"),
    "metrics.csv": lambda path: replace_in(path / "metrics.csv", b"fitness_max", b"fitness_mix"),
    ".run.db.9.tmp": lambda path: (path / ".run.db.9.tmp").touch(),
    "run.db-journal": lambda path: (path / "run.db-journal").touch(),
    "notes/": lambda path: (path / "notes").mkdir(),
    "log.txt": lambda path: replace_in(path / "log.txt", b"INFO finished after 5", b"INFO finished after 6"),
    "tensorboard": lambda path: next((path / "tensorboard").glob("events*")).unlink(),
    "tensorboard/frames": lambda path: next((path / "tensorboard" / "frames").glob("events*")).unlink(),
    "tensorboard/x": lambda path: (path / "tensorboard" / "x").touch(),
}
BROKEN = {  # changes that a finished run cannot have
    "log.txt": lambda path: (path / "log.txt").open("ab").write(b"what?\n"),
    "another generation in log.txt": lambda path: replace_in(path / "log.txt", b"steps ", b"steps 9"),
    "events": lambda path: next((path / "tensorboard").glob("events*")).open("ab").write(b"123"),
    "a row": lambda path: change(path, "UPDATE generations SET fitness_max = 9 WHERE generation = 2"),
    "a state": lambda path: change(path, "UPDATE states SET steps = steps + 1 WHERE generation = 5"),
    "a session": lambda path: change(path, """INSERT INTO sessions VALUES (9, 1, '{}', '{"seed": 9}', 1.0, 1)"""),
}


def replace_in(file, old, new):
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a finished run."""
    path = tmp_path_factory.mktemp("ended") / "run"
    new_run(path, logging={"trackers": ["tensorboard"]})
    return path


@pytest.fixture
def copy(ended, tmp_path):
    """A copy of the finished run."""
    assert differences(run_contents(shutil.copytree(ended, tmp_path / "run")), run_contents(ended)) == []
    return tmp_path / "run"


@pytest.mark.parametrize("name", FILES)
def test_the_comparison_sees_every_file(ended, copy, name):
    FILES[name](copy)
    assert name in differences(run_contents(copy), run_contents(ended))


@pytest.mark.parametrize("sql", SQL.values(), ids=SQL)
def test_the_comparison_sees_every_table(ended, copy, sql):
    assert change(copy, sql) == 1
    with suppress(UserError, ValueError):  # raised for a wrong checksum or row count
        assert "run.db" in differences(run_contents(copy), run_contents(ended))


@pytest.mark.parametrize("name", BROKEN)
def test_the_comparison_refuses_what_is_broken(copy, name):
    BROKEN[name](copy)
    with pytest.raises((AssertionError, ValueError, UserError, struct.error)):
        run_contents(copy)


def test_the_comparison_leaves_clocks_out(ended, tmp_path):
    path, clock = tmp_path / "run", "SELECT seconds_total, steps_per_s FROM generations"
    new_run(path, logging={"trackers": ["tensorboard"]})
    assert query(path, clock) != query(ended, clock)
    assert differences(run_contents(path), run_contents(ended)) == []
