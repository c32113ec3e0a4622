"""kill -9 at any moment, then --resume: the finished run equals one that was left alone."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuroevo.runs.folder import RunFolder
from tests.support.kill_resume import kill_and_resume
from tests.support.runs import config, new_run, play, results

ROOT = Path(__file__).parents[2]
MOMENTS = 96  # every 15th or 16th line
KILLS = int(os.environ.get("NEUROEVO_TEST_KILLS", "12"))  # of each real run


@pytest.fixture(scope="module")
def killers(tmp_path_factory):
    """A process for each signal that ends runs by it; both at a time, one per core."""
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


@pytest.mark.parametrize(("sent", "status"), [("SIGKILL", signal.SIGKILL), ("SIGINT", 130 << 8)])
def test_ended_at_every_kind_of_line(killers, sent, status):
    stdout, stderr = killers[sent].communicate()
    assert killers[sent].returncode == 0, stderr
    told = json.loads(stdout.splitlines()[-1])
    assert told["statuses"] == [[status, 0]] * MOMENTS
    assert told["different"] == []
    assert told["total"] > MOMENTS
    assert 0.5 * MOMENTS < told["begun"] < MOMENTS  # some of them were killed before there was a run at all


def test_torn_lines(tmp_path):
    """A power cut may leave any part of what was not flushed: everything after what the checkpoint remembers."""
    new_run(tmp_path / "whole")
    expected, rng = results(tmp_path / "whole"), random.Random(0)
    for moment in range(20):
        path = tmp_path / f"run{moment}"
        new_run(path, training={"generations": 1 + moment % 4})
        checkpoints = sorted((path / "checkpoints").iterdir())
        checkpoints[-1].unlink()
        lengths = json.loads(checkpoints[-2].read_text().splitlines()[1])["lengths"]
        for name, length in lengths.items():
            with (path / name).open("r+b") as file:
                file.truncate(rng.randint(length, (path / name).stat().st_size))
        with (path / "metrics.csv").open("r+b") as file:
            file.truncate(rng.randint(0, (path / "metrics.csv").stat().st_size))
        (path / "checkpoints" / ".generation-000009.ckpt.1.tmp").write_bytes(b'{"format": "neuro')
        play(RunFolder.resume(path, ["training.generations=5"]))
        assert results(path) == expected


@pytest.mark.slow
def test_kills_of_real_runs(tmp_path):
    """Two runs at a time, one per core: a game, and a maze, whose generations are shorter."""
    kinds = {"riverraid": {}, "HardMaze-v0": {"network": {"name": "mlp", "hidden": [6]}}}
    # A kill comes at most 2 or 3 after the one before.
    generations = {"riverraid": 3 * KILLS + 5, "HardMaze-v0": 5 * KILLS}
    chains = {}
    for name, kind in kinds.items():
        path = tmp_path / name
        training = {"max_episode_steps": 16, "test_episodes": 0, "generations": generations[name]}
        hardware, sigma = {"threads": 1}, {"sigma": 0.01}
        settings = config(env={"name": name}, training=training, hardware=hardware, algorithm=sigma, **kind)
        path.with_suffix(".toml").write_text(settings.toml())
        command = ["-m", "tests.support.kill_resume", path.with_suffix(".toml"), "--kills", str(KILLS), "--out", path]
        chains[name] = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    for name, process in chains.items():
        stdout, _ = process.communicate()
        assert process.returncode == 0
        told = json.loads(stdout)
        assert len(told["finished_at_kills"]) == KILLS
        assert len(set(told["finished_at_kills"])) > 4, "the kills came at too few different generations"
        whole = results(tmp_path / name / "whole")
        assert results(tmp_path / name / "killed") == whole
        assert len(whole["rows"]) == told["generations"] == generations[name]
        assert len({tuple(row["fitness"]) for row in whole["rows"]}) > 10


def test_the_killer_notices_a_run_that_ends_by_itself(tmp_path):
    file = tmp_path / "broken.toml"
    file.write_text("not = [a, configuration")
    with pytest.raises(AssertionError, match="TOML"):
        kill_and_resume(file, tmp_path, 1)


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    new_run(tmp_path / "run")
    program = (
        f"import time; from neuroevo.runs.folder import RunFolder; f = RunFolder.resume({str(tmp_path / 'run')!r})"
    )
    program += "; print('locked', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"locked\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    RunFolder.resume(tmp_path / "run").close()
