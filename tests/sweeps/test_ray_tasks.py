"""Trials that are tasks of a Ray cluster have the results of separate runs, also after their processes are killed."""

import os
import signal

import pytest

pytest.importorskip("ray")

import neuroevo  # noqa: E402 (Ray may be missing)
from neuroevo.cluster.connection import join, leave  # noqa: E402
from neuroevo.runs.reader import RunReader  # noqa: E402
from neuroevo.sweeps.driver import run_sweep  # noqa: E402
from tests.support.runs import results  # noqa: E402
from tests.support.simulated_cluster import players_of  # noqa: E402
from tests.support.sweeps import Listener, load  # noqa: E402

GRID = """
search = "grid"
parallel = 2
cluster = "local"
set = ["training.generations=25"]
"""


class Killing(Listener):
    """Watcher that kills the processes of all trials once, when one of them has finished a generation."""

    killed = 0

    def result(self, trial, row):
        import ray

        super().result(trial, row)
        if not self.killed:
            found = players_of(ray.get_runtime_context().gcs_address, "ray::_train")
            self.killed = len(found)
            for pid in found:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_trials_are_the_same_as_runs_of_their_own_and_survive_kills(tmp_path):
    join("local")
    try:
        watcher = Killing()
        sweep = load(tmp_path, GRID, '"network.hidden" = [[4], [8, 4]]\n')
        trials = run_sweep(sweep, watcher)
    finally:
        leave()
    assert watcher.killed
    assert {(trial.status, trial.reason) for trial in trials} == {("finished", "")}
    found = [sweep.out / trial.folder for trial in trials]
    for number, path in enumerate(found):
        neuroevo.train(RunReader(path).config, out=tmp_path / f"own-{number}")
    own = [results(tmp_path / f"own-{number}") for number in range(len(found))]
    assert [results(path) for path in found] == own
    assert own[0]["rows"] != own[1]["rows"]
