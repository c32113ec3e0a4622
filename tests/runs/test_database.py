"""run.db is opened as untrusted input: it contains exactly neuroevo's tables, or is rejected with a one-line error."""

import os
import re
import shutil
import sqlite3
import struct
from contextlib import closing

import pytest

from neuroevo.core.errors import UserError
from neuroevo.runs.database import Database
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import change, query
from tests.support.mutants import bounded
from tests.support.runs import contents, interrupted_run

OPEN = {
    "read": lambda path: RunReader(path).rows(),
    "members": lambda path: MembersReader(path).read(0),
    "resume": RunFolder.resume,
    "fork": lambda path: RunFolder.fork(path.with_name("fork"), path),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return interrupted_run(tmp_path_factory.mktemp("made") / "run", 2)


@pytest.fixture
def run(made, tmp_path):
    """A fresh run that was interrupted in its third generation."""
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def refused(path, words):
    """Check that every way to open the run fails with one line that names the file, and that nothing is written."""
    before = contents(path)
    for way in OPEN.values():
        with pytest.raises(UserError) as caught:
            way(path)
        message = str(caught.value)
        assert "\n" not in message and str(path / "run.db") in message and re.search(words, message)
    assert contents(path) == before


TRIGGER = "AFTER INSERT ON sessions BEGIN DELETE FROM run; END"
EXTRA = {
    "a table": "CREATE TABLE more (x)",
    "a virtual table": "CREATE VIRTUAL TABLE more USING fts5 (x)",
    "a view": "CREATE VIEW more AS SELECT * FROM members",
    "a trigger": f"CREATE TRIGGER more {TRIGGER}",
    "a trigger with a name that looks like SQLite's": f"CREATE TRIGGER sqliteX {TRIGGER}",
    "an index": "CREATE INDEX more ON members (fitness)",
    "an index of an expression": "CREATE INDEX more ON members (abs(fitness))",
    "a column": "ALTER TABLE members ADD COLUMN more INTEGER",
    "a missing table": "DROP TABLE episodes",
    "a missing index": "DROP INDEX arrays_state",
}


@pytest.mark.parametrize("what", EXTRA)
def test_other_tables_are_refused(run, what):
    change(run, EXTRA[what])
    refused(run, "its tables are not those of neuroevo")


def test_statistics_of_other_programs_change_nothing(made, run):
    change(run, "ANALYZE")
    assert query(run, "SELECT count(*) FROM sqlite_stat1") != [(0,)]
    assert RunReader(run).rows() == RunReader(made).rows()
    assert MembersReader(run).read(0).fitness.tolist() == MembersReader(made).read(0).fitness.tolist()
    folder = RunFolder.resume(run)
    assert folder.state.generation == 2
    folder.close()


HIDDEN = {  # entries that only an edited schema table can contain: type, name, table, SQL
    "a trigger with SQLite's prefix": ("trigger", "sqlite_x", "sessions", f"CREATE TRIGGER sqlite_x {TRIGGER}"),
    "a view in place of a table": ("view", "members", "members", "CREATE VIEW members AS SELECT 1"),
    "a condition": ("table", "episodes", "episodes", "CREATE TABLE episodes (x CHECK (load_extension('x')))"),
}


@pytest.mark.parametrize("what", HIDDEN)
def test_an_edited_schema_is_refused(run, what):
    kind, name, table, sql = HIDDEN[what]
    with closing(sqlite3.connect(run / "run.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        if kind == "trigger":
            connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, 0, ?)", [kind, name, table, sql])
        else:
            connection.execute("UPDATE sqlite_schema SET type = ?, sql = ? WHERE name = ?", [kind, sql, name])
    refused(run, "its tables are not those of neuroevo|malformed database schema")


@pytest.mark.parametrize(
    ("pragma", "words"),
    [
        ("application_id = 0", "its application_id is 0x0"),
        ("application_id = -1", "its application_id is -0x1"),
        ("user_version = 1", "another version of neuroevo made .*: its schema has version 1, this neuroevo reads"),
        ("user_version = 0", "another version of neuroevo"),
    ],
)
def test_another_application_or_version(run, pragma, words):
    change(run, f"PRAGMA {pragma}")
    refused(run, words)


NO_DATABASE = {
    "empty": (lambda path: path.write_bytes(b""), "its application_id is 0x0"),
    "text": (lambda path: path.write_text("[training]\nseed = 1\n" * 99), "file is not a database"),
    "zeros": (lambda path: path.write_bytes(bytes(8192)), "file is not a database"),
    "half": (lambda path: os.truncate(path, path.stat().st_size // 2), "malformed|damaged"),
    "a header alone": (lambda path: os.truncate(path, 100), "malformed|damaged|not a run's database"),
}


@pytest.mark.parametrize("what", NO_DATABASE)
def test_files_that_are_no_databases(run, what):
    write, words = NO_DATABASE[what]
    write(run / "run.db")
    refused(run, words)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_what_is_no_regular_file(run, kind):
    """Opening never blocks on a pipe, and never reads a file outside the folder."""
    file, outside = run / "run.db", run.with_name("outside")
    file.rename(outside)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(outside if kind == "link" else "/dev/zero")
    before = outside.read_bytes()
    for open_file in (lambda: Database(file), lambda: Database(file, "rw"), lambda: MembersReader(run).read(0)):
        with pytest.raises(UserError, match=f"^{file} is (a symbolic link|not a regular file), expected a"):
            open_file()
    for way in OPEN.values():
        with pytest.raises(UserError) as caught:
            way(run)
        assert "\n" not in str(caught.value) and str(run) in str(caught.value)
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", ["run.db-wal", "run.db-shm", "run.db-journal"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_sqlites_own_files_are_not_written_through(run, name, kind):
    """Whatever takes their place."""
    outside = run.with_name("outside")
    outside.write_text("of the user")
    if kind == "pipe":
        os.mkfifo(run / name)
    elif kind == "folder":
        (run / name).mkdir()
    else:
        (run / name).symlink_to(outside)
    for way in OPEN.values():
        with pytest.raises(UserError, match=f"{run / name} is (a symbolic link|not a regular file|a folder|a pipe)"):
            way(run)
    assert outside.read_text() == "of the user"


def test_rows_that_point_at_each_other(run):
    """A cycle of parents, and a parent that comes later, raise an error."""
    reads = lambda: RunReader(run).elite(0), lambda: MembersReader(run).read(0), lambda: RunReader(run).state(1)
    newest = query(run, "SELECT max(id) FROM genomes")[0][0]
    for sql in (
        "UPDATE genomes SET parent = id",
        f"UPDATE genomes SET parent = {newest} WHERE id = 1",
        "UPDATE genomes SET parent = 10000000",
    ):
        change(run, sql)
        for read in reads:
            with bounded(16), pytest.raises(UserError, match=f"{run / 'run.db'}.* genome"):
                read()


def test_a_page_of_the_schema_that_points_to_itself(run):
    """In the B-tree of the file: the first page, which is not a leaf, is its own last child."""
    data = bytearray((run / "run.db").read_bytes())
    assert data[100] == 5
    data[108:112] = struct.pack(">I", 1)
    (run / "run.db").write_bytes(data)
    refused(run, "malformed|not those of neuroevo")


def test_a_schema_that_is_not_utf_8(run):
    """SQLite's message quotes bytes that Python cannot decode."""
    data = (run / "run.db").read_bytes()
    (run / "run.db").write_bytes(data.replace(b"CREATE TABLE episodes", b"CREATE TABL\xa0 episodes"))
    refused(run, "is damaged: it contains text that is not UTF-8")
