"""What is compared of a killed run with one that was left alone: every file, and clocks alone are left out."""

import shutil
import struct

import pytest

from neuroevo.runs.json_lines import sealed
from tests.support.run_files import differences, run_contents
from tests.support.runs import checkpoint_after, new_run, read_rows

CHANGES = {  # what may befall files: a function of a run's folder, and the names that then differ
    "elites.jsonl": lambda path: (path / "elites.jsonl").open("ab").write(b"\n"),
    "config.toml": lambda path: (path / "config.toml").open("ab").write(b"#"),
    "metrics.jsonl": lambda path: seal_again(path, lambda row: row["fitness"].reverse()),
    "metrics.csv": lambda path: replace_in(path / "metrics.csv", b"fitness_max", b"fitness_mix"),
    "info.json": lambda path: replace_in(path / "info.json", b'"seed": 4', b'"seed": 5'),
    "checkpoints/generation-000004.ckpt": lambda path: checkpoint_after(path, 4).unlink(),
    "checkpoints/.generation-000009.ckpt.1.tmp": lambda path: (
        path / "checkpoints" / ".generation-000009.ckpt.1.tmp"
    ).touch(),
    "members.bin": lambda path: (path / "members.bin").open("ab").write(b"\0"),
    "journal.bin": lambda path: (path / "journal.bin").touch(),
    "notes/": lambda path: (path / "notes").mkdir(),
    "log.txt": lambda path: replace_in(path / "log.txt", b"INFO finished after 5", b"INFO finished after 6"),
    "tensorboard": lambda path: next((path / "tensorboard").glob("events*")).unlink(),
    "tensorboard/frames": lambda path: next((path / "tensorboard" / "frames").glob("events*")).unlink(),
    "tensorboard/x": lambda path: (path / "tensorboard" / "x").touch(),
}
BROKEN = {  # what is no run's that has ended well
    "metrics.jsonl": lambda path: (path / "metrics.jsonl").open("ab").write(b'{"generation": 5'),
    "log.txt": lambda path: (path / "log.txt").open("ab").write(b"what?\n"),
    "another generation in log.txt": lambda path: replace_in(path / "log.txt", b"steps ", b"steps 9"),
    "events": lambda path: next((path / "tensorboard").glob("events*")).open("ab").write(b"123"),
    "a checkpoint": lambda path: checkpoint_after(path, 5).open("ab").write(b"\n"),
    "a session in info.json": lambda path: replace_in(
        path / "info.json", b'"resumed": []', b'"resumed": [{"generation": 1, "seed": 9}]'
    ),
}


def replace_in(file, old, new):
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))


def seal_again(path, change):
    """Changes each row of metrics.jsonl, with the right sum."""
    rows = read_rows(path)
    for row in rows:
        change(row)
    (path / "metrics.jsonl").write_bytes(b"".join(map(sealed, rows)))


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that has ended."""
    path = tmp_path_factory.mktemp("ended") / "run"
    new_run(path, logging={"trackers": ["tensorboard"]})
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_the_comparison_sees_every_file(ended, tmp_path, name):
    path = tmp_path / "run"
    shutil.copytree(ended, path)
    assert differences(run_contents(path), run_contents(ended)) == []
    CHANGES[name](path)
    assert name in differences(run_contents(path), run_contents(ended))


@pytest.mark.parametrize("name", BROKEN)
def test_the_comparison_refuses_what_is_broken(ended, tmp_path, name):
    path = tmp_path / "run"
    shutil.copytree(ended, path)
    BROKEN[name](path)
    with pytest.raises((AssertionError, ValueError, struct.error)):
        run_contents(path)


def test_the_comparison_leaves_clocks_out(ended, tmp_path):
    path = tmp_path / "run"
    new_run(path, logging={"trackers": ["tensorboard"]})
    assert (path / "metrics.jsonl").read_bytes() != (ended / "metrics.jsonl").read_bytes()
    assert differences(run_contents(path), run_contents(ended)) == []
