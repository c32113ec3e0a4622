"""Runs on a simulated cluster are the runs of one machine, bit for bit."""

import os

import pytest

from tests.support.cluster_runs import train
from tests.support.simulated_cluster import SimulatedCluster

SHORT = {"generations": 3, "max_episode_steps": 60, "validation_episodes": 3, "seed": 5}
SMALL_GA = {"name": "ga", "population": 12, "parents": 4, "sigma": 0.05, "validation_candidates": 3}
SMALL_ES = {"name": "es", "population": 12, "sigma": 0.05}
MAZE = {"env": {"name": "HardMaze-v0"}, "network": {"name": "mlp", "hidden": [6]}}
HOPPER = {
    "env": {"name": "Hopper-v5"},
    "network": {"name": "mlp", "hidden": [16], "normalize_observations": True},
}
RUNS = [  # machines, and what is played; in the order of the machines, since a cluster only grows
    (1, {**MAZE, "algorithm": {"name": "experiments.examples.cma_es:CMAES", "population": 8}}),
    (1, {"algorithm": SMALL_GA}),
    (2, {**HOPPER, "algorithm": SMALL_ES}),
    (2, {"algorithm": SMALL_ES, "network": {"name": "virtual_bn"}}),
    (3, {**MAZE, "algorithm": {**SMALL_GA, "name": "ga_ns", "k": 3, "archive_probability": 0.3}}),
    (3, {"algorithm": SMALL_GA, "network": {"name": "model", "dtype": "int8"}}),
]
if os.environ.get("NEUROEVO_TEST_MACHINES") == "all":  # each on 1, 2, and 3 machines: a quarter of an hour
    RUNS = [(machines, changes) for machines in (1, 2, 3) for _, changes in RUNS]


@pytest.fixture(scope="module")
def cluster():
    with SimulatedCluster(1) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "changes"), RUNS)
def test_the_same_as_on_one_machine_without_ray(machines, changes, cluster, tmp_path):
    while cluster.nodes < machines:
        cluster.add()
    tests = 6 if "env" in changes else 0  # on Frostbite an episode without cut-off may take minutes
    changes = {**changes, "training": {**SHORT, "test_episodes": tests}}
    expected = train(tmp_path / "plain", changes)
    assert len(expected["rows"]) == SHORT["generations"]
    assert len({tuple(row["fitness"]) for row in expected["rows"]}) == SHORT["generations"]
    changes["cluster"] = {"machines": machines}
    assert train(tmp_path / "cluster", changes, cluster.address) == expected
