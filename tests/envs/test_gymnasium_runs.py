"""Gymnasium environments in runs and commands: interrupts, messages, and incompatible networks."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.envs import registry
from neuroevo.inspector import payload
from neuroevo.inspector.inspection import Inspection
from tests.support.gymnasium_pools import TOYS, children, gone, nothing_left_behind, pool_of  # noqa: F401 (a fixture)
from tests.support.runs import read_rows

ROOT = Path(__file__).parents[2]


SMALL = """
[network]
name = "mlp"
[algorithm]
name = "ga"
population = 4
parents = 2
validation_candidates = 2
"""
CONFIG = f"""
[env]
name = "gymnasium:tests.support.gymnasium_toys:ToyTrouble-v0"
[env.options.kwargs]
what = "hold"
at = 20
{SMALL}[training]
generations = 2
test_episodes = 1
[hardware]
lanes = 2
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_run_whose_environment_hangs(tmp_path):
    (tmp_path / "hang.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "neuroevo", "train", str(tmp_path / "hang.toml"), "--out", str(tmp_path / "run")]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline().startswith("ga on gymnasium:")
    time.sleep(2)
    workers = children(run.pid)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert f"neuroevo: interrupted; to resume: neuroevo train --resume {tmp_path / 'run'}\n" in err
    assert gone(workers)


RICH = f"""
[env]
name = "gymnasium:tests.support.gymnasium_toys:ToyDict-v0"
[env.options.kwargs]
mean = 1e307
{SMALL.replace("4", "16")}[training]
generations = 3
validation_episodes = 4
test_episodes = 4
"""  # a return is infinite after 18 steps, and an episode has 1 to 40


def test_returns_that_are_not_finite_fail_their_episodes(tmp_path):
    (tmp_path / "rich.toml").write_text(RICH)
    done = CliRunner().invoke(app, ["train", str(tmp_path / "rich.toml"), "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "episodes failed, the first: the return is inf" in done.output
    rows = read_rows(tmp_path / "run")
    assert len(rows) == 3
    for row in rows:
        assert 0 < row["failures_population"] < 16
        assert 1e307 <= row["fitness_min"] <= row["fitness_mean"] <= row["fitness_max"] < 1.8e308
    more = ["train", "--resume", str(tmp_path / "run"), "--set", "training.generations=4"]
    assert CliRunner().invoke(app, more).exit_code == 0
    assert len(read_rows(tmp_path / "run")) == 4
    with Inspection([tmp_path / "run"]) as inspection:
        assert inspection.answer("cloud/0")["kind"] == "steps"
        for name in ("cloud/0", "generation/0/0", "generation/0/3", "way/0", "family/0/3/0"):
            payload.text(inspection.answer(name))


TIRED = f"""
[env]
name = "gymnasium:tests.support.gymnasium_toys:ToyTired-v0"
[env.options]
workers = 1
timeout = 3.0
retries = 0
[env.options.kwargs]
episodes = 10
{SMALL}[training]
generations = 3
validation_episodes = 2
test_episodes = 0
[hardware]
lanes = 1
slots = 1
"""  # a generation has 8 episodes


def train_tired(folder, *arguments):
    (folder / "tired.toml").write_text(TIRED)
    command = ["train", folder / "tired.toml", f"--out={folder / 'run'}", *arguments]
    return CliRunner().invoke(app, [str(each) for each in command])


@pytest.mark.parametrize(("hang", "engine"), [("false", "native"), ("false", "tensorflow"), ("true", "native")])
def test_what_an_environment_says_comes_first(tmp_path, hang, engine):
    """The error has its reason and traceback, without TensorFlow's; finished generations are kept."""
    settings = f"--set=env.options.kwargs.hang={hang}", f"--set=hardware.engine={engine}"
    done, out = train_tired(tmp_path, *settings), tmp_path / "run"
    assert done.exit_code == 1
    first, *others = done.stderr.splitlines()
    reason = "no answer within 3 s" if hang == "true" else "OverflowError: tired"
    where = rf"gymnasium environment '{TOYS}ToyTired-v0', reset of slot 0 \(worker 0, process \d+\)"
    assert re.fullmatch(f"neuroevo: {where}: {reason}", first)
    assert others.pop() == f"to resume: neuroevo train --resume {out}"
    if hang == "true":
        assert others == []
    else:
        assert others[:2] == ["of it all", "Traceback (most recent call last):"]
        assert others[-2:] == ["OverflowError: tired", "of it all"]
        assert 'raise OverflowError("tired\\nof it all")' in others[-4] + others[-3]
    assert [row["generation"] for row in read_rows(out)] == [0]
    last = (out / "log.txt").read_text().splitlines()[-1]
    assert re.search(f"ERROR stopped in generation 1: EnvironmentFailure: {where}: {reason}$", last)


def test_debug_shows_where_a_graph_failed(tmp_path):
    done = train_tired(tmp_path, "--debug", "--set", "hardware.engine=tensorflow")
    assert done.exit_code == 1
    assert "Graph execution error" in done.stderr and "lane_graph.py" in done.stderr
    assert "neuroevo: gymnasium environment" in done.stderr.split("Graph execution error")[-1]


@pytest.mark.parametrize(
    ("toy", "network", "message"),
    [
        (
            "ToyImage",
            {"normalize_observations": True},
            "network.normalize_observations = true: .* has image observations",
        ),
        ("ToyDict", {"dtype": "int8", "activation": "relu"}, "network.dtype = .int8.: .* has vector observations"),
        ("ToyHalf", {"action_bins": 3}, r"action\[1\] has bounds -2 and inf, expected finite bounds for its 3 bins"),
        (
            "ToyLong",
            {"action_bins": 3},
            "network.action_bins = 3: expected 0, since the environment has 3 discrete actions",
        ),
    ],
)
def test_networks_that_do_not_fit_are_refused_before_anything_is_played(toy, network, message):
    from neuroevo.networks.network import Network
    from neuroevo.rollout.evaluator import LocalEvaluator

    with pytest.raises(UserError, match=message):
        LocalEvaluator(f"gymnasium:{TOYS}{toy}-v0", Network("mlp", **network), lanes=1, slots=1)


@pytest.mark.parametrize(
    ("name", "network", "shape"),
    [("CartPole-v1", "large_model", "[4]"), ("FrozenLake-v1", "model", "[16]"), ("CartPole-v1", "virtual_bn", "[4]")],
)
def test_networks_for_screens_name_one_for_numbers(tmp_path, name, network, shape):
    """The command prints the environment, its observations, and the key and value to set, in one line."""
    table = {"env.name": f"gymnasium:{name}", "network.name": network, "training.generations": 1}
    changes = [f"--set={key}={value}" for key, value in table.items()]
    done = CliRunner().invoke(app, ["train", "frostbite_ga", *changes, f"--out={tmp_path / 'run'}"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f'neuroevo: network.name = "{network}": this network requires images of shape [height, '
        f"width, channels], but gymnasium:{name} has observations of shape {shape}; expected mlp\n"
    )
    assert not (tmp_path / "run").exists()


def test_what_bench_cannot_measure():
    from neuroevo.benchmarks import env_rate

    with pytest.raises(UserError, match=r"ToyHalf-v0 .*\[-1.0, -2.0\], \[1.0, inf\].* finite"):
        env_rate.env(f"gymnasium:{TOYS}ToyHalf-v0", 1, None, 0.1)
    with pytest.raises(UserError, match="gymnasium:nothing:Nothing-v0 .*No module named 'nothing'"):
        env_rate.env("gymnasium:nothing:Nothing-v0", 1, None, 0.1)


def test_the_engines_and_the_lane_runner_play_the_same(engine):
    from neuroevo.core.episode import Episode
    from neuroevo.core.genome import Genome
    from neuroevo.networks import architectures
    from neuroevo.rollout.evaluator import LocalEvaluator
    from tests.support.native_rollout import run_episodes

    genomes = [Genome(base).child(base + 1, 0.1) for base in range(4)]
    episodes = [Episode(genome, seed, 100) for genome in genomes for seed in (1, 2)]
    with LocalEvaluator("gymnasium:CartPole-v1", "mlp", lanes=2, slots=2, engine=engine) as evaluator:
        played = evaluator.evaluate(episodes)
    expected = run_episodes(registry.resolve("gymnasium:CartPole-v1"), [architectures.mlp], episodes, lanes=1, slots=3)
    assert np.array_equal(played.returns, expected.returns)
    assert np.array_equal(played.steps, expected.steps)
    assert len(set(played.steps.tolist())) > 1
