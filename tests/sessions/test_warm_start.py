"""training.start_from: a new run that starts with the elite and the parents of another run."""

import shutil

import pytest

from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import read_elites
from tests.support.runs import config, interrupted_run, new_run, play
from tests.support.toy import ToyEvaluator


def test_a_warm_start(tmp_path):
    new_run(tmp_path / "first")
    best = RunReader(tmp_path / "first").state().algorithm
    toy = ToyEvaluator()
    new_run(tmp_path / "second", toy, training={"start_from": str(tmp_path / "first"), "seed": 9, "generations": 2})
    assert toy.played(0, "validation")[0].genome == best.elite
    assert {episode.genome.parent for episode in toy.played(0, "population")} <= set(best.parents)
    shutil.rmtree(tmp_path / "first")  # the database has what a resumed run needs
    play(RunFolder.resume(tmp_path / "second", ["training.generations=3"]))
    assert len(read_elites(tmp_path / "second")) == 3


def make_nothing(path):
    pass


def make_a_run_without_a_generation(path):
    interrupted_run(path, 0)


def make_a_run_of_another_network(path):
    new_run(path, network={"name": "large_model"})


def make_a_run_of_other_networks(path):
    evolved = {"name": "regularized_evolution", "population": 6, "offspring": 6, "validation_candidates": 2}
    new_run(path, algorithm=evolved)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (make_nothing, "no run"),
        (make_a_run_without_a_generation, "no checkpoint after a finished generation"),
        (make_a_run_of_another_network, "large_model, this run's is model"),
        (make_a_run_of_other_networks, "their own networks, which ga does not support"),
    ],
)
def test_what_one_cannot_start_from(tmp_path, make, expected):
    path = tmp_path / "first"
    make(path)
    with pytest.raises(ConfigError) as raised:
        RunFolder.create(tmp_path / "second", config(training={"start_from": str(path)}))
    [problem] = raised.value.problems
    assert (problem.key, problem.value) == ("training.start_from", str(path))
    assert expected in problem.reason
