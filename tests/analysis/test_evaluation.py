"""`neuroevo evaluate`: returns against the runner without TensorFlow, statistics, output and errors."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neuroevo.analysis.evaluation import Evaluation, episode_seeds
from neuroevo.cli import app
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.randomness import held_out_seeds
from neuroevo.envs import registry
from neuroevo.networks import architectures
from neuroevo.runs.reader import RunReader
from neuroevo.sessions import evaluators
from tests.support.damage import forge
from tests.support.native_rollout import run_episodes
from tests.support.runs import new_run
from tests.support.toy import ToyEvaluator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A run of three generations with fitness from a toy evaluator, so the elites are arbitrary mutated genomes."""
    path = tmp_path_factory.mktemp("runs") / "run"
    new_run(path, training={"generations": 3}, algorithm={"sigma": 0.002})
    return path


def command(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def row_of(*arguments):
    result = command(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def outcomes_of(genome, seeds, max_episode_steps):
    """Play episodes of frostbite with the network `model` without TensorFlow; return their outcomes."""
    episodes = [Episode(genome, seed, max_episode_steps) for seed in seeds]
    return run_episodes(registry.resolve("frostbite"), [architectures.model], episodes, lanes=1, slots=2)


@pytest.mark.parametrize("generation", [0, 2])
def test_equals_the_runner_without_tensorflow(path, generation):
    row = row_of(path, "--episodes", 5, "--max-episode-steps", 150, "--generation", generation, "--threads", 1)
    genome = RunReader(path).elite(generation)[1].genome
    expected = outcomes_of(genome, held_out_seeds(5), 150)
    assert row["seeds"] == held_out_seeds(5)
    assert row["returns"] == expected.returns.tolist()
    assert row["steps"] == expected.steps.tolist()
    assert (row["generation"], row["mutations"]) == (generation, len(genome.mutations))
    assert (row["env"], row["network"], row["max_episode_steps"]) == ("frostbite", "model", 150)
    assert (row["steps_total"], row["frames_total"]) == (expected.steps.sum(), expected.steps.sum() * 4)
    assert row["seconds"] > 0


def test_the_last_generation_and_other_seeds(path):
    row = row_of(path, "--episodes", 4, "--max-episode-steps", 40, "--seed", 11)
    assert row["generation"] == 2
    assert row["seeds"] == episode_seeds(4, 11) == episode_seeds(9, 11)[:4]
    assert not set(row["seeds"]) & set(held_out_seeds(100))
    assert row["returns"] == outcomes_of(RunReader(path).elite()[1].genome, row["seeds"], 40).returns.tolist()


def test_numbers():
    outcomes = Outcomes(np.array([10.0, 20.0, 20.0, 50.0]), np.array([5, 6, 6, 7]))
    evaluation = Evaluation([3, 1, 4, 1], outcomes, max_episode_steps=0, frame_skip=4, seconds=0.5)
    row = evaluation.row()
    assert row["mean"] == 25.0
    assert row["standard_error"] == pytest.approx(np.sqrt((225 + 25 + 25 + 625) / 3 / 4))
    half = 3.18244630528 * row["standard_error"]  # Student's t, 3 degrees of freedom
    assert [row["confidence_low"], row["confidence_high"]] == pytest.approx([25 - half, 25 + half])
    assert (row["min"], row["median"], row["max"]) == (10.0, 20.0, 50.0)
    assert (row["steps_total"], row["frames_total"], row["seconds"]) == (24, 96, 0.5)
    assert (row["episodes"], row["different_returns"]) == (4, 3)
    assert evaluation.lines() == [
        "episodes: 4, without cut-off, different returns: 3",
        "mean: 25.0, standard error 8.7, 95% confidence interval [-2.6, 52.6]",
        "min, median, max: 10.0, 20.0, 50.0",
        "steps: 24",
        "frames: 96",
    ]
    one = Evaluation([3], Outcomes(np.array([10.0]), np.array([5])), max_episode_steps=1000, frame_skip=4, seconds=1.0)
    assert one.lines()[:2] == ["episodes: 1, cut off after 1,000 steps, different returns: 1", "mean: 10.0"]
    assert one.row()["standard_error"] is None


def with_toy(monkeypatch, path, *arguments, **options):
    toy = ToyEvaluator(**options)
    made = []
    monkeypatch.setattr(evaluators, "make_evaluator", lambda config, reference_batch: made.append(config) or toy)
    result = command(path, *arguments)
    assert toy.closed
    return result, toy, made[0]


def test_what_is_played_and_printed(monkeypatch, path):
    result, toy, config = with_toy(monkeypatch, path, "--device", "cpu", "--threads", 3)
    assert result.exit_code == 0, result.stderr
    genome = RunReader(path).elite()[1].genome
    assert toy.calls == [[Episode(genome, seed, 0) for seed in held_out_seeds(30)]]
    assert (config.hardware.device, config.hardware.threads) == ("cpu", 3)
    lines = result.stdout.splitlines()
    assert lines[0] == f"elite of generation 2: model (8 weights, mutations: {len(genome.mutations)}) on frostbite"
    returns = np.array([toy.play(episode) for episode in toy.calls[0]])
    assert lines[2].startswith(f"mean: {returns.mean():,.1f}, standard error ")
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "episodes", "mean", "min, median, max", "steps", "frames",
    ]  # fmt: skip


def test_ctrl_c(monkeypatch, path):
    result, _, _ = with_toy(monkeypatch, path, interrupt_at=0)
    assert result.exit_code == 130
    assert result.stderr == "neuroevo: interrupted\n"


def test_sigterm_in_the_middle_of_long_episodes(path):
    process = subprocess.Popen(
        [sys.executable, "-m", "neuroevo", "evaluate", path, "--episodes", "5000"],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    line = process.stdout.readline()
    assert line.startswith("elite of generation 2"), process.stderr.read()
    time.sleep(0.5)  # Python may lose an exception of a signal handler during imports
    process.terminate()
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (143, "", "neuroevo: terminated\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "there is no run in absent: expected absent/run.db"),
        (["RUN", "--generation", "3"], r"generation 3 is not in .*run: expected one in \[0, 2\]"),
        (["RUN", "--generation", "-1"], r"generation -1 is not in .*run: expected one in \[0, 2\]"),
        (["RUN", "--generation", "x"], "Invalid value for '--generation'"),
        (["RUN", "--episodes", "0"], "Invalid value for '--episodes'"),
        (["RUN", "--max-episode-steps", "-5"], "Invalid value for '--max-episode-steps'"),
        (["RUN", "--seed", "-1"], "Invalid value for '--seed'"),
        (["RUN", "--seed", str(2**63)], "Invalid value for '--seed'"),
        (["RUN", "--threads", "0"], "Invalid value for '--threads'"),
        (["RUN", "--device", "tpu"], "Invalid value for '--device'.*'tpu' is not one of 'auto', 'cpu', 'gpu'"),
        ([], "Missing argument 'RUN'"),
    ],
)
def test_mistakes(path, arguments, message):
    result = command(*(path if argument == "RUN" else argument for argument in arguments))
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""


def test_a_run_without_a_finished_generation(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        new_run(tmp_path / "run", ToyEvaluator(interrupt_at=0))
    result = command(tmp_path / "run")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"neuroevo: no generation of the run in {tmp_path / 'run'} is finished yet\n"


@pytest.mark.parametrize(("before", "after"), [("frostbite", "frostbyte"), ("model", "modle")])
def test_a_run_of_what_is_not_there(tmp_path, before, after):
    """A version with other games and networks may have created the run."""
    new_run(tmp_path / "run", training={"generations": 1})
    text = (tmp_path / "run" / "config.toml").read_text()
    forge(tmp_path / "run", "run", "id = 1", config=text.replace(f'"{before}"', f'"{after}"'))
    result = command(tmp_path / "run")
    assert (result.exit_code, result.stdout) == (2, "")
    assert after in result.stderr and f"did you mean {before}?" in result.stderr
