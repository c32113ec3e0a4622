"""Runs during which players and machines die, stop, leave and join finish with the same results."""

import os
import random
import signal
import time
from contextlib import suppress

import pytest

from tests.support.cluster_runs import count_episodes, finish, start, train, wait_until
from tests.support.runs import count_rows, read_rows, results
from tests.support.simulated_cluster import SimulatedCluster

LONG = {
    "env": {"name": "HardMaze-v0"},
    "network": {"name": "mlp", "hidden": [16], "normalize_observations": True},
    "algorithm": {"name": "ga", "population": 200, "parents": 10, "sigma": 0.05, "validation_candidates": 5},
    "training": {"generations": 30, "validation_episodes": 5, "test_episodes": 20, "seed": 2},
}
KILLS = int(os.environ.get("NEUROEVO_TEST_KILLS", "2"))
SECONDS = 120  # time limit of waits; no wait takes half of it


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train(tmp_path_factory.mktemp("plain") / "run", LONG)


@pytest.fixture(scope="module")
def cluster():
    """Provide one cluster for all tests: earlier deaths must not affect a run."""
    with SimulatedCluster(2) as found:
        yield found


def on_two(path, cluster, **options):
    return start(path, {**LONG, "cluster": {"machines": 2, "retries": 20}}, cluster.address, **options)


@pytest.mark.slow
def test_kills(cluster, expected, tmp_path):
    """Kill one player or all at once, while they start or play."""
    process, rng, kills = on_two(tmp_path / "run", cluster), random.Random(0), 0
    wait_until(lambda: count_rows(tmp_path / "run") > 1, process)
    while kills < KILLS:
        wait_until(cluster.players, process)
        time.sleep(rng.uniform(0, 1.5))
        kills += cluster.kill_players(most=rng.choice([1, 100]))
    assert count_rows(tmp_path / "run") < LONG["training"]["generations"]
    finish(process)
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.thorough
def test_a_machine_is_lost_and_another_joins(cluster, expected, tmp_path):
    process = on_two(tmp_path / "run", cluster)
    wait_until(lambda: count_rows(tmp_path / "run") > 1, process)
    cluster.remove(1)
    wait_until(lambda: len(cluster.players()) == 1, process)
    cluster.add()
    wait_until(lambda: len(cluster.players()) == 2, process)
    finish(process)
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count(" plays: ") == log.count("lost the player") == 1
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.thorough
def test_the_share_of_idle_threads_when_a_machine_is_lost(cluster, tmp_path):
    """Earlier work of the lost machine does not affect the idle share of the remaining threads."""
    (pace := tmp_path / "slow").touch()
    changes = {
        "env": {
            "name": "gymnasium:tests.support.gymnasium_toys:ToyPaced-v0",
            "options": {"kwargs": {"file": str(pace)}},
        },
        "network": {"name": "mlp", "hidden": [6]},
        "algorithm": {"name": "random_search", "population": 8},  # the fewer, the more is what it had done
        "training": {"generations": 1, "validation_episodes": 1, "test_episodes": 0},
        "hardware": {"lanes": 1, "slots": 1},
        "cluster": {"machines": 2},
    }
    process = start(tmp_path / "run", changes, cluster.address)
    wait_until(lambda: count_episodes(tmp_path / "run"), process)
    cluster.remove(cluster.nodes - 1)
    finish(process)
    cluster.add()
    (row,) = read_rows(tmp_path / "run")
    assert 0 <= row["idle_share"] <= 1


@pytest.mark.slow
@pytest.mark.thorough
def test_players_stop_answering(cluster, expected, tmp_path):
    """First one of two players, whose episodes the other plays; then the other as well, and both are replaced."""
    process, log = on_two(tmp_path / "run", cluster), tmp_path / "run" / "log.txt"
    wait_until(lambda: count_rows(tmp_path / "run") > 1, process)
    stopped = cluster.players()
    assert len(stopped) == 2
    try:
        os.kill(stopped[0], signal.SIGSTOP)
        wait_until(lambda: "does not respond; its episodes are also played elsewhere" in log.read_text(), process)
        assert count_rows(tmp_path / "run") < LONG["training"]["generations"]
        os.kill(stopped[1], signal.SIGSTOP)
        finish(process)
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert "no player responds" in log.read_text()
    assert results(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("lost", ["raylet", "gcs_server"])
def test_what_the_driver_cannot_do_without_is_killed(lost, tmp_path):
    """The driver's raylet or the head's server: Ray then terminates the process, and a message is printed."""
    endless = {**LONG, "training": {**LONG["training"], "generations": 10**6}}
    with SimulatedCluster(1) as own:
        process = start(tmp_path / "run", endless, own.address)
        wait_until(lambda: count_rows(tmp_path / "run") > 1, process)
        own.kill_server(lost)
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    last = output.splitlines()[-1]
    assert "raylet" in last and "neuroevo train --resume" in last
