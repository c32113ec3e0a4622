"""Real runs, resumed with other numbers of threads, lanes, slots and processes, match an uninterrupted run."""

from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, results, train

CHANGES = {
    "algorithm": {"sigma": 0.01},
    "training": {"max_episode_steps": 60, "test_episodes": 0, "generations": 4},
    "hardware": {"threads": 1, "lanes": 1, "slots": 1},
}


def test_on_other_hardware(tmp_path):
    train(RunFolder.create(tmp_path / "whole", config(**CHANGES)))
    short = {**CHANGES, "training": {**CHANGES["training"], "generations": 2}}
    train(RunFolder.create(tmp_path / "run", config(**short)))
    hardware = ["hardware.threads=2", "hardware.lanes=2", "hardware.slots=3"]
    train(RunFolder.resume(tmp_path / "run", ["training.generations=4", *hardware]))
    whole = results(tmp_path / "whole")
    assert results(tmp_path / "run") == whole
    assert len({row["fitness_mean"] for row in whole["rows"]}) > 1


def test_with_other_workers(tmp_path):
    """The number of processes of a Gymnasium environment, and their timeout."""
    table = {"name": "gymnasium:tests.support.gymnasium_toys:ToyTuple-v0", "options": {"workers": 1}}
    short = {**CHANGES, "env": table, "network": {"name": "mlp", "hidden": [4]}}
    train(RunFolder.create(tmp_path / "whole", config(**short)))
    short["training"] = {**CHANGES["training"], "generations": 2}
    train(RunFolder.create(tmp_path / "run", config(**short)))
    others = ["hardware.slots=3", "env.options.workers=3", "env.options.timeout=100"]
    train(RunFolder.resume(tmp_path / "run", ["training.generations=4", *others]))
    assert results(tmp_path / "run") == results(tmp_path / "whole")
