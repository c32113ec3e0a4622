"""Classes and functions in place of names in configurations: a script's classes are trained, stored and replayed."""

import json
import subprocess
import sys

import pytest

import neuroevo
from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from tests.support import gymnasium_toys, own_networks

SCRIPT = """
import neuroevo
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.core.settings import settings


def narrow(shape, outputs):
    return ["dense 3", "tanh", f"dense {outputs}"]


@settings
class Search(RandomSearch):
    pass


if __name__ == "__main__":
    run = neuroevo.train(
        {
            "env": {"name": "hard_maze"},
            "network": {"name": narrow},
            "algorithm": {"name": Search, "population": 4, "validation_candidates": 2},
            "training": {"generations": 2, "max_episode_steps": 20, "validation_episodes": 2, "test_episodes": 2},
        },
        out="run",
    )
    print(run.config.network.name, run.config.algorithm_name)
"""


@pytest.mark.parametrize(("words", "module"), [(["script.py"], "script"), (["-m", "package.script"], "package.script")])
def test_what_a_script_defines(tmp_path, words, module):
    folder = tmp_path / "here"
    (folder / "package").mkdir(parents=True)
    for path in (folder / "script.py", folder / "package" / "script.py"):
        path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout == f"{module}:narrow {module}:Search\n"
    command = [sys.executable, "-m", "neuroevo", "evaluate", str(folder / "run"), "--episodes", "2", "--json"]
    outcomes = []
    for place in (folder, tmp_path):  # in the second, from the run's copy of the source
        result = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
        outcomes.append(json.loads(result.stdout)["returns"])
    assert outcomes[0] == outcomes[1]


def test_tables_and_overrides():
    config = load_config("smoke", {"network.name": own_networks.wide})
    assert config.network.name == "tests.support.own_networks:wide"
    tables = {"env": {"name": "pong"}, "network": {"name": own_networks.wide}, "training": {"generations": 1}}
    assert neuroevo.make_config(tables).network.name == config.network.name


def test_a_class_of_gymnasium(tmp_path):
    tables = {
        "env": {"name": gymnasium_toys.ToyInfo, "options": {"workers": 1}},
        "network": {"name": own_networks.wide},
        "algorithm": {"population": 6, "parents": 2, "validation_candidates": 2},
        "training": {"generations": 2, "max_episode_steps": 12, "validation_episodes": 2, "test_episodes": 0},
    }
    run = neuroevo.train(tables, out=tmp_path / "run")
    assert run.config.env.name == "gymnasium:tests.support.gymnasium_toys:ToyInfo"
    registered = {"env.name": f"{run.config.env.name}-v0"}
    assert fitness(run) == fitness(neuroevo.train(tables, registered, out=tmp_path / "registered"))
    assert max(max(row) for row in fitness(run)) > 0


def test_frames_per_second_of_a_class():
    env = {"name": gymnasium_toys.ToyImage, "options": {"kwargs": {"fps": 12}}}
    config = neuroevo.make_config({"env": env, "network": {"name": "model"}, "training": {"generations": 1}})
    assert config.environment.frames_per_s == 12


def fitness(run):
    """Return the members' fitness in each generation."""
    return [row["fitness"] for row in run.rows()]


@pytest.mark.parametrize("network", [lambda shape, outputs: [], own_networks.made()])
def test_what_no_module_has(network):
    with pytest.raises(UserError, match="cannot be imported, expected a class or function at a module's top level"):
        load_config("smoke", {"network.name": network})


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("-c", "narrow is defined in an interactive session, expected it in a module"),
        ("script.py", 'importing narrow would run all of .*script.py, expected `if __name__ == "__main__":` around'),
    ],
)
def test_a_script_that_cannot_be_imported(tmp_path, where, message):
    program = "import neuroevo\ndef narrow(): ...\nneuroevo.load_config('smoke', {'network.name': narrow})"
    (tmp_path / "script.py").write_text(program)
    words = ["-c", program] if where == "-c" else [where]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    with pytest.raises(UserError, match=message):
        raise UserError(done.stderr.splitlines()[-1])
