"""run.db during training and after the process is killed: one writer, any number of readers, and copies."""

import os
import platform
import re
import shutil
import signal
import threading
import time

import pytest

from neuroevo.core.errors import UserError
from neuroevo.runs.database import Database
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.runs.test_disk import let_others_in, without_roots_rights
from tests.support.commands import start_endless
from tests.support.damage import REFUSED, assert_equal_or_refused, attempt, everything
from tests.support.databases import change, query
from tests.support.runs import count_rows, interrupted_run, new_run, play, read_rows, results, timeless
from tests.support.toy import ToyEvaluator, call_of


@pytest.fixture
def endless(tmp_path):
    """A run folder, and the process that trains into it."""
    path = tmp_path / "run"
    process = start_endless(path)
    yield path, process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_and_the_first_goes_on(endless, toy_command):
    path, process = endless
    words = f"another process is training into {path}: process {process.pid} on {platform.node()}"
    with pytest.raises(UserError, match=f"^{re.escape(words)}$"):
        RunFolder.resume(path)
    done = toy_command("train", "--resume", path)
    assert (done.returncode, done.stderr) == (2, f"neuroevo: {words}\n")
    before = count_rows(path)
    deadline = time.monotonic() + 60
    while count_rows(path) < before + 5:
        assert process.poll() is None and time.monotonic() < deadline


def test_a_killed_process_leaves_no_lock(endless):
    path, process = endless
    process.send_signal(signal.SIGKILL)
    process.wait()
    rows = read_rows(path)
    folder = RunFolder.resume(path, [f"training.generations={len(rows)}"])
    assert not folder.ended
    play(folder)
    again = read_rows(path)
    assert [timeless(row) for row in again] == [timeless(row) for row in rows]
    folder = RunFolder.resume(path)
    assert folder.ended
    with pytest.raises(UserError, match=f"another process is training into {path}"):  # also from the same process
        RunFolder.resume(path)
    folder.close()
    RunFolder.resume(path).close()


def test_readers_see_complete_generations_while_a_run_goes_on(endless):
    path, process = endless
    reader, members, seen = RunReader(path), MembersReader(path), set()
    deadline = time.monotonic() + 60
    while len(seen) < 25:
        assert process.poll() is None and time.monotonic() < deadline
        rows = reader.rows()
        assert [row["generation"] for row in rows] == list(range(len(rows)))
        assert {len(row["fitness"]) for row in rows} == {8}
        newest = members.generations - 1
        assert newest >= len(rows) - 1 and len(members.read(newest)) == 8
        assert members.lineage(newest, 3)[0] == (newest, 3)
        number, elite = reader.elite()
        assert number >= len(rows) - 1 and elite == reader.elite(number)[1]
        assert reader.state().generation >= 0
        seen.add(len(rows))
    process.send_signal(signal.SIGINT)
    process.wait()
    rows = [timeless(row) for row in read_rows(path)]
    new_run(path.with_name("alone"), training={"generations": len(rows)})
    assert rows == [timeless(row) for row in read_rows(path.with_name("alone"))]


def test_a_reader_that_is_not_closed_does_not_stop_a_run(tmp_path, whole_run):
    """The run waits for a reader that was opened before it; a later reader keeps its snapshot while it is open."""
    path, count = interrupted_run(tmp_path / "run", 2), "SELECT count(*) FROM generations"
    early, late = Database(path / "run.db"), []
    threading.Timer(1.0, early.close).start()

    class Reading(ToyEvaluator):
        def submit(self, *arguments):
            if not late:
                late.append(Database(path / "run.db"))
                assert late[0].rows(tuple[int], count) == [(2,)]
            return super().submit(*arguments)

    play(RunFolder.resume(path), Reading())
    assert late[0].rows(tuple[int], count) == [(2,)] and query(path, count) == [(5,)]
    late[0].close()
    assert results(path) == whole_run()


@pytest.mark.parametrize("seconds", [0.0, 0.6])
def test_a_copy_of_the_database_alone(endless, tmp_path, seconds):
    """Without its log, a copy is a complete earlier snapshot, or is rejected."""
    path, process = endless
    time.sleep(seconds)
    copies = [tmp_path / "running", tmp_path / "killed"]
    for copy in copies:
        copy.mkdir()
        shutil.copy(path / "run.db", copy)
        process.send_signal(signal.SIGKILL)
        process.wait()
    new_run(tmp_path / "alone", training={"generations": len(read_rows(path))}, checkpoints={"every": 10**6})
    expected = [timeless(row) for row in read_rows(tmp_path / "alone")]
    for copy in copies:
        rows = attempt(lambda copy=copy: RunReader(copy).rows())
        if rows == REFUSED:
            continue
        rows = [timeless(row) for row in rows]
        assert rows == expected[: len(rows)]
        play(RunFolder.resume(copy, [f"training.generations={len(rows) + 1}"]))
        assert [timeless(row) for row in read_rows(copy)][: len(expected)] == expected[: len(rows) + 1]


def test_a_copy_that_is_half_of_one_moment_and_half_of_another(tmp_path):
    """SQLite moves a log's pages into the file in order, and the file may be copied in the middle of this."""
    changes = {"checkpoints": {"keep_last": 9}}
    path = interrupted_run(tmp_path / "run", 2, **changes)
    before = (path / "run.db").read_bytes()
    folder = RunFolder.resume(path)
    with pytest.raises(KeyboardInterrupt):
        play(folder, ToyEvaluator(interrupt_at=call_of(2, "validation")))
    after, expected = (path / "run.db").read_bytes(), everything(path, 4)
    states = {number: RunReader(path).state(number) for number in RunReader(path).checkpoints()}
    play(RunFolder.resume(path))
    whole = everything(path, 5)
    starts = set()  # first generations of resumed runs
    for page in range(1, len(after) // 4096, 2):
        copy = tmp_path / str(page)
        copy.mkdir()
        (copy / "run.db").write_bytes(after[: 4096 * page] + before[4096 * page :])
        found = everything(copy, 4)
        rows = found.pop("rows")
        assert rows in (REFUSED, expected["rows"], expected["rows"][:2])
        assert_equal_or_refused(found, expected, states)
        folder = attempt(lambda copy=copy: RunFolder.resume(copy))
        if folder != REFUSED:
            starts.add(folder.state.generation)
            assert attempt(lambda folder=folder: play(folder)) != REFUSED
            assert_equal_or_refused(everything(copy, 5), whole, {5: whole["state"]})
    assert len(starts) > 1


def test_a_run_in_a_folder_that_may_not_be_written_is_read(tmp_path):
    """A finished run has no log; the log of a killed run may have to be moved into the file first."""
    path = tmp_path / "run"
    new_run(path)
    expected = everything(path, 5)
    let_others_in(path)
    for each in (path, *path.rglob("*")):
        os.chmod(each, 0o555 if each.is_dir() else 0o444)
    there = sorted(path.rglob("*"))
    with without_roots_rights():
        assert os.geteuid() != 0
        found = everything(path, 5)
        with pytest.raises(UserError, match=str(path)):
            play(RunFolder.resume(path, ["training.generations=6"]))
    assert_equal_or_refused(found, expected, {5: expected["state"]})
    assert REFUSED not in map(str, found.values())
    assert sorted(path.rglob("*")) == there
    for each in (path, *path.rglob("*")):
        os.chmod(each, 0o755)


def test_a_session_of_another_machine_or_of_a_process_that_is_gone(tmp_path, whole_run):
    """Its process id may have been reused."""
    path = interrupted_run(tmp_path / "run", 2)
    (process,) = query(path, "SELECT process FROM sessions")[0]
    assert f'"pid": {os.getpid()}' in process
    for other in (process.replace(platform.node(), "elsewhere"), process.replace('"began": "', '"began": "9')):
        change(path, "UPDATE sessions SET ended = 0, process = ?", other)
        RunFolder.resume(path).close()
    play(RunFolder.resume(path))
    assert results(path) == whole_run()
