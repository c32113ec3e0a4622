"""Small runs for tests, and what two runs that did the same have in common."""

import csv

from neuroevo.config.load import make_config
from neuroevo.runs.database import DATABASE
from neuroevo.sessions import evaluators
from neuroevo.sessions import training_run as run_module
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import (  # noqa: F401 (tests of runs need these, too)
    CLOCKED,
    checkpoints_of,
    count_rows,
    database_contents,
    dump,
    read_elites,
    read_rows,
    states_of,
    timeless,
)
from tests.support.toy import ToyEvaluator, call_of

TABLES = {
    "env": {"name": "frostbite"},
    "network": {"name": "model"},
    "algorithm": {"name": "ga", "population": 8, "parents": 3, "sigma": 0.2, "validation_candidates": 3},
    "training": {"seed": 4, "generations": 5, "validation_episodes": 2, "test_episodes": 2},
}


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
    evaluator = evaluators.make_evaluator(folder.config, folder.reference_batch)
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


def contents(folder):
    """Return the contents of all files below the folder; for databases, which must not be open, all rows."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {file: dump(file.parent) if file.name == DATABASE else file.read_bytes() for file in files}


def results(path):
    """Everything of a run that must not depend on when and where it was interrupted."""
    with (path / "metrics.csv").open(newline="") as file:
        names, *lines = csv.reader(file, strict=True)
    cells = [timeless(dict(zip(names, line, strict=True))) for line in lines]
    found = database_contents(path)
    assert (found["broken references"], found["damage"]) == ([], [("ok",)])
    del found["config"]  # budgets and hardware, too; origin has what results depend on
    found["centers"] = [name for name, _ in found["centers"]]  # weights are of those that the kept states have
    states = states_of(path, pending=True)
    newest = max(states)
    return {**found, "states": {newest: states[newest]}, "csv": cells}
