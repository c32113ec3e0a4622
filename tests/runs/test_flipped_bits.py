"""A flipped bit in every page of a run's database: readers return the original data, or raise an error."""

import os
import random
import shutil

import pytest

from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.damage import REFUSED, assert_equal_or_refused, attempt, everything
from tests.support.runs import new_run, play
from tests.support.toy import ToyEvaluator

GA, ES = {"population": 4}, {"name": "es", "population": 4, "sigma": 0.1}
RUNS = {"ga": {"algorithm": GA}, "es": {"algorithm": ES}}
RUNS["ga with one state"] = {**RUNS["ga"], "checkpoints": {"keep_last": 1}}
GENERATIONS = 5
SAMPLE = int(os.environ.get("NEUROEVO_TEST_FUZZ", "1"))  # bits of each page


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    """An interrupted run, what readers return of it, its states, and what readers return once it is finished."""
    path, calls = tmp_path_factory.mktemp("flipped") / "run", 2 if request.param == "es" else 3  # of a generation
    with pytest.raises(KeyboardInterrupt):
        new_run(path, ToyEvaluator(interrupt_at=3 * calls + 1), **RUNS[request.param])
    before = everything(path, 3)
    reader = RunReader(path)
    states = {number: reader.state(number) for number in reader.checkpoints()}
    whole = path.with_name("whole")
    shutil.copytree(path, whole)
    play(RunFolder.resume(whole))
    return path, before, states, everything(whole, GENERATIONS)


def flips(data):
    """Return bits of each 4,096-byte page: some at the beginning, which contains its structure, and some anywhere."""
    draw = random.Random(1)
    for page in range(len(data) // 4096):
        for nth in range(SAMPLE):
            byte = draw.randrange(60) if nth % 3 == 0 else draw.randrange(4096)
            yield 8 * (4096 * page + byte) + draw.randrange(8)


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_readers(run, tmp_path):
    path, expected, states, _ = run
    assert REFUSED not in map(str, expected.values())
    data, refused = (path / "run.db").read_bytes(), 0
    for bit in flips(data):
        (tmp_path / "run.db").write_bytes(flipped(data, bit))
        found = everything(tmp_path, 3)
        refused += REFUSED in map(str, found.values())
        try:
            assert_equal_or_refused(found, expected, states)
        except AssertionError as error:
            raise AssertionError(f"bit {bit}: {error}") from error
    assert refused > SAMPLE


def test_resumed_runs(run, tmp_path):
    path, _, _, expected = run
    data, finished = (path / "run.db").read_bytes(), 0
    for bit in list(flips(data))[:: 2 * SAMPLE]:  # of every second page
        other = tmp_path / str(bit)
        shutil.copytree(path, other)
        (other / "run.db").write_bytes(flipped(data, bit))

        def resume(other=other):
            return play(RunFolder.resume(other))

        if attempt(resume) != REFUSED:
            finished += 1
            try:
                assert_equal_or_refused(everything(other, GENERATIONS), expected, {5: expected["state"]})
            except AssertionError as error:
                raise AssertionError(f"bit {bit}: {error}") from error
        shutil.rmtree(other)
    assert finished > 5
