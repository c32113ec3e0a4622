"""`network.name = "module:function"`: user-defined networks, and error messages for invalid ones."""

import subprocess
import sys
import textwrap

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.config.load import make_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.runs.reader import RunReader
from tests.support.runs import TABLES

TABLE = {**TABLES, "env": {"name": "HardMaze-v0"}}
SOURCE = """
    def small(shape, outputs):
        assert shape == (11,), shape
        return ["dense 6", "silu", "lstm 4", f"dense {outputs} std=0.1"]

    def wrong_number(shape, outputs):
        return ["dense 7"]

    def raises(shape, outputs):
        return [f"dense {shape[1]}"]

    def junk(shape, outputs):
        return "dense 7"

    def bad_line(shape, outputs):
        return ["dens 7"]

    def vbn(shape, outputs):
        return ["vbn", f"dense {outputs}"]

    def image(shape, outputs):
        return ["conv 3 3x3", f"dense {outputs}"]

    number = 3

    class Kind:
        pass
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Current folder that contains the module."""
    (tmp_path / "own_networks.py").write_text(textwrap.dedent(SOURCE))
    (tmp_path / "broken_networks.py").write_text("import numpy\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("own_networks", None)


def test_its_layers_are_the_function_s():
    network = Network("own_networks:small")
    assert str(network) == "own_networks:small" and not network.needs_reference
    assert network.lines("input float32 11", 2, True) == [
        "input float32 11", "dense 6 1.0", "bias", "silu", "lstm 4 1.0", "dense 2 0.1", "bias", "tanh",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own_networks:smal", "own_networks ({folder}/own_networks.py) has no function smal: expected module:function"),
        ("own_networks:number", "has no function number"),
        ("own_networks:Kind", "has no function Kind"),
        ("own_networks:", "expected module:function, such as experiments.examples.networks:small"),
        ("no_networks:small", "there is no module no_networks, expected one in {folder} or installed"),
        ("broken_networks:small", "importing broken_networks raises ZeroDivisionError: division by zero "
         "({folder}/broken_networks.py, line 2)"),
    ],
)  # fmt: skip
def test_what_is_told_when_the_configuration_is_read(name, reason, folder):
    with pytest.raises(ConfigError) as raised:
        make_config({**TABLE, "network": {"name": name}})
    (problem,) = raised.value.problems
    assert problem.key == "network.name"
    assert reason.format(folder=folder) in problem.reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong_number", "own_networks:wrong_number returns a network with 7 outputs, expected 2, its argument"),
        ("raises", "own_networks:raises((11,), 2) raises IndexError: tuple index out of range "
         "({folder}/own_networks.py, line 10)"),
        ("junk", "own_networks:junk returns 'dense 7', expected a list of layers, such as"),
        ("bad_line", 'own_networks:bad_line returns the layer "dens 7": expected a layer of conv, '),
        ("vbn", "own_networks:vbn has a vbn layer, which only network.layers supports"),
        ("image", "layer 1 'conv 3 3 3 1 valid 1.0': needs an input of height, width and channels"),
    ],
)  # fmt: skip
def test_what_is_told_before_the_start(name, reason, folder):
    with pytest.raises(UserError) as raised:
        LocalEvaluator("HardMaze-v0", f"own_networks:{name}")
    assert reason.format(folder=folder) in str(raised.value)


def test_a_run_of_it_is_trained_resumed_and_evaluated(folder):
    """Use the command line in the module's folder, which is not on PYTHONPATH."""
    sets = ["env.name=HardMaze-v0", "network.name=own_networks:small", "algorithm.name=ga", "algorithm.population=6",
            "algorithm.parents=2", "training.generations=2", "training.max_episode_steps=40"]  # fmt: skip
    (folder / "run.toml").write_text("")
    command = [sys.executable, "-m", "neuroevo", "train", "run.toml", "--out", "run"]
    done = subprocess.run(
        [*command, *(word for each in sets for word in ("--set", each))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    more = ["--set", "training.generations=3"]
    done = subprocess.run(
        [sys.executable, "-m", "neuroevo", "train", "--resume", "run", *more], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(RunReader(folder / "run").rows()) == 3
    result = CliRunner().invoke(app, ["evaluate", "run", "--episodes", "2", "--max-episode-steps", "40"])
    assert result.exit_code == 0, result.stderr
