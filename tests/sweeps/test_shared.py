"""Trials that share a pipeline: the results are those of runs on their own, whatever happens to it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

import neuroevo  # noqa: E402 (Ray may be missing)
from neuroevo.cluster.connection import join, leave  # noqa: E402
from neuroevo.cluster.origin import origin  # noqa: E402
from neuroevo.cluster.player import PlayerSettings  # noqa: E402
from neuroevo.cluster.sharing import SharedMachine, end_players  # noqa: E402
from neuroevo.networks.network import Network  # noqa: E402
from neuroevo.runs.reader import RunReader  # noqa: E402
from neuroevo.sweeps.driver import run_sweep  # noqa: E402
from tests.support.databases import info_of  # noqa: E402
from tests.support.runs import count_rows, results  # noqa: E402
from tests.support.simulated_cluster import players_of  # noqa: E402
from tests.support.sweeps import Listener, load  # noqa: E402

ROOT = Path(__file__).parents[2]
GRID = """
search = "grid"
parallel = 4
shared = {shared}
set = ["training.generations={generations}", "network.activation=relu"]
"""
NETWORKS = '"network.hidden" = [[4], [8, 4]]\n"algorithm.sigma" = [0.1, 0.5]\n'


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One for the sweeps of this module."""
    join("local")
    yield
    leave()


def players(title="PlayerActor"):
    """The processes of this module's players, or of its trials."""
    import ray

    return players_of(ray.get_runtime_context().gcs_address, title)


class Watching(Listener):
    """Counts the players while trials play, and kills processes with a title once if it is to."""

    def __init__(self, kills=None):
        super().__init__()
        self.counts, self.kills = set(), kills

    def result(self, trial, row):
        super().result(trial, row)
        found = players()
        self.counts.add(len(found))
        if self.kills and row["generation"] < 30:
            found, self.kills = players(self.kills), None
            assert found
            for pid in found:
                os.kill(pid, signal.SIGKILL)


def trained(folder, space=NETWORKS, shared="true", generations=6, **options):
    """The folders of the trials, and what the watcher saw."""
    folder.mkdir()
    watcher = Watching(**options)
    sweep = load(folder, GRID.format(shared=shared, generations=generations), space)
    trials = run_sweep(sweep, watcher)
    assert {(trial.status, trial.reason) for trial in trials} == {("finished", "")}
    return [sweep.out / trial.folder for trial in trials], watcher


def on_its_own(path, folder):
    """What comes of a trial's configuration without Ray."""
    own = folder / "-".join(path.parts[-2:])
    neuroevo.train(RunReader(path).config, out=own)
    return results(own)


@pytest.mark.slow
def test_trials_of_several_networks_share_a_pipeline(tmp_path):
    shared, watcher = trained(tmp_path / "shared")
    assert watcher.counts == {1}
    expected = [on_its_own(path, tmp_path) for path in shared]
    assert len({str(own["rows"]) for own in expected}) == 4 and {len(own["rows"]) for own in expected} == {6}
    assert [results(path) for path in shared] == expected


@pytest.mark.slow
@pytest.mark.parametrize("title", ["PlayerActor", "ray::_train"])
def test_a_shared_player_or_the_trials_are_killed(title, tmp_path):
    paths, watcher = trained(tmp_path / "shared", generations=40, kills=title)
    assert watcher.kills is None
    assert [results(path) for path in paths] == [on_its_own(path, tmp_path) for path in paths]


@pytest.mark.slow
def test_after_a_kill_of_the_driver_the_same_command_goes_on(tmp_path):
    text = GRID.replace("parallel = 4", "parallel = 2").format(shared="true", generations=60)
    sweep = load(tmp_path, text, '"algorithm.sigma" = [0.1, 0.5]')
    paths = [sweep.out / trial.folder for trial in sweep.points]
    command = [sys.executable, "-m", "neuroevo", "sweep", str(tmp_path / "sweep.toml"), "--out", str(sweep.out)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while min(map(count_rows, paths)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(again["generation"] >= 2 for path in paths for again in info_of(path)["resumed"])
    assert [results(path) for path in paths] == [on_its_own(path, tmp_path) for path in paths]


@pytest.mark.slow
def test_trials_that_cannot_share_have_players_of_their_own(tmp_path):
    """Of other options of the environment."""
    space = '"algorithm.sigma" = [0.1, 0.5]\n"env.options.kwargs" = [{g = 9.0}, {g = 10.0}]\n'
    paths, watcher = trained(tmp_path / "shared", space)
    assert max(watcher.counts) == 2
    expected = [on_its_own(path, tmp_path) for path in paths]
    assert len({str(own["rows"]) for own in expected}) == 4
    assert [results(path) for path in paths] == expected
    paths, watcher = trained(tmp_path / "own", space, shared="false")
    assert watcher.counts == {0}
    assert [results(path) for path in paths] == expected


@pytest.mark.slow
def test_who_stops_waiting_for_a_player_leaves_it_to_the_others():
    settings = PlayerSettings("HardMaze-v0", {}, None, (Network("mlp", hidden=(4,)),), origin=origin())
    first, second = SharedMachine(settings, 1), SharedMachine(settings, 1)
    deadline = time.monotonic() + 120
    for machine in (first, second):
        while not machine.starting:  # Ray is asked for its machines in another thread
            assert not machine.poll() and time.monotonic() < deadline
            time.sleep(0.1)
    second.close()
    while not (ready := first.poll()):
        assert time.monotonic() < deadline and not first.failures()
        time.sleep(0.1)
    assert ready[0].facts.threads == 1 and len(players()) == 1
    first.close()
    end_players()
