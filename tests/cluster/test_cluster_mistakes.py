"""Failures of clusters, and the output of `neuroevo cluster check`."""

import re
import signal
import subprocess
import sys

import pytest

from tests.support.cluster_runs import ROOT, start, wait_until
from tests.support.runs import count_rows
from tests.support.simulated_cluster import SimulatedCluster

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


def neuroevo(*arguments):
    command = [sys.executable, "-m", "neuroevo", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    return done


def test_the_driver_does_not_import_tensorflow(cluster, tmp_path):
    program = (
        "import sys, neuroevo; from neuroevo.config.load import make_config;"
        f"tables = {SMALL!r} | {{'cluster': {{'address': {cluster.address!r}}}}};"
        f"run = neuroevo.train(make_config(tables), out={str(tmp_path / 'run')!r});"
        "assert len(run.rows()) == 2; assert 'tensorflow' not in sys.modules; print('trained')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("trained\n"), done.stderr


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
    found = []
    for name, address in (("plain", None), ("cluster", cluster.address)):
        process = start(tmp_path / name, changes, address)
        output, _ = process.communicate(timeout=120)
        (message,) = [line for line in output.splitlines() if line.startswith("neuroevo: ")]
        found.append((process.returncode, re.sub(r"\d+", "N", message)))
    assert found[0] == found[1]
    assert found[0][0] == 1 and "the toy broke" in found[0][1]


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


@pytest.mark.slow
def test_a_run_is_terminated(cluster, tmp_path):
    """Ray replaces the handler of SIGTERM; a run on a cluster nevertheless ends as other runs do."""
    endless = {**SMALL, "training": {**SMALL["training"], "generations": 10**6}}
    process = start(tmp_path / "run", endless, cluster.address)
    wait_until(lambda: count_rows(tmp_path / "run"), process)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143, output
    assert "--resume" in output.splitlines()[-1]
