"""Faults in each file system call of a run, also SQLite's: a one-line error, and no finished generation is lost."""

import errno
import os
import re
from itertools import product

import pytest

from neuroevo.runs.paths import is_run
from neuroevo.sessions.folder import RunFolder
from tests.support import disk_calls
from tests.support.commands import toy_server
from tests.support.power_cuts import REAL
from tests.support.runs import config, read_rows, results

EVERY = int(os.environ.get("NEUROEVO_TEST_FAULTS", "160"))  # tries every n-th call; 1: all
TOY = {"training": {"generations": 3}, "checkpoints": {"keep_last": 2}, "logging": {"trackers": ["tensorboard"]}}
SENTENCE = re.compile(
    r"neuroevo: (cannot (read|write|read or write|open) .*\brun\d*\b.*: (Input/output error|No space left on device)"
    r"|.*\brun\d*/.*run\.db.* is damaged: .*, or its disk is broken)(; to resume: .*)?\n"  # reported alike
)


@pytest.fixture(scope="module")
def command():
    """Run a neuroevo command in a process with injected faults."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", disk_calls.environment()["LD_PRELOAD"])
        with toy_server() as run:
            patch.undo()
            yield run


CASES = list(product([errno.EIO, errno.ENOSPC], [True, False], [False, True], [False, True]))
if EVERY > 1:  # half of them, with every combination of three of the four values
    CASES = [case for case in CASES if sum([case[0] == errno.EIO, *case[1:]]) % 2 == 0]


@pytest.mark.parametrize(
    ("code", "once", "real", "resumed"),
    [pytest.param(*case, marks=[pytest.mark.thorough] * (case[1] != case[3])) for case in CASES],
)
def test_calls_that_fail(tmp_path, command, code, once, real, resumed):
    """A new run, and a run resumed after its second generation; each is then resumed without a fault."""
    file, whole, count = tmp_path / "c.toml", tmp_path / "whole", tmp_path / "count"
    changes = REAL if real else TOY
    file.write_text(config(**changes).toml())
    assert command("train", file, "--out", whole, real=real).returncode == 0
    expected = results(whole)

    def play(path, number):
        if resumed:
            begin = ["train", file, "--out", path, "--set", "training.generations=2"]
            assert command(*begin, real=real).returncode == 0
        fault = {"in": path, "fault": [number, code, once], "count": count}
        return command("train", file, "--resume", path, real=real, **fault)

    assert play(tmp_path / "counted", 0).returncode == 0
    calls, failed = int(count.read_text()), 0
    assert calls > 30
    for number in range(1 + hash_of(code, once, real, resumed) % EVERY, calls + 1, EVERY):
        path = tmp_path / f"run{number}"
        done = play(path, number)
        what = f"call {number} of {calls}: {done}"
        if done.returncode:
            failed += 1
            assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, what
            assert SENTENCE.fullmatch(done.stderr), what
        printed = len(re.findall("^generation", done.stdout, re.MULTILINE))
        finished = len(read_rows(path)) if is_run(path) else 0
        assert finished >= max(printed, 2 * resumed), what
        if is_run(path):
            folder = RunFolder.resume(path)
            assert folder.state.generation >= finished, what
            folder.close()
        again = command("train", file, "--resume", path, real=real)
        assert again.returncode == 0, f"{what}, then {again}"
        assert results(path) == expected, what
    assert failed > 0


def hash_of(*values):
    """Return a number that depends on the values, so that each test begins with another call."""
    return sum(prime * int(value) for prime, value in zip((1, 3, 5, 7), values, strict=True))
