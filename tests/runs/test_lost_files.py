"""Files that are deleted, replaced or changed during a run: the run ends with an error, or rewrites them."""

import os
import shutil
import signal
import subprocess

import pytest

from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.paths import CONFIG, CSV, DATABASE, LOG, TENSORBOARD
from neuroevo.sessions.folder import RunFolder
from tests.support.commands import start_endless
from tests.support.runs import config, count_rows, new_run, play, read_rows, results
from tests.support.toy import ToyEvaluator, call_of


class Meanwhile(ToyEvaluator):
    """Evaluator that calls a function while the fourth generation of a run is played."""

    def __init__(self, do, generation=3):
        super().__init__()
        self._do, self._call = do, call_of(generation, "validation")

    def submit(self, *arguments):
        if len(self.calls) == self._call:
            self._do()
        return super().submit(*arguments)


def run_with(path, do, **changes):
    """Return the message with which a run of five generations ends after a fault in its fourth; "" if it finishes."""
    try:
        new_run(path, Meanwhile(do), **changes)
    except DiskError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("every", [1, 10])
def test_a_deleted_database_is_written_again_and_the_run_ends(tmp_path, whole_run, every):
    path = tmp_path / "run"
    told = run_with(path, (path / DATABASE).unlink, checkpoints={"every": every})
    assert f"{path / DATABASE} was deleted" in told and f"written to {path / DATABASE}" in told
    assert len(read_rows(path)) == 3
    play(RunFolder.resume(path))
    assert results(path) == whole_run(checkpoints={"every": every})


def test_a_replaced_database_stays_and_what_was_written_is_kept_beside_it(tmp_path, whole_run):
    path = tmp_path / "run"

    def replace():
        (path / "new").write_text("another one\n")
        (path / "new").rename(path / DATABASE)

    told, kept = run_with(path, replace), path / f"{DATABASE}.kept-1"
    assert f"{path / DATABASE} was replaced" in told and str(kept) in told
    assert (path / DATABASE).read_text() == "another one\n"
    kept.rename(path / DATABASE)
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


@pytest.mark.parametrize("part", [0, 0.5])
def test_a_database_that_is_cut_ends_the_run(tmp_path, part):
    """The inode is unchanged, and SQLite's page cache hides the change until the end."""
    path = tmp_path / "run"
    left = []

    def cut():
        left.append(int((path / DATABASE).stat().st_size * part))
        os.truncate(path / DATABASE, left[0])

    told = run_with(path, cut)
    assert f"{path / DATABASE} was truncated from" in told and f" to {left[0]:,} bytes" in told
    with pytest.raises(UserError, match="is damaged"):
        RunFolder.resume(path)


@pytest.mark.parametrize("replace", [False, True])
def test_files_that_can_be_made_again(tmp_path, whole_run, replace):
    """metrics.csv and config.toml are copies for users, and no result depends on the log."""
    path = tmp_path / "run"

    def lose():
        for name in (CSV, LOG, CONFIG):
            (path / name).unlink()
            if replace:
                (path / name).write_text("another one\n")

    assert run_with(path, lose) == ""
    assert (path / CONFIG).exists() == replace
    play(RunFolder.resume(path))
    assert results(path) == whole_run()
    assert (path / CONFIG).read_text() == config().toml()
    assert f"{path / CSV} was deleted or modified" in (path / LOG).read_text()


def test_deleted_event_files(tmp_path, whole_run):
    path, changes = tmp_path / "run", {"logging": {"trackers": ["tensorboard"]}}
    run_with(path, lambda: shutil.rmtree(path / TENSORBOARD), **changes)
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
    assert not (path / DATABASE).exists()
    folder = RunFolder.resume(moved)
    assert folder.state.generation == 3
    play(folder)
    assert results(moved) == whole_run(checkpoints={"every": 10})


def test_the_command_says_what_was_lost(tmp_path):
    path = tmp_path / "run"
    process = start_endless(path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        (path / DATABASE).unlink()
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    (line,) = stderr.splitlines()
    assert f"{path / DATABASE} was deleted" in line and f"neuroevo train --resume {path}" in line
    rows = count_rows(path)
    assert rows >= 5 and RunFolder.resume(path, [f"training.generations={rows}"]).state.generation == rows


def test_temporary_files_of_a_killed_process_are_swept(tmp_path, whole_run):
    """Only files that it was writing are deleted."""
    path = tmp_path / "run"
    new_run(path, training={"generations": 3})
    left = [f".{CSV}.12.tmp", ".config.toml.3.tmp", f".{DATABASE}.77.tmp", ".trackers.json.1.tmp"]
    others = [".notes.12.tmp", "metrics.csv.12.tmp", f".{CSV}.tmp"]
    for name in [*left, *others]:
        (path / name).write_bytes(b"half")
    play(RunFolder.resume(path, ["training.generations=5"]))
    assert [name for name in left if (path / name).exists()] == []
    assert [name for name in others if (path / name).exists()] == others
    for name in others:
        (path / name).unlink()
    assert results(path) == whole_run()


@pytest.mark.parametrize("name", [DATABASE, CONFIG, CSV])
def test_a_process_killed_inside_an_atomic_write(tmp_path, toy_command, name):
    """Its remains are detected before they are swept."""
    file, path = tmp_path / "c.toml", tmp_path / "run"
    file.write_text(config().toml())
    done = toy_command("train", file, "--out", path, kill_at=name, **{"in": path})
    assert done.returncode == -signal.SIGKILL
    assert len(list(path.rglob(".*.tmp"))) == 1
    words = ("train", "--resume", path) if (path / DATABASE).exists() else ("train", file, "--out", path)
    assert toy_command(*words).returncode == 0
    assert not list(path.rglob(".*.tmp"))
