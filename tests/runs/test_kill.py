"""kill -9 at any moment, then --resume: the finished run equals an uninterrupted run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import neuroevo
from neuroevo.sessions.folder import RunFolder
from tests.support.kill_resume import kill_and_resume
from tests.support.kills import KINDS, MOST_PER_KILL, kill_all
from tests.support.runs import config, contents, interrupted_run, new_run, play, read_rows

ROOT = Path(__file__).parents[2]
MOMENTS = 12  # of some 8,500 lines
KILLS = int(os.environ.get("NEUROEVO_TEST_KILLS", "1"))  # of each kind of real run


@pytest.fixture(scope="module")
def killers(tmp_path_factory):
    """One process per signal, in parallel, one per core, each of which ends runs with its signal."""
    command = [sys.executable, "-m", "tests.support.kill_lines"]
    processes = {
        sent: subprocess.Popen(
            [*command, str(tmp_path_factory.mktemp(sent)), str(MOMENTS), sent],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for sent in ("SIGKILL", "SIGINT")
    }  # fmt: skip
    yield processes
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "status"), [("SIGKILL", signal.SIGKILL), ("SIGINT", 130 << 8)])
def test_ended_at_every_kind_of_line(killers, sent, status):
    stdout, stderr = killers[sent].communicate()
    assert killers[sent].returncode == 0, stderr
    told = json.loads(stdout.splitlines()[-1])
    assert told["statuses"] == [[status, 0]] * MOMENTS
    assert told["different"] == []
    assert told["total"] > MOMENTS
    assert 0.5 * MOMENTS < told["begun"] < MOMENTS  # some were killed before the run was created


@pytest.mark.slow
@pytest.mark.thorough
def test_kills_of_real_runs(tmp_path):
    """Two kinds of runs in parallel, one per core; `make test-kills` does more, and tests/sweeps kills sweeps."""
    counts = dict.fromkeys(KINDS, KILLS)
    found = kill_all(tmp_path, counts, seed=3)  # the first kill comes after two generations
    assert {kind: told.get("different", told) for kind, told in found.items()} == dict.fromkeys(counts, [])
    for kind, told in found.items():
        assert len(told["finished_at_kills"]) == KILLS
        assert max(told["finished_at_kills"]) > 0, "the kills came too early"  # lower after a run is rolled back
        rows = read_rows(tmp_path / kind.replace(" ", "_") / "runs" / "killed")
        assert len(rows) == told["generations"] == MOST_PER_KILL * KILLS + 5
        assert len({tuple(row["fitness"]) for row in rows}) > 5, kind


def test_a_kill_while_the_source_of_a_module_is_kept_leaves_nothing(tmp_path, toy_command):
    file, path = tmp_path / "own.toml", tmp_path / "run"
    algorithm = {"name": "experiments.examples.cma_es:CMAES", "population": 4}
    file.write_text(config(algorithm=algorithm).toml())
    killed = toy_command("train", file, "--resume", path, kill_at="cma_es.py")
    assert killed.returncode == -signal.SIGKILL
    (left,) = path.rglob(".*.tmp")
    assert left.parent == path / "own" / "experiments" / "examples"
    assert toy_command("train", file, "--resume", path).returncode == 0
    assert [each for each in path.rglob("*") if each.name.startswith(".")] == []
    assert (left.parent / "cma_es.py").is_file()


def test_a_kill_while_a_fork_is_made_leaves_nothing(tmp_path):
    """SQLite briefly has a journal and a log next to the copy, at moments that no test can choose."""
    path = interrupted_run(tmp_path / "run", 1)
    left = [path / f".run.db.9.tmp{kind}" for kind in ("", "-journal", "-wal", "-shm")]
    for file in left:
        file.touch()
    play(RunFolder.resume(path))
    assert [file for file in left if file.exists()] == []


def test_a_finished_run_is_left_as_it_is(tmp_path):
    path = tmp_path / "run"
    new_run(path)
    before = contents(path)
    neuroevo.train(config(), out=path, resume="auto")  # like a script that is restarted
    assert contents(path) == before


def test_the_killer_notices_a_run_that_ends_by_itself(tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text("not = [a, configuration")
    with pytest.raises(AssertionError, match="TOML"):
        kill_and_resume(file, tmp_path, 1)
