"""Small runs with real episodes, for tests of the page."""

import shutil
from dataclasses import replace

import pytest

from neuroevo.inspector.inspection import Inspection
from neuroevo.runs.about import read_about, write_about
from neuroevo.runs.database import DATABASE, Database
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import change
from tests.support.runs import config, train

MAZE = {"name": "hard_maze", "options": {"max_episode_steps": 60}}
MLP = {"name": "mlp", "hidden": [4]}
NOVELTY = {"name": "ga_ns", "population": 30, "parents": 4, "sigma": 0.3, "k": 5, "archive_probability": 0.1}
NOVELTY["validation_candidates"] = 2
TRAINING = {"seed": 1, "generations": 6, "validation_episodes": 1, "test_episodes": 1}


def played(path, **changes):
    """Train a run with the real evaluator; return its path."""
    train(RunFolder.create(path, config(**changes)))
    return path


def configured(run, path, *changes):
    """Copy a run and replace texts in its configuration, given as pairs (old, new)."""
    shutil.copytree(run, path)
    with Database(path / DATABASE, "rw") as database:
        about = read_about(database)
        text = about.config
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        info = {key: value for key, value in about.info.items() if key != "resumed"}
        write_about(database, replace(about, config=text, info=info))
    return path


def shortened(run, path, generations, resumed=0):
    """Copy the state of a run's database after `generations` generations to a folder, replacing its database."""
    path.mkdir(exist_ok=True)
    if path != run:
        shutil.copy(run / DATABASE, path)
    for table in ("members", "populations", "generations"):
        change(path, f"DELETE FROM {table} WHERE generation >= ?", generations)
    for _ in range(resumed):
        session = "generation, process, info, seconds, ended"
        change(path, f"INSERT INTO sessions ({session}) SELECT {session} FROM sessions LIMIT 1")
    return path


@pytest.fixture(scope="session")
def maze(tmp_path_factory):
    """Novelty search in the maze."""
    path = tmp_path_factory.mktemp("inspected") / "maze"
    return played(path, env=MAZE, network=MLP, algorithm=NOVELTY, training=TRAINING)


@pytest.fixture(scope="session")
def es(tmp_path_factory):
    """Evolution strategies in the maze, with the last two states."""
    path = tmp_path_factory.mktemp("inspected") / "es"
    algorithm = {"name": "es", "population": 8, "sigma": 0.1}
    return played(path, env=MAZE, network=MLP, algorithm=algorithm, training=TRAINING)


@pytest.fixture(scope="session")
def atari(tmp_path_factory):
    """A genetic algorithm on an Atari game, with its RAM as behavior."""
    path = tmp_path_factory.mktemp("inspected") / "atari"
    training = {"generations": 3, "max_episode_steps": 40, "validation_episodes": 1, "test_episodes": 1}
    return played(path, training=training)


@pytest.fixture
def maze_page(maze):
    """The inspection of the maze's run."""
    with Inspection([maze]) as inspection:
        yield inspection
