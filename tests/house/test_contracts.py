"""Import rules of Python: the contracts of pyproject.toml hold, and violations are detected."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITH_TENSORFLOW = ("benchmarks.", "rollout.", "tf")  # rooms whose modules may import it when they are imported
ALGORITHM = "algorithms/ga.py"
# An editable install of the package may have put a finder of its own before sys.path: the copy must be found first.
LINT = """
import sys
from importlib.machinery import PathFinder
sys.path.insert(0, ".")
sys.meta_path.insert(0, PathFinder)
from importlinter.cli import lint_imports_command
lint_imports_command()
"""


def lint(folder):
    """Check the contracts of the pyproject.toml in a folder for the package in the same folder."""
    command = [sys.executable, "-c", LINT, "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Provide a copy of the package's Python files and of the contracts, to insert imports."""
    folder = tmp_path_factory.mktemp("house")
    without = shutil.ignore_patterns("_lib", "__pycache__", "*.toml", "*.txt")
    shutil.copytree(ROOT / "neuroevo", folder / "neuroevo", ignore=without)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_contracts_hold(package):
    done = lint(package)
    assert done.returncode == 0, done.stdout + done.stderr


PLANTED = [  # imports, and what is said of each
    ("core/genome.py", "from neuroevo.system import files", "neuroevo.core.genome -> neuroevo.system.files"),
    (ALGORITHM, "from neuroevo.runs import paths", "neuroevo.algorithms.ga -> neuroevo.runs.paths"),
    (ALGORITHM, "def lazily():\n    import gymnasium", "neuroevo.algorithms.ga -> gymnasium"),
    (
        "training/loop.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from neuroevo.rollout import evaluator",
        "neuroevo.training.loop -> neuroevo.rollout.evaluator",
    ),
    ("training/loop.py", "from neuroevo.algorithms import es", "neuroevo.training.loop -> neuroevo.algorithms.es"),
    ("rollout/evaluator.py", "from neuroevo.config import schema", "neuroevo.rollout.evaluator"),
    (
        "inspector/rows.py",
        "from neuroevo.sessions import folder",
        "neuroevo.inspector.rows -> neuroevo.sessions.folder",
    ),
    ("runs/reader.py", "def lazily():\n    import tensorflow", "neuroevo.runs.reader -> tensorflow"),
    ("sweeps/driver.py", "def lazily():\n    import ray", "neuroevo.sweeps.driver -> ray"),
    ("inspector/sweep_trials.py", "def lazily():\n    import optuna", "neuroevo.inspector.sweep_trials -> optuna"),
]


def test_planted_imports_and_a_package_without_a_place_break_them(package):
    before = {file: (package / "neuroevo" / file).read_text() for file, _, _ in PLANTED}
    for file, line, _ in PLANTED:
        with (package / "neuroevo" / file).open("a") as code:
            code.write(f"\n\n{line}\n")
    attic = package / "neuroevo" / "attic"
    attic.mkdir()
    (attic / "__init__.py").touch()
    try:
        done = lint(package)
    finally:
        shutil.rmtree(attic)
        for file, text in before.items():
            (package / "neuroevo" / file).write_text(text)
    assert done.returncode == 1
    found = done.stdout.replace("(l.", " (l.")
    assert [broken for _, _, broken in PLANTED if broken not in found] == [], done.stdout
    assert "attic" in done.stdout


def test_importing_a_module_imports_no_tensorflow():
    """Contracts check import statements; this test checks all transitive imports."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "neuroevo").rglob("*.py")]
    names = sorted(name.removesuffix(".__init__") for name in names if not name.endswith("__main__"))
    without = [name for name in names if not name.removeprefix("neuroevo.").startswith(WITH_TENSORFLOW)]
    assert len(without) > 60
    program = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
    program += "    assert 'tensorflow' not in sys.modules, name"
    subprocess.run([sys.executable, "-c", program, *without], cwd=ROOT, check=True, timeout=120)
