"""Runs on a simulated cluster are bit-identical to runs on one machine; failures; `neuroevo cluster check`."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.runs.paths import LOG
from tests.support.cluster_runs import ROOT, count_episodes, finish, start, train, wait_until
from tests.support.kinds_of_runs import KINDS, assert_three_generations
from tests.support.runs import config, count_rows, results
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
USUAL = [(2, "own networks")]
EVERY = {**KINDS, "own networks": EVOLVED}
RUNS = [
    pytest.param(
        machines, changes, id=f"{kind}-{machines}", marks=[pytest.mark.thorough] * ((machines, kind) not in USUAL)
    )
    for machines in (1, 2, 3)
    for kind, changes in EVERY.items()
]
TOY = "gymnasium:tests.support.gymnasium_toys:"
SMALL = {
    "env": {"name": "HardMaze-v0"},
    "network": {"name": "mlp", "hidden": [6]},
    "training": {"generations": 2, "max_episode_steps": 40, "validation_episodes": 2, "test_episodes": 2},
}


@pytest.fixture(scope="module")
def cluster():
    with SimulatedCluster(1) as found:
        yield found


# While it has one machine.


def neuroevo(*arguments):
    command = [sys.executable, "-m", "neuroevo", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    return done


def test_check(cluster):
    done = neuroevo("cluster", "check", cluster.address)
    assert done.returncode == 0
    machine, total = done.stdout.splitlines()
    assert "(head): 1 cores; can play" in machine
    assert total.startswith("1 of 1 ")


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", "check", "127.0.0.1:1"],
        ["cluster", "check", "nowhere"],
        ["train", "demo", "--cluster", "127.0.0.1:0"],
    ],
)
def test_an_address_without_a_cluster(command):
    done = neuroevo(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert command[-1] in done.stderr.splitlines()[-1]


def test_without_ray():
    """One line that names the extra."""
    program = (
        "import sys; sys.modules['ray'] = None; "
        "sys.argv = ['neuroevo', *sys.argv[1:]]; from neuroevo.cli import main; main()"
    )
    for arguments in (["cluster", "check"], ["train", "demo", "--cluster", "auto"]):
        done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "neuroevo: ray is not installed: pip install 'neuroevo[cluster]'\n"


@pytest.mark.slow
def test_an_environment_that_fails_ends_the_run_as_on_one_machine(cluster, tmp_path):
    changes = {
        **SMALL,
        "env": {"name": f"{TOY}ToyTrouble-v0", "options": {"kwargs": {"what": "raise", "at": 3}, "retries": 0}},
    }
    file = tmp_path / "plain.toml"
    file.write_text(config(**changes).toml())
    plain = CliRunner().invoke(app, ["train", str(file), "--out", str(tmp_path / "plain")])
    process = start(tmp_path / "cluster", changes, cluster.address)
    output, _ = process.communicate(timeout=120)
    found = []
    for text in (plain.stderr, output):
        (message,) = [line for line in text.splitlines() if line.startswith("neuroevo: ")]
        found.append(re.sub(r"\d+", "N", message))
    assert found[0] == found[1] and "the toy broke" in found[0]
    assert (plain.exit_code, process.returncode) == (1, 1)


@pytest.mark.thorough
@pytest.mark.slow
def test_an_episode_that_kills_its_player_is_named(cluster, tmp_path):
    changes = {
        **SMALL,
        "env": {"name": f"{TOY}ToyKiller-v0", "options": {"kwargs": {"of": 3}}},
        "cluster": {"retries": 2},
    }
    process = start(tmp_path / "run", changes, cluster.address)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 1, output
    seed = int(re.search(r"has killed 2 players.* seed (\d+) of Genome", output).group(1))
    assert seed % 2**31 % 3 == 1  # as environments of Gymnasium are seeded


# While it grows.


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
def test_a_run_is_terminated_whose_players_need_a_named_module_of_the_driver_s_folder(cluster, tmp_path):
    """The players' own folder is another one, and a module that is named as one of Ray's needs is not imported.

    Ray replaces the handler of SIGTERM; a run on a cluster nevertheless ends as other runs do.
    """
    (tmp_path / "pyarrow.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()\n")
    (tmp_path / "mine.py").write_text(
        "def small(shape, outputs):\n    return ['dense 5', 'relu', f'dense {outputs}']\n"
    )
    training = "generations = 1000000\nmax_episode_steps = 5\nvalidation_episodes = 1\ntest_episodes = 1\n"
    named = '[network]\nname = "mine:small"\n[env]\nname = "hard_maze"\n'
    named += '[algorithm]\nname = "ga"\npopulation = 4\nparents = 2\n'
    (tmp_path / "run.toml").write_text(f"{named}[training]\n{training}")
    command = [Path(sys.executable).with_name("neuroevo"), "train", "run.toml", "--out", "run"]
    command += ["--cluster", cluster.address]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, **streams)
    wait_until(lambda: count_rows(tmp_path / "run"), process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143, output
    assert "--resume" in output.splitlines()[-1]
    assert not (tmp_path / "imported").exists()


@pytest.mark.slow
def test_episodes_share_plays_on_a_cluster(cluster):
    """In integers, whose outcomes are those without a cluster, and without TensorFlow."""
    program = """
import sys
from dataclasses import replace
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.sessions.evaluators import make_evaluator
from tests.support.runs import config
network = {"name": "model", "dtype": "int8"}
plain = config(env={"name": "qbert", "options": {"noop_max": 2}}, network=network)
episodes = [Episode(Genome(genome), seed, 70) for genome in range(3) for seed in range(20)]
with make_evaluator(replace(plain, cluster=replace(plain.cluster, address=sys.argv[1]))) as evaluator:
    outcomes = evaluator.evaluate(episodes)
    print("steps", outcomes.steps.sum(), evaluator.work().steps)
with make_evaluator(plain) as evaluator:
    expected = evaluator.evaluate(episodes)
assert outcomes.returns.tolist() == expected.returns.tolist() and len(set(expected.returns)) > 1
assert "tensorflow" not in sys.modules
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
