"""Trials with a shared pipeline have the same results as separate runs, also after failures of the pipeline."""

import os
import signal
import time

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
from tests.support.runs import results  # noqa: E402
from tests.support.simulated_cluster import players_of  # noqa: E402
from tests.support.sweeps import Listener, load  # noqa: E402

GRID = """
search = "grid"
parallel = 2
shared = true
set = ["training.generations={generations}", "network.activation=relu"]
"""
NETWORKS = '"network.hidden" = [[4], [8, 4]]\n'


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Provide one cluster for the sweeps of this module."""
    join("local")
    yield
    leave()


def players(title="PlayerActor"):
    """Return the processes of this module's players, or of its trials."""
    import ray

    return players_of(ray.get_runtime_context().gcs_address, title)


class Watching(Listener):
    """Watcher that counts the players after each result, and kills all processes of each title, one after another.

    Attributes:
        counts: How many players there were until the first kill.
        kills: The titles of the processes that are still to be killed.
    """

    def __init__(self, kills=()):
        super().__init__()
        self.counts, self.kills, self._next = set(), list(kills), 0

    def result(self, trial, row):
        super().result(trial, row)
        if self._next == 0:
            self.counts.add(len(players()))
        if self.kills and row["generation"] >= self._next:
            assert (found := players(self.kills.pop(0)))
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            self._next = row["generation"] + 10


def trained(folder, space=NETWORKS, generations=6, **options):
    """Return the folders of the trials, and the events of the watcher."""
    folder.mkdir()
    watcher = Watching(**options)
    sweep = load(folder, GRID.format(generations=generations), space)
    trials = run_sweep(sweep, watcher)
    assert {(trial.status, trial.reason) for trial in trials} == {("finished", "")}
    return [sweep.out / trial.folder for trial in trials], watcher


def on_its_own(path, folder):
    """Return the results of a trial's configuration without Ray."""
    own = folder / "-".join(path.parts[-2:])
    neuroevo.train(RunReader(path).config, out=own)
    return results(own)


@pytest.mark.thorough
@pytest.mark.slow
def test_trials_of_several_networks_share_a_pipeline_that_is_killed(tmp_path):
    """The player first, then the trials."""
    shared, watcher = trained(tmp_path / "shared", generations=80, kills=["PlayerActor", "ray::_train"])
    assert (watcher.counts, watcher.kills) == ({1}, [])
    expected = [on_its_own(path, tmp_path) for path in shared]
    assert len({str(own["rows"]) for own in expected}) == 2 and {len(own["rows"]) for own in expected} == {80}
    assert [results(path) for path in shared] == expected


@pytest.mark.slow
@pytest.mark.thorough
def test_trials_that_cannot_share_have_players_of_their_own(tmp_path):
    """Of other options of the environment."""
    paths, watcher = trained(tmp_path / "shared", '"env.options.kwargs" = [{g = 9.0}, {g = 10.0}]\n')
    assert max(watcher.counts) == 2
    expected = [on_its_own(path, tmp_path) for path in paths]
    assert len({str(own["rows"]) for own in expected}) == 2
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
