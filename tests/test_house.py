"""Who may import whom in Python (the C++ side of the rule is checked beside the C++ tests)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "neuroevo"
ALGORITHMS_MAY_IMPORT = {
    "numpy",
    "pydantic",
    "neuroevo.algorithms",
    "neuroevo.behavior",
    "neuroevo.genome",
    "neuroevo.novelty",
    "neuroevo.optimizers",
    "neuroevo.randomness",
    "neuroevo.ranks",
    "neuroevo.schedules",
    "neuroevo.settings",
}
WITHOUT_TENSORFLOW = ("checkpoint", "checkpoints", "config", "config_files", "config_problems", "config_template")
WITHOUT_TENSORFLOW += ("gymnasium_envs", "gymnasium_spaces", "gymnasium_worker", "hard_maze_tasks", "mujoco_tasks")
WITHOUT_TENSORFLOW += ("changes", "networks", "normalization")
WITHOUT_TENSORFLOW += ("cutoff", "envs", "episodes", "errors", "facts", "files", "genome", "genome_json", "legacy")
WITHOUT_TENSORFLOW += ("metrics", "metrics_files", "optimizers", "presets", "progress", "randomness", "ranks")
WITHOUT_TENSORFLOW += ("run_folder", "run_reader")
WITHOUT_TENSORFLOW += ("schedules", "settings", "state_codec", "statistics", "tensorboard", "train", "warm_start")
STANDARD = {"__future__", "collections", "dataclasses", "typing", "math", "functools", "itertools"}


def imports(path):
    """Dotted names that a file imports anywhere, function bodies included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names if node.module == "neuroevo")


@pytest.mark.parametrize("path", sorted((PACKAGE / "algorithms").glob("*.py")), ids=lambda path: path.stem)
def test_algorithms_know_numpy_only(path):
    for name in imports(path):
        allowed = name.split(".")[0] in STANDARD or any(
            name == known or name.startswith(known + ".") for known in ALGORITHMS_MAY_IMPORT
        )
        assert allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_imports_point_one_way(path):
    names = set(imports(path))
    assert not any(name.split(".")[0] == "experiments" for name in names)
    heavy = {"tensorflow", "neuroevo.ops", "neuroevo.pipeline", "neuroevo.evaluator"}
    if path.stem in WITHOUT_TENSORFLOW or path.parent.name == "algorithms":
        assert not names & heavy
    if path.stem == "ops":
        assert not names & {"neuroevo.pipeline", "neuroevo.evaluator", "neuroevo.train"}
    if path.stem == "pipeline":
        assert not names & {"neuroevo.evaluator", "neuroevo.train"}
    assert "ray" not in names or path.stem == "cluster"
