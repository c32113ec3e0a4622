"""Several sweeps on one Ray cluster neither wait for each other, nor kill each other's processes, nor leave any."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

import neuroevo  # noqa: E402 (Ray may be missing)
from neuroevo.sweeps.sweep import load_sweep  # noqa: E402
from tests.support.cluster_runs import finish, wait_until  # noqa: E402
from tests.support.databases import info_of  # noqa: E402
from tests.support.runs import count_rows, results  # noqa: E402
from tests.support.simulated_cluster import SimulatedCluster, players_of  # noqa: E402
from tests.support.sweeps import PENDULUM  # noqa: E402

ROOT = Path(__file__).parents[2]
SWEEP = """
[sweep]
configs = "paced.toml"
seeds = {seeds}
parallel = {parallel}
cluster = "{address}"
"""
TITLE = "ray::_train"  # of the processes of trials


class Command:
    """`neuroevo sweep` in a folder; values: those of SWEEP.

    Attributes:
        runs: The folders of its trials.
    """

    def __init__(self, folder, pace, generations=40, **values):
        folder.mkdir()
        paced = {
            "Pendulum-v1": "tests.support.gymnasium_toys:ToyPaced-v0",
            "workers = 1": f'workers = 1, kwargs = {{file = "{pace}", seconds = 0.1}}',
            "generations = 3": f"generations = {generations}",
            "max_episode_steps = 20\n": "",
        }
        text = PENDULUM
        for old, new in paced.items():
            text = text.replace(old, new)
        (folder / "paced.toml").write_text(text)
        self._file, out = folder / "sweep.toml", folder / "out"
        self._file.write_text(SWEEP.format(**values))
        self._sweep = load_sweep(self._file, out=out)
        self.runs = [out / trial.folder for trial in self._sweep.points]

    def start(self):
        command = [sys.executable, "-m", "neuroevo", "sweep", str(self._file), "--out", str(self._sweep.out)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def wait_for_more(self, process):
        """Wait until each concurrent trial has finished two more generations."""
        parallel = self.runs[: self._sweep.settings.parallel]
        counts = [count_rows(run) + 2 for run in parallel]
        wait_until(lambda: all(count_rows(run) >= count for run, count in zip(parallel, counts, strict=True)), process)

    def alone(self):
        """Return the results of the trials when trained in this process."""
        folder = self._sweep.out.with_name("alone")
        for trial in self._sweep.points:
            neuroevo.train(self._sweep.config(trial), out=folder / str(trial.number))
        return [results(folder / str(trial.number)) for trial in self._sweep.points]


@pytest.mark.slow
@pytest.mark.thorough
def test_several_sweeps_one_of_which_is_killed_and_resumed(tmp_path):
    """Run sweeps on a machine with one core."""
    (pace := tmp_path / "paced").touch()
    with SimulatedCluster(1) as cluster:
        address = cluster.address
        own = Command(tmp_path / "own", pace, generations=100, parallel=1, seeds=[3], address=address)
        killed = Command(tmp_path / "killed", pace, parallel=2, seeds=[0, 1], address=address)
        other = Command(tmp_path / "other", pace, parallel=1, seeds=[2], address=address)
        first = own.start()
        own.wait_for_more(first)
        second, third = killed.start(), other.start()
        killed.wait_for_more(second)
        other.wait_for_more(third)
        second.kill()
        second.communicate()
        other.wait_for_more(third)
        second = killed.start()
        killed.wait_for_more(second)
        own.wait_for_more(first)
        assert len(players_of(address, TITLE)) == 4
        pace.unlink()
        for process in (first, second, third):
            finish(process)
        deadline = time.monotonic() + 60
        while left := players_of(address, TITLE):
            assert time.monotonic() < deadline, left
            time.sleep(0.1)
    resumed = {each: [info_of(run)["resumed"] for run in each.runs] for each in (own, killed, other)}
    assert all(len(sessions) == 1 and sessions[0]["generation"] >= 2 for sessions in resumed[killed])
    assert resumed[own] == resumed[other] == [[]]
    outcomes = [results(run) for each in resumed for run in each.runs]
    assert outcomes == [one for each in resumed for one in each.alone()]
    assert len({str(one["rows"]) for one in outcomes}) == 4
