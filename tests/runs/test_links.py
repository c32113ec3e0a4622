"""Run folders with malicious links: nothing outside the folder is written, and the error names the link."""

import os
from pathlib import Path

import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.user_module import KEPT
from neuroevo.runs.paths import CONFIG, CSV, DATABASE, LOG, TENSORBOARD
from neuroevo.sessions import folder as folder_module
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.tensorboard import FRAMES
from tests.support.runs import config, contents, new_run, play, results

FILES = (DATABASE, CONFIG, CSV, LOG)
LOGS = tuple(f"{DATABASE}-{kind}" for kind in ("wal", "shm", "journal"))
FOLDERS = (TENSORBOARD, f"{TENSORBOARD}/{FRAMES}")


@pytest.fixture
def prepared(tmp_path):
    """A run of two generations, and a function that moves a file out of its folder and leaves a link."""
    path, outside = tmp_path / "run", tmp_path / "outside"
    new_run(path, training={"generations": 2}, logging={"trackers": ["tensorboard"]})
    outside.mkdir()
    (outside / "file").write_text("of the user")

    def link(name):
        there = outside / Path(name).name
        if (path / name).exists():
            (path / name).rename(there)
        else:
            there = outside / "file"
        (path / name).symlink_to(there)
        return path, outside

    return link


@pytest.mark.parametrize("name", [*FILES, *LOGS, *FOLDERS, KEPT])
def test_a_resume_through_a_link_is_refused(prepared, toy_command, name):
    path, outside = prepared(name)
    before = contents(outside)
    done = toy_command("train", "--resume", path, "--set", "training.generations=4")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert str(path / name) in line and "symbolic link" in line and str(outside) in line
    assert contents(outside) == before


@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_a_link_that_comes_after_the_first_look(prepared, monkeypatch, name):
    """Opened files are checked again, and renames replace names, so that changes in between have no effect."""
    path, outside = prepared(name)
    before = contents(outside)
    monkeypatch.setattr(folder_module, "check_names", lambda _: None)
    monkeypatch.setattr("neuroevo.sessions.resume.check_names", lambda _: None)
    try:
        play(RunFolder.resume(path, ["training.generations=4"]))
    except UserError as error:
        assert str(path / name) in str(error)
    assert contents(outside) == before


@pytest.mark.parametrize("name", [CSV, LOG, *LOGS, TENSORBOARD, KEPT])
def test_a_new_run_in_a_prepared_folder_is_refused(tmp_path, name):
    path, outside = tmp_path / "run", tmp_path / "outside"
    path.mkdir()
    outside.mkdir()
    (path / name).symlink_to(outside / "new" if "." in name else outside)
    with pytest.raises(UserError, match=f"{path / name} is a symbolic link to {outside}"):
        new_run(path, logging={"trackers": ["tensorboard"]})
    assert not list(outside.iterdir())


def test_a_link_in_a_temporary_files_place(tmp_path, whole_run):
    """An attacker can guess the names of temporary files."""
    path, outside = tmp_path / "run", tmp_path / "outside"
    outside.write_text("of the user")
    new_run(path, training={"generations": 2})
    for name in (CSV, CONFIG, DATABASE):
        file = path / name
        file.with_name(f".{file.name}.{os.getpid()}.tmp").symlink_to(outside)
    play(RunFolder.resume(path, ["training.generations=5"]))
    assert outside.read_text() == "of the user"
    assert results(path) == whole_run()


@pytest.mark.parametrize("name", [LOG, CSV])
def test_a_pipe_is_refused(tmp_path, name):
    path = tmp_path / "run"
    new_run(path, training={"generations": 2})
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(UserError, match=f"{path / name} is a pipe"):
        RunFolder.resume(path)


def test_a_file_with_two_names_gets_bytes_of_its_own(tmp_path, whole_run):
    """As in a backup with hard links, which must not change."""
    path, backup = tmp_path / "run", tmp_path / "backup"
    new_run(path, training={"generations": 3})
    backup.mkdir()
    for name in (DATABASE, CONFIG, CSV):
        (backup / name).hardlink_to(path / name)
    before = contents(backup)
    play(RunFolder.resume(path, ["training.generations=5"]))
    assert contents(backup) == before
    assert results(path) == whole_run()


def test_links_above_the_run_and_to_it_are_the_users_own(tmp_path, whole_run):
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    new_run(tmp_path / "runs" / "a", training={"generations": 2})
    (tmp_path / "b").symlink_to(tmp_path / "runs" / "a")
    play(RunFolder.resume(tmp_path / "b", ["training.generations=5"]))
    assert results(tmp_path / "disk" / "a") == whole_run()
    (tmp_path / "disk" / "empty").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "disk" / "empty")
    play(RunFolder.create(tmp_path / "c", config()))
    assert results(tmp_path / "disk" / "empty") == whole_run()
