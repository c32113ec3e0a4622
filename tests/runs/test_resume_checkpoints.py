"""Which checkpoints a run keeps, and which one it goes on from where some cannot be used."""

import errno
import os
import re
import threading
from dataclasses import replace

import pytest

from neuroevo.config.schema import CheckpointSettings
from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs import checkpoint
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.elites import read_elites
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.reader import RunReader
from neuroevo.system.directory import Directory
from tests.support.damage import DAMAGES
from tests.support.runs import (
    checkpoint_after,
    checkpoints_of,
    config,
    contents,
    interrupted_run,
    new_run,
    play,
    results,
)


def test_which_checkpoints_stay(tmp_path):
    path = tmp_path / "run"
    new_run(path, training={"generations": 9}, checkpoints={"keep_last": 2, "keep_every": 3})
    assert checkpoints_of(path) == [0, 3, 6, 8, 9]
    reader = RunReader(path)
    assert [reader.state(finished).generation for finished in (0, 3, 9)] == [0, 3, 9]
    with pytest.raises(UserError, match=f"{checkpoint_after(path, 5)} cannot be read: .*: 0, 3, 6, 8, 9"):
        reader.state(5)


def test_fewer_checkpoints_and_one_when_it_stops(tmp_path, whole_run):
    path = interrupted_run(tmp_path / "run", 3, checkpoints={"every": 2, "keep_last": 10})
    of_the_interruption, of_the_end = 3, 5
    assert checkpoints_of(path) == [0, 2, of_the_interruption]
    play(RunFolder.resume(path))
    assert results(path) == whole_run()
    assert checkpoints_of(path) == [0, 2, of_the_interruption, 4, of_the_end]


@pytest.mark.parametrize("how", DAMAGES)
def test_the_checkpoint_before_a_bad_one_is_used(tmp_path, whole_run, how):
    path = interrupted_run(tmp_path / "run", 3)
    bad = checkpoint_after(path, 3)
    DAMAGES[how].to(bad)
    there = None if bad.is_dir() else bad.read_bytes()
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    [unusable] = folder.unusable
    assert unusable.path == bad
    assert re.search(DAMAGES[how].message, unusable.reason)
    play(folder)
    assert results(path) == whole_run()
    aside = bad.with_name(f"{bad.name}.unusable")
    assert aside.is_dir() if there is None else aside.read_bytes() == there
    assert f"passed over {bad}" in (path / "log.txt").read_text()


@pytest.mark.parametrize("how", DAMAGES)
def test_no_checkpoint_to_go_on_from(tmp_path, how):
    path = interrupted_run(tmp_path / "run", 3)
    DAMAGES[how].to(checkpoint_after(path, 3))
    for finished in (1, 2):
        checkpoint_after(path, finished).unlink()
    there = contents(path)
    message = rf"no checkpoint to go on from:\n.*{checkpoint_after(path, 3)} .*{DAMAGES[how].message}"
    if how == "newer version":  # no checkpoint is of this version's format, which is refused in one line
        message = f"^another version .*{path}: .*{DAMAGES[how].message} .*$"
    with pytest.raises(UserError, match=message):
        RunFolder.resume(path)
    assert contents(path) == there


def test_a_disk_that_gives_no_checkpoint_is_named(tmp_path, monkeypatch):
    """They may be whole: nothing of the run is set aside, and the error is the disk's."""
    path = interrupted_run(tmp_path / "run", 3)
    there, read = contents(path), checkpoint._content

    def broken(file):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(checkpoint, "_content", broken)
    with pytest.raises(DiskError, match=rf"^cannot read checkpoint {checkpoint_after(path, 3)}: Input/output error$"):
        RunFolder.resume(path)
    monkeypatch.setattr(checkpoint, "_content", read)
    assert contents(path) == there and RunFolder.resume(path).state.generation == 3


def test_the_command_says_what_it_passed_over(tmp_path, toy_command):
    path = interrupted_run(tmp_path / "run", 3)
    DAMAGES["bit-flipped"].to(checkpoint_after(path, 3))
    done = toy_command("train", "--resume", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("neuroevo: passed over") == 1
    assert f"{checkpoint_after(path, 3)} is damaged" in done.stderr
    assert "from generation 2" in done.stdout


def test_a_start_from_a_run_with_a_damaged_checkpoint_says_so(tmp_path, toy_command):
    first = interrupted_run(tmp_path / "first", 3)
    DAMAGES["bit-flipped"].to(checkpoint_after(first, 3))
    start_from = f"training.start_from={first}"
    done = toy_command("train", first / "config.toml", "--out", tmp_path / "second", "--set", start_from)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("passed over") == 1
    assert f"{checkpoint_after(first, 3)} is damaged" in done.stderr
    assert len(read_elites(tmp_path / "second")) == 5


@pytest.mark.parametrize("name", ["metrics.jsonl", "elites.jsonl"])
def test_files_shorter_than_the_checkpoint_remembers(tmp_path, whole_run, name):
    path = interrupted_run(tmp_path / "run", 3)
    size = (path / name).stat().st_size
    with (path / name).open("ab") as file:
        file.truncate(size - 1)
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    [unusable] = folder.unusable
    assert unusable.reason == (
        f"remembers other files: {path / name} has {size - 1:,} bytes, expected at least the {size:,} of the checkpoint"
    )
    play(folder)
    assert results(path) == whole_run()


@pytest.mark.parametrize("name", ["metrics.jsonl", "elites.jsonl"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace(b"{", b"x", 1), "line 1 of .*{name} is damaged: its CRC-32 sum"),
        (lambda text: text.replace(b'"', b"\0", 1), "line 1 of .*{name} is damaged: its CRC-32 sum"),
        (None, "{name} has 0 bytes"),
    ],
    ids=["no JSON", "a zero byte", "deleted"],
)
def test_damaged_files_are_not_gone_on_with(tmp_path, name, change, expected):
    path = interrupted_run(tmp_path / "run", 3)
    usable = [finished for finished in checkpoints_of(path) if finished > 0]  # after none of them the files are right
    checkpoint_after(path, 0).unlink(missing_ok=True)
    if change is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(change((path / name).read_bytes()))
    there = contents(path)
    with pytest.raises(UserError) as raised:
        RunFolder.resume(path)
    heading, *reasons = str(raised.value).splitlines()
    assert heading.startswith(str(path)) and len(reasons) == len(usable) == 3
    for reason in reasons:
        assert re.search(f"remembers other files: .*{expected.replace('{name}', name)}", reason)
    assert contents(path) == there


def test_an_elite_of_another_family_is_noticed(tmp_path):
    path = interrupted_run(tmp_path / "run", 3)
    first, *others = (path / "elites.jsonl").read_text().splitlines(keepends=True)
    first = re.sub(', "crc32".*}', "}", first)  # a line without a sum is read, too
    (path / "elites.jsonl").write_text("".join([first.replace('"same": 0', '"same": 7'), *others]))
    with pytest.raises(UserError, match=r"line 1 of .*elites\.jsonl is damaged: .* 7 mutations"):
        RunFolder.resume(path)


def test_an_edited_configuration(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace("population = 8", "population = 9"))
    with pytest.raises(UserError, match="another run's: algorithm.population is 8 there and 9 here"):
        RunFolder.resume(path)


def test_no_checkpoint_is_deleted_for_older_ones_than_itself(tmp_path):
    """However they came there, higher numbers do not push out what the run is about to need."""
    state = RunFolder.create(tmp_path / "x", config()).state
    checkpoints = Checkpoints(tmp_path / "checkpoints", CheckpointSettings(keep_last=1))
    with Directory(tmp_path) as run:
        for finished in (28, 29, 1, 2):
            checkpoints.save(run, Checkpoint(replace(state, generation=finished), {}, {}))
    assert checkpoints.generations() == [2, 29]


def test_reading_while_the_run_replaces_its_only_checkpoint(tmp_path):
    new_run(tmp_path / "run")
    state, path = RunReader(tmp_path / "run").state(), tmp_path / "run" / "checkpoints"
    origin, over = config().origin(), threading.Event()

    def write():
        checkpoints = Checkpoints(path, CheckpointSettings(keep_last=1))
        with Directory(path.parent) as run:
            for finished in range(100, 100_000):
                checkpoints.save(run, Checkpoint(replace(state, generation=finished), origin, {}))
                if over.is_set():
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(1500):
            assert RunReader(tmp_path / "run").state().generation >= 3
    finally:
        over.set()
        writer.join()
