"""Small runs for tests, and what two runs that did the same have in common."""

import csv
import json

from neuroevo.config.load import make_config
from neuroevo.runs import training_run as run_module
from neuroevo.runs.elites import read_elites
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.paths import METRICS
from tests.support.toy import ToyEvaluator, call_of

TABLES = {
    "env": {"name": "frostbite"},
    "network": {"name": "model"},
    "algorithm": {"name": "ga", "population": 8, "parents": 3, "sigma": 0.2, "validation_candidates": 3},
    "training": {"seed": 4, "generations": 5, "validation_episodes": 2, "test_episodes": 2},
}


CLOCKED = ("steps_per_s", "idle_share")  # besides seconds_*


def count_rows(path):
    """How many generations a run's metrics.jsonl has; 0 before there is one."""
    try:
        return (path / METRICS).read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def config(**changes):
    """A configuration of TABLES with changed keys, such as training={"seed": 5}; a named algorithm comes whole."""
    tables = {name: {**TABLES.get(name, {}), **changes.get(name, {})} for name in {**TABLES, **changes}}
    if "name" in changes.get("algorithm", {}):
        tables["algorithm"] = changes["algorithm"]
    return make_config(tables)


def play(folder, evaluator=None):
    """Trains into an unopened RunFolder until its budget is spent."""
    with folder.open(["test"]):
        return run_module.run(folder.config, evaluator or ToyEvaluator(), folder)


def train(folder):
    """The same with the real evaluator of its configuration."""
    evaluator = run_module.make_evaluator(folder.config, folder.reference_batch)
    try:
        return play(folder, evaluator)
    finally:
        evaluator.close()


def new_run(path, evaluator=None, **changes):
    """A run from its start."""
    return play(RunFolder.create(path, config(**changes)), evaluator)


def interrupted_run(path, finished, **changes):
    """The path of a run that was interrupted in the generation after this number of finished ones."""
    try:
        new_run(path, ToyEvaluator(interrupt_at=call_of(finished, "validation")), **changes)
    except KeyboardInterrupt:
        return path
    raise AssertionError("the run was not interrupted")


def checkpoint_after(path, finished):
    """The file of a run's checkpoint after this generation."""
    return path / "checkpoints" / f"generation-{finished:06d}.ckpt"


def checkpoints_of(path):
    """How many generations are finished in each checkpoint of a run; nothing else is in their folder."""
    files = sorted((path / "checkpoints").iterdir())
    finished = [int(file.name.removeprefix("generation-").removesuffix(".ckpt")) for file in files]
    assert files == [checkpoint_after(path, number) for number in finished]
    return finished


def contents(folder):
    """What is in every file below the folder."""
    return {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def timeless(row):
    """A row without what depends on the clock."""
    return {key: value for key, value in row.items() if not key.startswith("seconds") and key not in CLOCKED}


def results(path):
    """Everything of a run that must not depend on when and where it was interrupted."""
    rows = [timeless(row) for row in read_rows(path)]
    with (path / "metrics.csv").open(newline="") as file:
        names, *lines = csv.reader(file, strict=True)
    cells = [timeless(dict(zip(names, line, strict=True))) for line in lines]
    newest = max((path / "checkpoints").glob("*.ckpt"))
    _, body, arrays = newest.read_bytes().split(b"\n", 2)
    body = json.loads(body)
    loop = ("generation", "max_episode_steps", "steps", "algorithm", "pending", "observation_statistics")
    state = {**{key: body[key] for key in (*loop, "genomes", "origin")}, "arrays": arrays}
    return {"rows": rows, "csv": cells, "elites": read_elites(path), "newest": newest.name, "state": state}
