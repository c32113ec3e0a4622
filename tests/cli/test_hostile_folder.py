"""Commands in a folder of modules named like Python's and installed packages' modules never import them."""

import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer

from neuroevo import train
from neuroevo.cli import app
from neuroevo.runs.about import read_about, write_about
from neuroevo.runs.database import DATABASE, Database
from tests.support.local_hub import TOKEN, local_hub

pytestmark = pytest.mark.slow

COMMAND = (str(Path(sys.executable).with_name("neuroevo")),)
SECONDS = 300
PLAIN = """
    [env]
    name = "hard_maze"
    [network]
    name = "mlp"
    hidden = [4]
    [algorithm]
    name = "ga"
    population = 4
    parents = 2
    [hardware]
    threads = 1
    slots = 4
    [training]
    generations = 1
    max_episode_steps = 5
    validation_episodes = 1
    test_episodes = 1
"""
GYMNASIUM = PLAIN.replace('"hard_maze"', '"gymnasium:InvertedPendulum-v5"\noptions = {workers = 1}')
FILES = {
    "plain.toml": PLAIN,
    "gymnasium.toml": GYMNASIUM,
    "sweep.toml": """
        [sweep]
        configs = "gymnasium/config.toml"
        out = "sweep"
        [sweep.space]
        "training.seed" = [1]
    """,
}
PLAY = ("--episodes", "1", "--max-episode-steps", "5")
BENCH = ("--seconds", "0.1", "--threads", "1")
# Commands that start each kind of process, with the optional package that they require.
COMMANDS = [
    (None, ("train", "gymnasium.toml", "--out", "own")),
    (None, ("render", "gymnasium", "--out", "pendulum.gif", "--max-episode-steps", "5")),
    (None, ("inspect", "gymnasium", "--export", "page", "--member", "0:1")),
    ("optuna", ("sweep", "sweep.toml")),
]
OTHERS = [
    (None, ("info",)),
    (None, ("config", "presets")),
    (None, ("config", "show", "gymnasium/config.toml")),
    (None, ("config", "check", "gymnasium/config.toml")),
    (None, ("train", "--resume", "gymnasium", "--set", "training.generations=2")),
    ("ray", ("train", "--resume", "cluster", "--set", "training.generations=2")),
    (None, ("evaluate", "gymnasium", *PLAY)),
    (None, ("render", "plain", "--out", "elite.gif", "--max-episode-steps", "5")),
    (None, ("export", "gymnasium", "--format", "keras")),
    ("brax", ("export", "brax", "--format", "npz")),
    ("huggingface_hub", ("push", "plain", "me/plain")),
    ("huggingface_hub", ("pull", "me/plain")),
    (None, ("plot", "gymnasium", "plain")),
    ("ray", ("cluster", "check", "local")),
    (None, ("bench", "env", *BENCH)),
    (None, ("bench", "rollout", *BENCH)),
    (None, ("bench", "pipeline", *BENCH)),
]
IMPORTS = "import os\nimport neuroevo\nfrom neuroevo.sessions.evaluators import make_evaluator"
WITHOUT_A_SCREEN = ("render", "gymnasium")  # fails if MuJoCo has no rendering library


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """Runs of another user, and the arguments of a command that reads them."""
    folder = tmp_path_factory.mktemp("stranger")
    for name, text in FILES.items():
        write(folder / name, text)
    for name in ("plain", "gymnasium"):
        train(folder / f"{name}.toml", out=folder / name)
    for name, before, change in (
        ("brax", "gymnasium", as_brax),
        ("cluster", "plain", lambda text: text + '[cluster]\naddress = "local"\n'),
    ):
        configure(shutil.copytree(folder / before, folder / name), change)
    return folder


def configure(run, change):
    """Change the configuration in a run's database, which commands read, and in config.toml."""
    with Database(run / DATABASE, "rw") as database:
        about = read_about(database)
        text = change(about.config)
        assert text != about.config
        write_about(database, replace(about, config=text))
    (run / "config.toml").write_text(text)


def as_brax(text):
    """The configuration of the same robot on Brax, which has no workers and no slots."""
    text = text.replace("gymnasium:InvertedPendulum-v5", "brax:inverted_pendulum")
    return text.replace("workers = 1", "").replace("slots = 4", "")


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Folder with a module for each name in Python and installed packages; each module leaves a trace when imported."""
    folder = tmp_path_factory.mktemp("modules") / "hostile"
    folder.mkdir()
    return with_modules(folder)


@pytest.fixture
def hostile(modules, strange):
    """The same folder with the other user's runs, in its initial state."""
    for path in {*modules.iterdir()} - {*modules.glob("*.py")}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in traces(modules).iterdir():
        path.unlink()
    return Path(shutil.copytree(strange, modules, dirs_exist_ok=True))


def with_modules(folder):
    """The folder, with the modules in it."""
    traces(folder).mkdir()
    names = {*sys.stdlib_module_names, *packages_distributions(), "neuroevo", "sitecustomize", "usercustomize"}
    for name in filter(str.isidentifier, names):
        write(folder / f"{name}.py", f"open({str(traces(folder) / name)!r}, 'w').close()\nraise ImportError('hostile')")
    return folder


def traces(folder):
    return folder.with_name("traces")


def imported(folder):
    """The names of the modules that were imported."""
    return sorted(path.name for path in traces(folder).iterdir())


def neuroevo(folder, *words, program=COMMAND, **variables):
    """Run the command in an environment without the variables of these tests."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder.with_name("state")), **variables}
    for name in ("PYTHONPATH", "PYTHONSAFEPATH", "PYGLFW_LIBRARY"):
        environment.pop(name, None)
    return subprocess.run(
        [*program, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=SECONDS,
    )  # fmt: skip


def names_of(command, before=()):
    """Return the names of a command's subcommands, or the command's own name."""
    if hasattr(command, "commands"):
        return {name for each, below in command.commands.items() for name in names_of(below, (*before, each))}
    return {before}


def test_every_command_is_tried():
    assert names_of(typer.main.get_command(app)) <= {words[:size] for _, words in COMMANDS + OTHERS for size in (1, 2)}


@pytest.mark.parametrize(
    ("package", "words"),
    [
        pytest.param(*command, marks=[pytest.mark.thorough] * (command in OTHERS), id=" ".join(command[1]))
        for command in COMMANDS + OTHERS
    ],
)
def test_no_command_imports_a_module_from_the_current_folder(hostile, package, words):
    if package is not None:
        pytest.importorskip(package)
    with local_hub() as hub:
        hub.repositories["me/plain"] = {DATABASE: (hostile / "plain" / DATABASE).read_bytes()}
        access = {"HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HOME": str(hostile.with_name("hf"))}
        done = neuroevo(hostile, *words, **access)
    assert imported(hostile) == []
    assert done.returncode == 0 or words[:2] == WITHOUT_A_SCREEN, done.stderr


def test_nor_does_python_with_a_safe_path(hostile):
    done = neuroevo(hostile, "evaluate", "gymnasium", *PLAY, program=(sys.executable, "-P", "-m", "neuroevo"))
    assert done.returncode == 0, done.stderr
    assert imported(hostile) == []


@pytest.mark.parametrize(
    ("package", "code"),
    [
        (None, "neuroevo.evaluate('gymnasium', episodes=1, max_episode_steps=5)"),
        (None, "neuroevo.open_run('gymnasium').config.environment.frames_per_s"),
        pytest.param("brax", "make_evaluator(neuroevo.open_run('brax').config).close()", marks=pytest.mark.thorough),
        pytest.param("ray", "neuroevo.train('cluster/config.toml', out='new')", marks=pytest.mark.thorough),
    ],
)
def test_nor_does_a_program_elsewhere(hostile, tmp_path, package, code):
    """A worker that was not started by the command, and whose environment does not change."""
    if package is not None:
        pytest.importorskip(package)
    same = "assert 'PYTHONSAFEPATH' not in os.environ"
    script = write(tmp_path / "script.py", f"{IMPORTS}\n{code}\n{same}\n")
    done = neuroevo(hostile, str(script), program=(sys.executable,))
    assert imported(hostile) == []
    assert done.returncode == 0, done.stderr
