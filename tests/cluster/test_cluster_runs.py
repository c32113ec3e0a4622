"""Runs on a simulated cluster are bit-identical to runs on one machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from neuroevo.runs.paths import LOG
from tests.support.cluster_runs import count_episodes, finish, start, train, wait_until
from tests.support.kinds_of_runs import KINDS, assert_three_generations
from tests.support.runs import results
from tests.support.simulated_cluster import SimulatedCluster

EVOLVED = {  # which the TensorFlow engine does not play
    **KINDS["cma_es"],
    "algorithm": {
        "name": "regularized_evolution",
        "population": 12,
        "offspring": 8,
        "tournament": 4,
        "network_mutation": 0.5,
        "max_lstm_units": 8,
        "validation_candidates": 3,
    },
}
# Machines, and what is played; in the order of the machines, since a cluster only grows.
USUAL = [(1, "ga in integers"), (2, "own networks")]
EVERY = {**KINDS, "own networks": EVOLVED}
RUNS = [
    pytest.param(
        machines, changes, id=f"{kind}-{machines}", marks=[pytest.mark.thorough] * ((machines, kind) not in USUAL)
    )
    for machines in (1, 2, 3)
    for kind, changes in EVERY.items()
]


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


@pytest.mark.slow
def test_players_look_for_a_named_module_in_the_driver_s_folder_after_all_others(cluster, tmp_path):
    """The players' own folder is another one, and a module that is named as one of Ray's needs is not imported."""
    (tmp_path / "pyarrow.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    (tmp_path / "mine.py").write_text(
        "def small(shape, outputs):\n    return ['dense 5', 'relu', f'dense {outputs}']\n"
    )
    training = "generations = 1\nmax_episode_steps = 5\nvalidation_episodes = 1\ntest_episodes = 1\n"
    named = '[network]\nname = "mine:small"\n[env]\nname = "hard_maze"\n'
    named += '[algorithm]\nname = "ga"\npopulation = 4\nparents = 2\n'
    (tmp_path / "run.toml").write_text(f"{named}[training]\n{training}")
    command = [Path(sys.executable).with_name("neuroevo"), "train", "run.toml", "--out", "run"]
    command += ["--cluster", cluster.address]
    finish(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    assert not (tmp_path / "imported").exists()


@pytest.mark.slow
def test_episodes_share_plays_on_a_cluster(cluster):
    program = """
import sys
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.sessions.evaluators import make_evaluator
from tests.support.runs import config
changes = {"env": {"name": "pong", "options": {"noop_max": 2}}, "cluster": {"address": sys.argv[1]}}
with make_evaluator(config(**changes)) as evaluator:
    outcomes = evaluator.evaluate([Episode(Genome(genome), seed, 70) for genome in range(3) for seed in range(20)])
    print("steps", outcomes.steps.sum(), evaluator.work().steps)
"""
    command = [sys.executable, "-c", program, cluster.address]
    output = finish(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    steps, played = map(int, re.search(r"^steps (\d+) (\d+)$", output, re.MULTILINE).groups())
    assert steps == 3 * 20 * 70 and 3 * 70 <= played < steps


@pytest.mark.thorough
@pytest.mark.slow
def test_a_driver_killed_within_a_generation(cluster, tmp_path):
    """The resumed driver reuses the outcomes of the killed one, and plays only the missing episodes."""
    changes = {
        "algorithm": {"name": "ga", "population": 40, "parents": 4, "sigma": 0.05, "validation_candidates": 3},
        "training": {"generations": 2, "max_episode_steps": 60, "validation_episodes": 3, "test_episodes": 0},
    }
    path = tmp_path / "run"
    process = start(path, changes, cluster.address)
    wait_until(lambda: count_episodes(path) > 3, process)
    process.kill()
    process.communicate()
    assert count_episodes(path) > 3
    finish(start(path, changes, cluster.address, resume=True))
    assert results(path) == train(tmp_path / "plain", changes)
    assert "which are not played again" in (path / LOG).read_text()
