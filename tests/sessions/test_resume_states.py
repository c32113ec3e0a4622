"""States that a run keeps, and the state from which it continues if newer states are unusable."""

import re
import sqlite3
from contextlib import closing

import pytest

from neuroevo.core.errors import UserError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.damage import DAMAGES
from tests.support.databases import change, query
from tests.support.runs import checkpoints_of, contents, interrupted_run, new_run, play, read_elites, results


def test_which_states_stay(tmp_path):
    path = tmp_path / "run"
    new_run(path, training={"generations": 9}, checkpoints={"keep_last": 2, "keep_every": 3})
    assert checkpoints_of(path) == [0, 3, 6, 8, 9]
    reader = RunReader(path)
    assert [reader.state(finished).generation for finished in (0, 3, 9)] == [0, 3, 9]
    words = (
        rf"^the state after generation 5 in {path / 'run.db'} is missing \(generations with a state: 0, 3, 6, 8, 9\)$"
    )
    with pytest.raises(UserError, match=words):
        reader.state(5)


def test_weights_and_arrays_of_deleted_states_are_deleted(tmp_path):
    path = tmp_path / "run"
    new_run(path, algorithm={"name": "es", "population": 8, "sigma": 0.1}, checkpoints={"keep_last": 2})
    assert checkpoints_of(path) == [4, 5]
    assert query(path, "SELECT DISTINCT state FROM arrays ORDER BY state") == [(4,), (5,)]
    assert query(path, "SELECT count(*) > 4, count(weights) FROM centers") == [(1, 2)]


def test_fewer_states_and_one_when_it_stops(tmp_path, whole_run):
    path = interrupted_run(tmp_path / "run", 3, checkpoints={"every": 2, "keep_last": 10})
    of_the_interruption, of_the_end = 3, 5
    assert checkpoints_of(path) == [0, 2, of_the_interruption]
    play(RunFolder.resume(path))
    assert results(path) == whole_run()
    assert checkpoints_of(path) == [0, 2, of_the_interruption, 4, of_the_end]


@pytest.mark.parametrize("how", DAMAGES)
def test_the_state_before_a_bad_one_is_used(tmp_path, whole_run, how):
    path = interrupted_run(tmp_path / "run", 3)
    DAMAGES[how].to(path, 3)
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    [unusable] = folder.unusable
    assert unusable.generation == 3 and re.search(DAMAGES[how].message, unusable.reason)
    play(folder)
    assert results(path) == whole_run()
    assert f"skipped the state after generation 3 in {path / 'run.db'}: it is damaged" in (path / "log.txt").read_text()


@pytest.mark.parametrize("how", DAMAGES)
def test_no_state_to_continue_from(tmp_path, how):
    path = interrupted_run(tmp_path / "run", 3)
    DAMAGES[how].to(path, 3)
    change(path, "DELETE FROM states WHERE generation < 3")
    there = contents(path)
    for use in (RunFolder.resume, lambda path: RunFolder.fork(path.with_name("fork"), path)):
        with pytest.raises(UserError, match=f"no state to continue from:\n.*generation 3 .*{DAMAGES[how].message}"):
            use(path)
    assert contents(path) == there and not path.with_name("fork").exists()


def test_no_state_at_all(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    change(path, "DELETE FROM states")
    with pytest.raises(UserError, match=rf"^{path} has no state to continue from \({path / 'run.db'} has none\)$"):
        RunFolder.resume(path)


def test_the_command_says_what_it_passed_over(tmp_path, toy_command):
    path = interrupted_run(tmp_path / "run", 3)
    DAMAGES["a changed number"].to(path, 3)
    done = toy_command("train", "--resume", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("neuroevo: skipped") == 1
    assert f"the state after generation 3 in {path / 'run.db'}: it is damaged" in done.stderr
    assert "from generation 2" in done.stdout


def test_a_start_from_a_run_with_a_damaged_state_says_so(tmp_path, toy_command):
    first = interrupted_run(tmp_path / "first", 3)
    DAMAGES["a changed number"].to(first, 3)
    start_from = f"training.start_from={first}"
    done = toy_command("train", first / "config.toml", "--out", tmp_path / "second", "--set", start_from)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("skipped") == 1
    assert f"the state after generation 3 in {first / 'run.db'}: it is damaged" in done.stderr
    assert len(read_elites(tmp_path / "second")) == 5


@pytest.mark.parametrize("table", ["generations", "members", "populations"])
def test_rows_before_the_state_that_are_missing(tmp_path, table):
    """All states are unusable: resuming fails with a message about the missing data."""
    path = interrupted_run(tmp_path / "run", 3)
    change(path, f"DELETE FROM {table} WHERE generation = 1")
    if table == "members":
        with pytest.raises(UserError, match=f"{path / 'run.db'} is damaged: members of generations 0 to 2 are missing"):
            RunReader(path).rows()
        return
    for use in (lambda: play(RunFolder.resume(path)), lambda: RunReader(path).rows()):
        with pytest.raises(UserError, match=rf"^{path / 'run.db'} is damaged: .*generation"):
            use()


def test_an_elite_of_another_line_is_noticed(tmp_path):
    path = interrupted_run(tmp_path / "run", 3)
    other = query(path, "SELECT id FROM genomes WHERE id NOT IN (SELECT elite FROM generations)")[0][0]
    change(path, "UPDATE generations SET elite = ? WHERE generation = 2", other)
    with pytest.raises(UserError, match="generation 2 has been changed"):
        RunReader(path).elite()


def test_a_state_that_is_later_than_all_rows_is_deleted(tmp_path, whole_run):
    """Regardless of how the file was created."""
    path = interrupted_run(tmp_path / "run", 3)
    with closing(sqlite3.connect(path / "run.db")) as connection, connection:
        connection.execute("UPDATE states SET generation = 9 WHERE generation = 1")
    folder = RunFolder.resume(path)
    assert folder.state.generation == 3 and [each.generation for each in folder.unusable] == [9]
    play(folder)
    assert results(path) == whole_run()


def test_a_state_whose_generation_has_no_rows(tmp_path, whole_run):
    """As in a partially written file."""
    path = interrupted_run(tmp_path / "run", 3)
    for table in ("members", "populations", "generations"):
        change(path, f"DELETE FROM {table} WHERE generation = 2")
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    assert [each.reason for each in folder.unusable] == ["is later than the database's 2 generations"]
    play(folder)
    assert results(path) == whole_run()
