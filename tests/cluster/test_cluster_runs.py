"""Runs on a simulated cluster are the runs of one machine, bit for bit."""

import os

import pytest

from tests.support.cluster_runs import train
from tests.support.kinds_of_runs import KINDS, assert_three_generations
from tests.support.simulated_cluster import SimulatedCluster

# Machines, and what is played; in the order of the machines, since a cluster only grows.
MACHINES = {
    "cma_es": 1,
    "ga": 1,
    "es with a normalizer": 2,
    "low_rank_es with a normalizer": 2,
    "es with vbn": 2,
    "ga_ns": 3,
    "ga in integers": 3,
}
RUNS = [(machines, KINDS[kind]) for kind, machines in MACHINES.items()]
if os.environ.get("NEUROEVO_TEST_MACHINES") == "all":  # each on 1, 2, and 3 machines: a quarter of an hour
    RUNS = [(machines, changes) for machines in (1, 2, 3) for changes in KINDS.values()]


@pytest.fixture(scope="module")
def cluster():
    with SimulatedCluster(1) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "changes"), RUNS)
def test_the_same_as_on_one_machine_without_ray(machines, changes, cluster, tmp_path):
    while cluster.nodes < machines:
        cluster.add()
    expected = train(tmp_path / "plain", changes)
    assert_three_generations(expected)
    changes = {**changes, "cluster": {"machines": machines}}
    assert train(tmp_path / "cluster", changes, cluster.address) == expected
