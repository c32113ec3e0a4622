"""Members of a generation and their behaviors, from stored data and from replayed episodes."""

import numpy as np
import pytest

import neuroevo
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.core.behavior import Behavior
from neuroevo.core.errors import UserError
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.members import fitness_of, write_members
from tests.support.runs import TABLES as ATARI
from tests.support.runs import config

GOAL = 31, 20  # in the hard maze
MAZE = {
    "env": {"name": "hard_maze", "options": {"max_episode_steps": 60}},
    "network": {"name": "mlp", "hidden": [4]},
    "training": {"seed": 1, "generations": 3, "test_episodes": 2},
    "checkpoints": {"keep_last": 4},
}
GA = {"name": "ga", "population": 10, "parents": 4, "sigma": 0.5}
NOVELTY = {**GA, "name": "ga_ns", "trajectory_every": 20, "trajectory_samples": 3}
ES = {"name": "es", "population": 8, "sigma": 0.05}


@pytest.mark.parametrize("episodes", [1, 3])
def test_they_are_what_novelty_search_was_told(tmp_path, monkeypatch, episodes):
    made = neuroevo.make_config({**MAZE, "algorithm": NOVELTY}, {"training.episodes": episodes})
    told, tell = [], type(made.algorithm).tell
    monkeypatch.setattr(
        type(made.algorithm), "tell", lambda self, state, *more: told.append(more[0]) or tell(self, state, *more)
    )
    run = neuroevo.train(made, out=tmp_path / "run")
    for generation, played in enumerate(told):
        population = run.population(generation, behaviors=True)
        assert population.genomes == played.genomes and population.behaviors.shape == (len(played.genomes), 6)
        np.testing.assert_array_equal(population.behaviors, played.behaviors)
    assert run.population().behaviors is None


def test_without_novelty_they_are_where_episodes_ended(tmp_path):
    run = neuroevo.train({**MAZE, "algorithm": GA}, out=tmp_path / "run")
    population = run.population(1, behaviors=True)
    distance = np.hypot(*(population.behaviors - GOAL).T)
    np.testing.assert_allclose(-population.fitness, distance, atol=1e-3)
    path = run.population(1, behaviors=Behavior(every=30, samples=2)).behaviors
    np.testing.assert_array_equal(path[:, 2:], population.behaviors)  # after 60 steps, where episodes are cut off


@pytest.mark.parametrize("algorithm", [GA, NOVELTY], ids=["ga", "ga_ns"])
def test_what_is_kept_is_what_is_played_again(tmp_path, algorithm):
    kept, again = (
        neuroevo.train({**MAZE, "algorithm": algorithm}, {"logging.members_megabytes": size}, out=tmp_path / f"{size}")
        for size in (1, 0)
    )
    for generation in range(3):
        mine, theirs = (run.population(generation, behaviors=True) for run in (kept, again))
        assert mine.genomes == theirs.genomes
        for what in ("fitness", "behaviors"):
            one, other = getattr(mine, what), getattr(theirs, what)
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


def test_observations_are_normalized_as_they_were(tmp_path):
    tables = {
        "env": {"name": "Swimmer-v5", "options": {}},
        "network": {"name": "mlp", "hidden": [4], "normalize_observations": True},
        "algorithm": ES,
        "training": {"seed": 2, "generations": 3, "max_episode_steps": 50, "test_episodes": 0},
        "checkpoints": {"keep_last": 4},
    }
    run = neuroevo.train(tables, out=tmp_path / "run")
    ends = [run.population(generation, behaviors=True).behaviors for generation in range(3)]
    assert all(each.shape == (len(ends[0]), 2) and np.isfinite(each).all() for each in ends)
    assert len(np.unique(np.concatenate(ends), axis=0)) > len(ends[0])


def test_atari_ends_in_128_bytes_of_ram(tmp_path):
    made = config(training={"generations": 1, "max_episode_steps": 30})
    run = neuroevo.train(made, out=tmp_path / "run")
    ram = run.population(behaviors=True).behaviors
    assert ram.shape == (ATARI["algorithm"]["population"], 128) and set(np.unique(ram)) <= set(range(256))


def test_what_cannot_be_known_is_said(tmp_path):
    played_again = {"training.generations": 1, "logging.members_megabytes": 0}
    run = neuroevo.train({**MAZE, "algorithm": GA}, played_again, out=tmp_path / "run")
    genomes = run.population().genomes
    with Database(run.path / DATABASE, "rw") as database:  # like a machine whose episodes differ
        fitness = fitness_of(database, 0, 1)[0] + (np.arange(10) == 3)
        database.execute("DELETE FROM members")
        database.execute("DELETE FROM populations")
        write_members(
            database, 0, EvaluatedPopulation(genomes, fitness, 0), np.zeros(10, int), None, None, behaviors=False
        )
    with pytest.raises(UserError, match="member 3 of generation 0"):
        run.population(behaviors=True)
    assert len(run.population().genomes) == 10
    tables = {**MAZE, "env": {"name": "gymnasium:CartPole-v1"}, "algorithm": GA}
    cart = neuroevo.train(tables, {"training.generations": 1, "training.max_episode_steps": 5}, out=tmp_path / "cart")
    with pytest.raises(UserError, match="behavior"):
        cart.population(behaviors=True)
