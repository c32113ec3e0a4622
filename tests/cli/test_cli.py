"""The command: output, run folder, messages and exit codes, with a toy evaluator in place of the real one."""

import json
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import neuroevo.benchmarks
from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.version import VERSION
from neuroevo.sessions import evaluators
from tests.support.databases import info_of
from tests.support.runs import contents, read_rows
from tests.support.toy import ToyEvaluator

ROOT = Path(__file__).parents[2]
CONFIG = """
[env]
name = "frostbite"
[algorithm]
population = 6
parents = 2
[training]
generations = 3
validation_episodes = 2
test_episodes = 2
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    return path


def invoke(monkeypatch, *arguments, toy=None):
    """Run the command in this process with a ToyEvaluator; return the result and the evaluator."""
    toy = toy or ToyEvaluator()
    monkeypatch.setattr(evaluators, "make_evaluator", lambda config, reference_batch: toy)
    return CliRunner().invoke(app, [str(argument) for argument in arguments]), toy


def test_train_takes_the_device_as_an_option(monkeypatch, config, tmp_path):
    out = tmp_path / "run"
    result, _ = invoke(monkeypatch, "train", config, "--out", out, "--set", "hardware.device=gpu", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert load_config(out / "config.toml") == load_config(config, ["hardware.device=cpu"])


def test_train_fills_the_run_folder(monkeypatch, config, tmp_path):
    out = tmp_path / "run"
    result, toy = invoke(monkeypatch, "train", config, "--out", out, "--set", "training.seed=9")
    assert result.exit_code == 0, result.stderr
    assert toy.closed
    files = ["config.toml", "log.txt", "metrics.csv", "run.db", "tensorboard"]
    assert sorted(path.name for path in out.iterdir()) == files
    assert load_config(out / "config.toml") == load_config(config, ["training.seed=9"])
    assert [row["generation"] for row in read_rows(out)] == [0, 1, 2]
    info = info_of(out)
    assert info["seed"] == 9
    assert (info["parameters"], info["actions"], info["device"]) == (8, 3, "cpu")
    assert info["versions"]["neuroevo"] == VERSION
    assert info["versions"]["numpy"] == np.__version__
    assert info["versions"]["gymnasium"] == gymnasium.__version__
    assert info["machine"]["cores"] >= 1
    assert info["machine"]["memory_mib"] > 100
    log = (out / "log.txt").read_text().splitlines()
    assert len(log) == 5
    assert "generation 2: fitness mean" in log[3]
    assert log[4].endswith("finished after 3 generations")


def test_plain_output_is_a_line_per_generation(monkeypatch, config, tmp_path):
    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run")
    lines = result.stdout.splitlines()
    assert lines[0] == f"ga on frostbite, large_model (8 weights, on the cpu), seed 0, into {tmp_path / 'run'}"
    assert lines[1].startswith("frostbite is played by the protocol of arXiv 1712.06567, sticky actions 0, ")
    assert [line.split(":")[0] for line in lines[2:5]] == ["generation 0", "generation 1", "generation 2"]
    assert lines[5] == f"finished after 3 generations; results are in {tmp_path / 'run'}"
    assert len(lines) == 6
    settled = info_of(tmp_path / "run")["environment"]
    assert (settled["name"], settled["protocol"], settled["noop_max"]) == ("frostbite", "uber", 30)


def test_default_folder_is_named_after_the_configuration(monkeypatch, config, tmp_path):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        result, _ = invoke(monkeypatch, "train", config)
        assert result.exit_code == 0, result.stderr
    folders = sorted((tmp_path / "runs").iterdir())
    assert len(folders) == 2
    assert all(folder.name.startswith("small-20") for folder in folders)


def test_a_folder_with_a_run_is_refused(monkeypatch, config, tmp_path):
    invoke(monkeypatch, "train", config, "--out", tmp_path / "run")
    before = contents(tmp_path / "run")
    result, toy = invoke(monkeypatch, "train", config, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "run already holds a run, expected another folder; to resume it: neuroevo train --resume" in result.stderr
    assert toy.calls == []
    assert contents(tmp_path / "run") == before
    result, _ = invoke(monkeypatch, "train", config, "--out", config)
    assert result.exit_code == 2
    assert "small.toml is a file, expected a folder or nothing" in result.stderr
    result, toy = invoke(monkeypatch, "train", config, "--out", config / "below")
    assert result.exit_code == 2
    assert "cannot write to the run folder" in result.stderr and "Not a directory" in result.stderr
    assert toy.closed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "absent.toml"], "neuroevo: there is no configuration file absent.toml\n"),
        (["train", "CONFIG", "--set", "algorithm.poplation=3"], "did you mean population?"),
        (["train", "CONFIG", "--set", "training.seed"], "expected SECTION.KEY=VALUE"),
        (["train"], "expected a configuration file, a preset's name, or --resume with a run's folder"),
        (["train", "CONFIG", "--out", "a", "--resume", "b"], "--out and --resume cannot be combined"),
        (["train", "--resume", "absent"], "there is no run in absent: expected absent/run.db"),
        (["train", "CONFIG", "--color"], "No such option: --color"),
        (["trian"], "No such command 'trian'"),
        (["bench", "env", "--envs", "0"], "Invalid value for '--envs'"),
    ],
)
def test_mistakes_exit_with_2(monkeypatch, config, arguments, message):
    arguments = [config if argument == "CONFIG" else argument for argument in arguments]
    result, toy = invoke(monkeypatch, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert toy.calls == []


def test_failures_exit_with_1(monkeypatch, config, tmp_path):
    result, toy = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", toy=ToyEvaluator(nan_at=3))
    assert result.exit_code == 1
    assert result.stderr == (
        "neuroevo: failed: ValueError: fitness of genome 2 is nan, expected a finite number (--debug shows where)\n"
    )
    assert toy.closed
    assert len(read_rows(tmp_path / "run")) == 1
    assert "stopped in generation 1: ValueError" in (tmp_path / "run" / "log.txt").read_text()


def test_a_long_reason_is_shortened(monkeypatch, config, tmp_path):
    class Loud(ToyEvaluator):
        def play(self, episode):
            raise ValueError("begin" + "x" * 5_000_000 + "end")

    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", toy=Loud())
    assert result.exit_code == 1
    assert len(result.stderr) < 50_000
    assert "ValueError: begin" in result.stderr and "characters left out" in result.stderr and "end" in result.stderr
    log = (tmp_path / "run" / "log.txt").read_text()
    assert len(log) < 10_000 and "ValueError: begin" in log and "characters left out" in log


def test_a_path_that_standard_output_cannot_encode(config, tmp_path):
    path = os.fsencode(tmp_path / "läufe") + b"\xff"
    command = [sys.executable, "-m", "tests.support.toy_cli", "train", config]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments in (["--out", path], ["--resume", path, "--set", "training.generations=4"]):
        if arguments[0] == "--resume":
            command.pop()
        done = subprocess.run([*command, *arguments], cwd=ROOT, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"results are in" in done.stdout
    assert len(read_rows(Path(os.fsdecode(path)))) == 4


def test_debug_shows_the_traceback(monkeypatch, config, tmp_path):
    toy = ToyEvaluator(nan_at=0)
    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", "--debug", toy=toy)
    assert result.exit_code == 1
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith(
        "neuroevo: failed: ValueError: fitness of genome 2 is nan, expected a finite number\n"
    )


def test_ctrl_c_keeps_finished_generations(monkeypatch, config, tmp_path):
    result, toy = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", toy=ToyEvaluator(interrupt_at=7))
    assert result.exit_code == 130
    assert result.stderr == f"neuroevo: interrupted; to resume: neuroevo train --resume {tmp_path / 'run'}\n"
    assert toy.closed
    assert [row["generation"] for row in read_rows(tmp_path / "run")] == [0, 1]
    assert " INFO stopped in generation 2: KeyboardInterrupt()" in (tmp_path / "run" / "log.txt").read_text()


def test_a_finished_run_says_that_nothing_was_left(monkeypatch, config, tmp_path):
    invoke(monkeypatch, "train", config, "--out", tmp_path / "run")
    result, _ = invoke(monkeypatch, "train", "--resume", tmp_path / "run")
    assert result.exit_code == 0 and len(read_rows(tmp_path / "run")) == 3
    *_, told, last = result.stdout.splitlines()
    budgets = "training.generations, training.minutes, training.total_steps or training.target"
    assert told == f"the run was already finished; to continue it, increase {budgets} with --set"
    assert last == f"finished after 3 generations; results are in {tmp_path / 'run'}"
    result, _ = invoke(monkeypatch, "train", "--resume", tmp_path / "run", "--set", "training.generations=6")
    assert "already finished" not in result.stdout and len(read_rows(tmp_path / "run")) == 6


def test_a_real_sigint(config, tmp_path):
    program = (
        "import sys, time; from neuroevo import cli; from neuroevo.sessions import evaluators\n"
        "from tests.support.toy import ToyEvaluator\n"
        "class Slow(ToyEvaluator):\n"
        "    def submit(self, *a):\n"
        "        print('playing', flush=True); time.sleep(600)\n"
        "    def close(self): print('closed', flush=True)\n"
        "evaluators.make_evaluator = lambda config, reference_batch: Slow()\n"
        f"sys.argv = ['neuroevo', 'train', {str(config)!r}, '--out', {str(tmp_path / 'run')!r}]\n"
        "cli.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while "playing" not in (line := process.stdout.readline()):
        assert line, process.stderr.read()
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert stdout.splitlines()[-1] == "closed"
    assert stderr.startswith("neuroevo: interrupted;") and len(stderr.splitlines()) == 1


def test_bench_ends_with_one_json_line(monkeypatch):
    rates = types.ModuleType("neuroevo.benchmarks.rates")
    rates.rollout = lambda **options: {"frames_per_s": 4.0, "options": options}
    env_rate = types.ModuleType("neuroevo.benchmarks.env_rate")
    env_rate.env = lambda **options: {"frames_per_s": 8.0, "options": options}
    for name, module in (("rates", rates), ("env_rate", env_rate)):
        monkeypatch.setitem(sys.modules, f"neuroevo.benchmarks.{name}", module)
        monkeypatch.setattr(neuroevo.benchmarks, name, module, raising=False)
    monkeypatch.setattr("neuroevo.rollout.tensorflow_import.load_tensorflow", lambda: None)
    options = "--engine native --game pong --dtype int8 --seconds 2 --json"
    result, _ = invoke(monkeypatch, "bench", "rollout", *options.split())
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "frames_per_s": 4.0,
        "options": {"game": "pong", "network": "large_model", "seconds": 2.0, "dtype": "int8", "device": "auto",
                    "engine": "native", "threads": None, "lanes": None, "slots": None, "genomes": "random",
                    "rank": 1, "seed": 0},
    }  # fmt: skip
    result, _ = invoke(monkeypatch, "bench", "env", "--env", "pong", "--envs", "3", "--threads", "2", "--json")
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "frames_per_s": 8.0,
        "options": {"name": "pong", "envs": 3, "threads": 2, "seconds": 10.0},
    }
    result, _ = invoke(monkeypatch, "bench", "env")
    assert result.stdout.splitlines()[0] == "frames_per_s: 8.0"


def unread(*command):
    """Run a command with a closed pipe as standard output; return exit code and standard error."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, stdout=writes, stderr=subprocess.PIPE)
    finally:
        os.close(writes)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("command", [("info",), ("config", "presets"), ("config", "show", "frostbite_ga")])
def test_what_nobody_reads_ends_in_silence(command):
    assert unread("-m", "neuroevo", *command) == (128 + signal.SIGPIPE, "")


def test_a_mistake_that_nobody_reads():
    code, stderr = unread("-m", "neuroevo", "config", "check", "absent.toml")
    assert code == 2 and stderr.startswith("neuroevo: there is no configuration file")


def test_training_goes_on_when_nobody_reads(config, tmp_path):
    code, stderr = unread("-m", "tests.support.toy_cli", "train", config, "--out", tmp_path / "run")
    assert code == 0
    assert stderr == "neuroevo: the reader of the output has exited; the run continues, and Ctrl-C ends it\n"
    assert [row["generation"] for row in read_rows(tmp_path / "run")] == [0, 1, 2]
    assert "finished after 3 generations" in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.parametrize("seconds", ["inf", "nan"])
def test_seconds_are_finite(seconds):
    for command in ("rollout", "pipeline", "env"):
        result = CliRunner().invoke(app, ["bench", command, "--seconds", seconds])
        assert result.exit_code == 2
        assert "Invalid value for '--seconds'" in result.output


def test_what_a_shared_machine_cannot_measure(monkeypatch, tmp_path):
    rates = types.ModuleType("neuroevo.benchmarks.rates")
    rates.rollout = lambda **options: {"outside_us": None, "outside_share": None, "steps_per_s": 8.0}
    monkeypatch.setitem(sys.modules, "neuroevo.benchmarks.rates", rates)
    monkeypatch.setattr(neuroevo.benchmarks, "rates", rates, raising=False)
    result, _ = invoke(monkeypatch, "bench", "rollout")
    why = "not measurable: other programs used the cores"
    assert result.stdout.splitlines() == [f"outside_us: {why}", f"outside_share: {why}", "steps_per_s: 8.0"]
    result, _ = invoke(monkeypatch, "bench", "rollout", "--json")
    assert json.loads(result.stdout) == {"outside_us": None, "outside_share": None, "steps_per_s": 8.0}


def test_the_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"neuroevo {VERSION}\n")


def test_help_cuts_no_sentence_off():
    for words in ([], ["config"], ["bench"], ["cluster"]):
        text = CliRunner().invoke(app, [*words, "--help"]).stdout
        assert "..." not in text.partition("\n")[2]
        assert "".join(text.split()).endswith(".")


@pytest.mark.parametrize(("given", "seed"), [(["--seed", "7"], 7), ([], 0), (["--set", "training.seed=5"], 5)])
def test_the_seed_as_an_option(monkeypatch, config, tmp_path, given, seed):
    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", *given)
    assert result.exit_code == 0
    assert load_config(tmp_path / "run" / "config.toml").training.seed == seed
    assert f", seed {seed}, " in result.stdout


def test_environment_and_minutes_as_options(monkeypatch, config, tmp_path):
    given = ["--env", "pong", "--minutes", "0.001"]
    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", *given)
    assert result.exit_code == 0, result.stderr
    made = load_config(tmp_path / "run" / "config.toml")
    assert (made.env.name, made.training.minutes) == ("pong", 0.001)


def test_a_seed_that_is_none(monkeypatch, config, tmp_path):
    result, _ = invoke(monkeypatch, "train", config, "--out", tmp_path / "run", "--seed", "-1")
    assert result.exit_code == 2 and "Invalid value for '--seed'" in result.output


def test_shells_complete_commands_and_names():
    def complete(line):
        environment = {"_NEUROEVO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        command = Path(sys.executable).with_name("neuroevo")
        done = subprocess.run([command], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert {"train", "sweep"} <= set(complete("neuroevo "))
    assert complete("neuroevo train frostbite_n") == ["frostbite_ns_es", "frostbite_nsr_es"]
    assert complete("neuroevo config show smo") == ["smoke"]
    assert complete("neuroevo train --set training.valid") == ["training.validation_episodes="]
    assert complete("neuroevo plot --y fitness_ma") == ["fitness_max"]
