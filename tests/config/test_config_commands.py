"""`neuroevo config`: check, show, and an initial configuration that documents every key."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.cli import app
from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import SECTIONS
from neuroevo.envs.atari import AtariOptions
from neuroevo.native import library
from neuroevo.networks.architectures import NETWORKS
from neuroevo.system.reading import tomllib

ROOT = Path(__file__).parents[2]
START = {"env": {"name": "frostbite"}, "training": {"total_steps": 250_000_000}}


def invoke(*arguments):
    return CliRunner().invoke(app, ["config", *map(str, arguments)])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.toml"
    path.write_text('[env]\nname = "pong"\n[training]\nminutes = 1.5\n')
    return path


def test_check_says_what_a_configuration_does(file):
    result = invoke("check", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (f"{file} is fine: ga on pong with large_model, population 1,000, ends after 1.5 minutes\n")
    result = invoke("check", file, "--set", "training.total_steps=2e6", "--set", "algorithm.name=random_search")
    assert result.stdout == (
        f"{file} is fine: random_search on pong with large_model, population 1,000, "
        "ends after 2,000,000 steps or 1.5 minutes\n"
    )


def test_check_says_everything_that_is_wrong(file):
    result = invoke("check", file, "--set", "algorithm.poplation=30", "--set", "training.seed=-1")
    assert (result.exit_code, result.stdout) == (2, "")
    heading, first, second = result.stderr.splitlines()
    assert heading == f"neuroevo: 2 problems in {file}:"
    assert first.startswith("  algorithm.poplation = 30: there is no such key; did you mean population?")
    assert second == "  training.seed = -1: expected at least 0"


def test_check_tries_the_environment_and_what_a_run_starts_from(file, tmp_path):
    changes = ["--set", "env.options.mode=2", "--set", f"training.start_from={tmp_path}"]
    result = invoke("check", file, *changes)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"neuroevo: 2 problems in {file}:",
        "  pong cannot be made: atari option mode is 2, which pong does not support; expected one of: 0, 1",
        f'  training.start_from = "{tmp_path}": there is no run in {tmp_path}: expected {tmp_path / "run.db"}',
    ]
    assert invoke("show", file, *changes).exit_code == 0


@pytest.mark.parametrize(("name", "problem"), [("", "the configuration's name is empty"), ("TMP", "TMP is a folder")])
def test_what_is_no_file(tmp_path, name, problem):
    result = invoke("check", name.replace("TMP", str(tmp_path)))
    assert (result.exit_code, result.stdout) == (2, "")
    expected = "expected a TOML file, a preset's name, or a JSON file of the 2018 code"
    assert result.stderr == f"neuroevo: {problem.replace('TMP', str(tmp_path))}, {expected}\n"


def test_show_fills_in_the_defaults(file):
    result = invoke("show", file, "--set", "training.seed=5")
    assert result.exit_code == 0
    config = load_config(file, ["training.seed=5"])
    assert tomllib.loads(result.stdout) == config.tables()
    assert config.tables()["algorithm"]["population"] == 1000


@pytest.mark.parametrize("name", ALGORITHMS)
def test_show_without_a_file_documents_every_key(name):
    result = invoke("show", "--set", f"algorithm.name={name}")
    assert result.exit_code == 0, result.stderr
    tables = tomllib.loads(result.stdout)
    assert make_config(tables) == make_config({**START, "algorithm": {"name": name}})
    assert list(tables) == list(SECTIONS)
    lines = result.stdout.splitlines()
    for section, kind in {**SECTIONS, "algorithm": ALGORITHMS[name], "env.options": AtariOptions}.items():
        start = lines.index(f"[{section}]")
        assert lines[start - 1].startswith("# ")
        own = lines[start + 1 :]
        own = own[: own.index("")] if "" in own else own
        for field in fields(kind):
            if (section, field.name) == ("env", "options"):
                continue  # a separate table
            (at,) = [i for i, line in enumerate(own) if line.startswith((f"{field.name} =", f"# {field.name} ="))]
            assert re.match(r"# (?!\w+ =)", own[at - 1]), "no documentation"
    assert "# Seed of all random numbers in the run, in [0, 2**63).\nseed = 0\n" in result.stdout
    assert "# threads =\n" in result.stdout
    assert '# protocol = "uber"\n' in result.stdout


def test_show_without_a_file_takes_tables_as_values():
    schedule = "{type = 'LinearSchedule', initial_p = 0.5, final_p = 0.25, schedule = 9}"
    sets = [f"algorithm.sigma={schedule}", "training.max_episode_steps=env_default", "env.options.frame_skip=3"]
    result = invoke("show", *(word for change in sets for word in ("--set", change)))
    shown = make_config(tomllib.loads(result.stdout))
    assert shown == make_config(
        {
            "env": {**START["env"], "options": {"frame_skip": 3}},
            "algorithm": {"sigma": tomllib.loads(f"sigma = {schedule}")["sigma"]},
            "training": {**START["training"], "max_episode_steps": "env_default"},
        }
    )


def test_no_command_here_needs_tensorflow():
    program = "import sys; from neuroevo.cli import app; app(sys.argv[1:], standalone_mode=False)"
    program += "; assert 'tensorflow' not in sys.modules and 'ale_py' in sys.modules"
    for arguments in (["config", "check", "smoke"], ["config", "show"]):
        subprocess.run([sys.executable, "-c", program, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE)


def test_info_lists_what_a_configuration_can_name():
    lines = CliRunner().invoke(app, ["info"]).stdout.splitlines()
    assert f"algorithms: {', '.join(ALGORITHMS)}" in lines
    assert f"networks: {', '.join(NETWORKS)} (or network.layers, or module:function)" in lines
    assert {"model", "large_model", "nature_dqn", "virtual_bn", "mlp"} <= set(NETWORKS)
    assert "dtypes: float32, int8" in lines
    assert any(line.startswith("presets: ant_ga, demo, es_frostbite, ") for line in lines)
    assert "  games (104)" in lines and "  tasks (11)" in lines  # short
    assert f"  code for: {library.cpu_level()}" in lines
    lines = CliRunner().invoke(app, ["info", "--games"]).stdout.splitlines()
    assert any(line.startswith("games (104): adventure, ") and ", frostbite, " in line for line in lines)
    assert any(line.startswith("tasks (11): HalfCheetah-v5, Ant-v5, ") for line in lines)
