"""Files that somebody deletes, replaces or cuts while a run goes on: it ends and says so, and nothing more is lost."""

import os
import shutil
import signal
import subprocess

import pytest
from neuroevo.runs.metrics_rows import read_rows

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.members import MembersReader
from neuroevo.runs.paths import CHECKPOINTS, CONFIG, CSV, ELITES, LOG, MEMBERS, METRICS, REFERENCE, TENSORBOARD
from tests.support.commands import start_endless
from tests.support.runs import checkpoint_after, checkpoints_of, config, contents, count_rows, new_run, play, results
from tests.support.toy import ToyEvaluator, call_of


class Meanwhile(ToyEvaluator):
    """Does something while the fourth generation of a run is played."""

    def __init__(self, do, generation=3):
        super().__init__()
        self._do, self._call = do, call_of(generation, "validation")

    def submit(self, *arguments):
        if len(self.calls) == self._call:
            self._do()
        return super().submit(*arguments)


def run_with(path, do, **changes):
    """The message with which a run of five generations ends when that is done in its fourth; "" if it is finished."""
    try:
        new_run(path, Meanwhile(do), **changes)
    except DiskError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("name", [METRICS, ELITES])
def test_a_deleted_file_is_written_again_and_the_run_ends(tmp_path, whole_run, name, every):
    path = tmp_path / "run"
    told = run_with(path, (path / name).unlink, checkpoints={"every": every})
    assert f"{path / name} was deleted" in told and f"written to {path / name}" in told
    assert len(read_rows(path)) == 3
    folder = RunFolder.resume(path)
    assert folder.state.generation == 3
    play(folder)
    assert results(path) == whole_run(checkpoints={"every": every})


def test_a_replaced_file_stays_and_what_was_written_is_kept_beside_it(tmp_path, whole_run):
    path = tmp_path / "run"

    def replace():
        (path / "new").write_text("another one\n")
        (path / "new").rename(path / METRICS)

    told, kept = run_with(path, replace), path / f"{METRICS}.kept-1"
    assert f"{path / METRICS} was replaced" in told and str(kept) in told
    assert (path / METRICS).read_text() == "another one\n"
    with pytest.raises(UserError, match=f"{path / METRICS} has 12 bytes"):
        RunFolder.resume(path)
    kept.rename(path / METRICS)
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


@pytest.mark.parametrize("name", [METRICS, ELITES])
def test_of_a_file_that_was_cut_nothing_more_is_lost(tmp_path, whole_run, name):
    """The rest is lost for good; the checkpoints before it can still be gone on from."""
    path = tmp_path / "run"

    def cut():
        with (path / name).open("r+b") as file:
            file.truncate((path / name).stat().st_size - 1)

    told = run_with(path, cut)
    assert f"{path / name} has" in told
    assert checkpoints_of(path) == [1, 2, 3]
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    play(folder)
    assert results(path) == whole_run()


def test_a_file_that_somebody_else_continues(tmp_path, whole_run):
    path = tmp_path / "run"

    def go_on():
        with (path / METRICS).open("a") as file:
            file.write('{"generation": 3}\n')

    assert f"{path / METRICS} has" in run_with(path, go_on)
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


def test_a_deleted_checkpoint(tmp_path, whole_run):
    """The next one is written first."""
    path = tmp_path / "run"
    assert f"{checkpoint_after(path, 3)} was deleted" in run_with(path, lambda: checkpoint_after(path, 3).unlink())
    folder = RunFolder.resume(path)
    assert folder.state.generation == 4
    play(folder)
    assert results(path) == whole_run()


def test_all_checkpoints_deleted(tmp_path, whole_run):
    path = tmp_path / "run"
    assert "was deleted" in run_with(path, lambda: shutil.rmtree(path / CHECKPOINTS))
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


def test_old_checkpoints_may_be_deleted(tmp_path, whole_run):
    path = tmp_path / "run"
    assert run_with(path, lambda: checkpoint_after(path, 2).unlink()) == ""
    assert results(path) == whole_run()


@pytest.mark.parametrize("replace", [False, True])
def test_files_that_can_be_made_anew(tmp_path, whole_run, replace):
    """metrics.csv is made of metrics.jsonl, and no result depends on the log."""
    path = tmp_path / "run"

    def lose():
        for name in (CSV, LOG):
            (path / name).unlink()
            if replace:
                (path / name).write_text("another one\n")

    assert run_with(path, lose) == ""
    assert results(path) == whole_run()
    log = (path / LOG).read_text()
    assert f"{path / CSV} was deleted or changed" in log and f"{path / LOG} was" in log


def test_files_that_resuming_needs_are_written_again(tmp_path, whole_run):
    path, changes = tmp_path / "run", {"network": {"name": "virtual_bn"}}

    def lose():
        (path / CONFIG).unlink()
        (path / REFERENCE).unlink()

    assert run_with(path, lose, training={"generations": 4}, **changes) == ""
    log = (path / LOG).read_text()
    assert f"{path / CONFIG} was deleted" in log and f"{path / REFERENCE} was deleted" in log
    play(RunFolder.resume(path, ["training.generations=5"]))
    assert results(path) == whole_run(**changes)


@pytest.mark.parametrize("every", [1, 10])
def test_deleted_members_are_written_again_and_the_run_ends(tmp_path, whole_run, every):
    path = tmp_path / "run"
    told = run_with(path, (path / MEMBERS).unlink, checkpoints={"every": every})
    assert f"{path / MEMBERS} was deleted" in told and f"written to {path / MEMBERS}" in told
    assert len(read_rows(path)) == 3
    play(RunFolder.resume(path))
    assert results(path) == whole_run(checkpoints={"every": every})
    members = MembersReader(path)
    assert all(members.kept(generation) for generation in range(5))


def test_of_members_that_were_cut_nothing_more_is_lost(tmp_path, whole_run):
    path = tmp_path / "run"
    told = run_with(path, lambda: os.truncate(path / MEMBERS, (path / MEMBERS).stat().st_size - 1))
    assert f"{path / MEMBERS} has" in told and "something else changed it" in told
    assert len(read_rows(path)) == 3
    play(RunFolder.resume(path))
    assert results(path) == whole_run()
    members = MembersReader(path)
    assert [members.kept(generation) for generation in range(5)] == [True, True, False, True, True]


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("name", [CONFIG, REFERENCE])
def test_a_changed_file_that_resuming_needs_is_kept_and_written_again(tmp_path, whole_run, name, every):
    path, changes = tmp_path / "run", {"network": {"name": "virtual_bn"}, "checkpoints": {"every": every}}
    own = []

    def replace():
        own.append((path / name).read_bytes())
        (path / "new").write_text("[training]\nseed = 9\n")
        (path / "new").rename(path / name)

    told = run_with(path, replace, **changes)
    assert f"{path / name} was changed" in told and f"{path / name}.changed" in told
    assert (path / name).read_bytes() == own[0]
    assert (path / f"{name}.changed").read_text() == "[training]\nseed = 9\n"
    folder = RunFolder.resume(path)
    assert folder.state.generation == 4
    play(folder)
    assert results(path) == whole_run(**changes)


def test_deleted_event_files(tmp_path, whole_run):
    path, changes = tmp_path / "run", {"logging": {"trackers": ["tensorboard"]}}
    told = run_with(path, lambda: shutil.rmtree(path / TENSORBOARD), **changes)
    assert f"{path / TENSORBOARD}" in told and "was deleted" in told
    play(RunFolder.resume(path))
    assert results(path) == whole_run(**changes)


@pytest.mark.parametrize("replace", [False, True])
def test_a_folder_that_is_moved(tmp_path, whole_run, replace):
    path, moved = tmp_path / "run", tmp_path / "moved"

    def move():
        path.rename(moved)
        if replace:
            path.mkdir()

    told = run_with(path, move, checkpoints={"every": 10})
    assert f"the folder {path} was {'replaced' if replace else 'deleted or renamed'}" in told
    assert contents(path) == {}
    folder = RunFolder.resume(moved)
    assert folder.state.generation == 3
    play(folder)
    assert results(moved) == whole_run(checkpoints={"every": 10})


@pytest.mark.parametrize("name", [METRICS, MEMBERS])
def test_the_command_says_what_was_lost(tmp_path, name):
    path = tmp_path / "run"
    process = start_endless(path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        (path / name).unlink()
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    (line,) = stderr.splitlines()
    assert f"{path / name} was deleted" in line and f"neuroevo train --resume {path}" in line
    rows = count_rows(path)
    assert rows >= 5 and RunFolder.resume(path, [f"training.generations={rows}"]).state.generation == rows


def test_temporary_files_of_a_killed_process_are_swept(tmp_path, whole_run):
    """Those that it was writing, and no others."""
    path = tmp_path / "run"
    new_run(path, training={"generations": 3})
    left = [
        f".{CSV}.12.tmp",
        ".config.toml.3.tmp",
        f"{CHECKPOINTS}/.generation-000009.ckpt.77.tmp",
        ".trackers.json.1.tmp",
    ]
    others = [".notes.12.tmp", f"{CHECKPOINTS}/.mine.ckpt.77.tmp", "metrics.csv.12.tmp", f".{CSV}.tmp"]
    for name in [*left, *others]:
        (path / name).write_bytes(b"half")
    play(RunFolder.resume(path, ["training.generations=5"]))
    assert [name for name in left if (path / name).exists()] == []
    assert [name for name in others if (path / name).exists()] == others
    for name in others:
        (path / name).unlink()
    assert results(path) == whole_run()


def test_a_process_killed_inside_an_atomic_write(tmp_path, toy_command):
    """With what it leaves, which is found before it is swept."""
    file, path = tmp_path / "c.toml", tmp_path / "run"
    file.write_text(config().toml())
    done = toy_command("train", file, "--out", path, kill_at="generation-000003.ckpt", **{"in": path})
    assert done.returncode == -signal.SIGKILL
    assert len(list(path.rglob(".*.tmp"))) == 1
    assert toy_command("train", "--resume", path).returncode == 0
    assert not list(path.rglob(".*.tmp"))
