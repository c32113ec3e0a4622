"""Full disks, size limits of files and read-only folders: the error is clear, and no data is lost."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuroevo.core.errors import UserError
from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, new_run, play, read_rows, results

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("limit", [2, 60, 90, 150, 250, 1000])  # kilobytes
def test_files_that_may_not_grow(tmp_path, toy_command, whole_run, limit):
    """A limit on the size of every file interrupts a write in the middle, as a full disk does."""
    file, path = tmp_path / "c.toml", tmp_path / "run"
    file.write_text(config().toml())
    done = toy_command("train", file, "--out", path, largest_file=limit * 1000)
    if done.returncode == 0:
        assert limit > 200
    else:  # SQLite does not report the reason
        assert done.stderr.startswith(f"neuroevo: cannot read or write {path}/")
        assert ": Input/output error" in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.returncode == 1
    if (path / "run.db").exists():
        finished = len(read_rows(path))
        folder = RunFolder.resume(path)
        assert finished <= folder.state.generation
        play(folder)
    else:
        new_run(path)
    assert results(path) == whole_run()
    assert not list(path.rglob("*.tmp"))


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path, toy_command, whole_run):
    path, limit = tmp_path / "run", 10_000_000
    new_run(path, training={"generations": 3})
    with (path / "log.txt").open("ab") as file:
        file.truncate(limit)  # no file may be longer
    done = toy_command("train", "--resume", path, "--set", "training.generations=5", largest_file=limit)
    assert (done.returncode, done.stderr) == (0, "")
    assert (path / "log.txt").stat().st_size == limit
    assert results(path) == whole_run()


FULL_DISK = """
mount -t tmpfs -o size={size}k none "$1" || exit 77
{python} -m tests.support.toy_cli train "$2" --out "$1/run"; echo "code $?" >&2
mount -o remount,size=8m "$1"
{python} -m tests.support.toy_cli train "$2" --resume "$1/run"; echo "code $?" >&2
cp -r "$1/run" "$3"
head -c 16m /dev/zero > "$1/full"
{python} -m tests.support.toy_cli train "$2" --resume "$1/run" --set training.generations=40; echo "code $?" >&2
{python} -m tests.support.toy_cli train "$2" --out "$1/another"; echo "code $?" >&2
"""


def test_a_full_disk(tmp_path):
    """A file system in memory with room for the first few generations, which is then enlarged."""
    file, disk = tmp_path / "c.toml", tmp_path / "disk"
    changes = {"training": {"generations": 30}}
    file.write_text(config(**changes).toml())
    disk.mkdir()
    script = FULL_DISK.format(size=300, python=sys.executable)
    command = ["unshare", "-rm", "sh", "-c", script, "sh", disk, file, tmp_path / "run"]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare to make a small file system with")
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=120)
    if "Operation not permitted" in done.stderr or done.returncode == 77:
        pytest.skip(f"this machine allows no file system of its own: {done.stderr.strip()}")
    stderr = [line for line in done.stderr.splitlines() if not line.startswith("head: ")]
    full, cannot = "No space left on device", "neuroevo: cannot (read or )?write"
    expected = [
        f"{cannot} {disk}/run/run.db: {full}; to resume: neuroevo train --resume {disk}/run",
        "code 1",
        "code 0",
        f"{cannot} (to the run folder )?{disk}/run.*: {full}",
        "code 1",
        f"{cannot} (to the run folder )?{disk}/another.*: {full}",
        "code 1",
    ]
    for line, pattern in zip(stderr, expected, strict=True):
        assert re.fullmatch(pattern, line), done.stderr
    assert "from generation" in done.stdout
    new_run(tmp_path / "whole", **changes)
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@contextmanager
def without_roots_rights():
    """Run as user 65534 if the tests run as root, since permissions do not apply to root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def let_others_in(path):
    """Let other users into the parent folders, which pytest has created for its user only."""
    for parent in path.parents:
        if parent.owner() == path.owner() and parent.stat().st_mode & 0o077 == 0:
            os.chmod(parent, 0o755)


def test_a_folder_below_one_that_may_not_be_read(tmp_path):
    let_others_in(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    RunFolder.create(tmp_path / "imports", config())  # imports modules that the unprivileged user may be unable to read
    if os.geteuid() != 0:
        closed.chmod(0)
    with without_roots_rights(), pytest.raises(UserError, match=f"{closed / 'new'}: Permission denied"):
        RunFolder.create(closed / "new", config())


def test_a_folder_that_may_not_be_written(tmp_path):
    new_run(tmp_path / "run", training={"generations": 2})
    let_others_in(tmp_path)
    for path in [tmp_path, *tmp_path.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    RunFolder.resume(tmp_path / "run").close()  # imports modules that the unprivileged user may be unable to read
    with without_roots_rights():
        with pytest.raises(UserError, match=f"{tmp_path / 'new'}: Permission denied"):
            RunFolder.create(tmp_path / "new", config()).open(["test"])
        folder = RunFolder.resume(tmp_path / "run", ["training.generations=3"])
        with pytest.raises(UserError, match=f"{tmp_path / 'run' / 'run.db'}: Permission denied"):
            folder.open(["test"])
        RunFolder.resume(tmp_path / "run").close()  # the lock is free
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    for path in [tmp_path, *tmp_path.rglob("*")]:
        os.chmod(path, 0o755)
