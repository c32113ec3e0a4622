"""Trainable: a run folder and its pipeline as a trial of Ray Tune, here without a cluster."""

import csv

import pytest

pytest.importorskip("ray.tune")

from neuroevo.analysis.evaluation import evaluate_run  # noqa: E402 (Ray may be missing)
from neuroevo.core.errors import UserError  # noqa: E402
from neuroevo.core.problems import ConfigError  # noqa: E402
from neuroevo.runs.reader import RunReader  # noqa: E402
from neuroevo.sweeps import Trainable  # noqa: E402
from neuroevo.sweeps.tune.trial_folder import folders  # noqa: E402
from neuroevo.system.toml import tomllib  # noqa: E402
from tests.support.databases import info_of  # noqa: E402
from tests.support.runs import read_rows, timeless  # noqa: E402
from tests.support.sweeps import FROSTBITE, PENDULUM  # noqa: E402

FROSTBITE, PENDULUM = tomllib.loads(FROSTBITE), tomllib.loads(PENDULUM)
ONE = {"training.test_episodes": 0}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes trials by number, with values; all are cleaned up."""
    monkeypatch.setenv("TUNE_ORIG_WORKING_DIR", ".")
    made = []

    def trial(number=0, tables=PENDULUM, **values):
        made.append(Trainable(of(number, tables, **values)))
        return made[-1]

    def of(number=0, tables=PENDULUM, **values):
        changed = {key.replace("__", "."): value for key, value in values.items()}
        return {"config": tables, "out": str(tmp_path), "trial": {"number": number, **changed}}

    trial.of = of
    yield trial
    for each in made:
        each.stop()


def test_results_are_the_rows_of_its_run(make, tmp_path):
    trial = make(training__seed=5, algorithm__sigma=0.5)
    results = [trial.train() for _ in range(3)]
    assert [result["training_iteration"] for result in results] == [1, 2, 3]
    assert [result["done"] for result in results] == [False, False, True] == [each["finished"] for each in results]
    path = tmp_path / "trial-00000"
    assert {result["folder"] for result in results} == {str(path)}
    with (path / "metrics.csv").open(newline="") as file:
        columns = next(csv.reader(file))
    rows = read_rows(path)
    for result, row in zip(results, rows, strict=True):
        assert set(columns) <= set(result)
        known = {key: value for key, value in timeless(row).items() if not key.startswith(("test_", "fitness"))}
        known = {key: value for key, value in known.items() if not key.endswith("_test")}
        assert known == {key: result[key] for key in known}
    assert results[-1]["test_mean"] == rows[-1]["test_mean"]
    reader = RunReader(path)
    assert reader.config.training.seed == 5 and reader.config.algorithm.sigma == 0.5


def test_a_trial_goes_on_from_its_own_folder(make, tmp_path):
    first = make()
    first.train()
    first.stop()
    again = make()
    assert [again.train()["training_iteration"] for _ in range(2)] == [2, 3]
    info = info_of(tmp_path / "trial-00000")
    assert len(info["resumed"]) == 1 and info["parameters"] > 0 and info["device"] == "cpu"
    over = make()
    again.stop()
    result = over.train()
    assert result["done"] and result["generation"] == 2 and result["validation_mean"] is not None


@pytest.mark.parametrize(("tables", "same"), [(PENDULUM, True), (FROSTBITE, False)])
def test_a_process_keeps_its_pipeline_for_trials_that_play_the_same(make, tables, same, tmp_path):
    trial = make()
    trial.train()
    before = trial._evaluator
    assert trial.reset(make.of(1, tables, algorithm__sigma=0.7))
    assert trial.train()["folder"] == str(tmp_path / "trial-00001")
    assert (trial._evaluator is before) == same
    assert RunReader(tmp_path / "trial-00001").config.algorithm.sigma == 0.7


def test_a_trial_goes_on_as_a_fork_of_another(make, tmp_path):
    donor, other = make(0, training__seed=1), make(1, training__seed=2)
    donor.train(), donor.train(), other.train()
    donor.save(str(tmp_path / "checkpoint"))
    donor.train()  # meanwhile the donor goes on
    assert other.reset(make.of(1, training__seed=2, algorithm__sigma=0.9))
    other.load_checkpoint(str(tmp_path / "checkpoint"))
    result = other.train()
    assert result["training_iteration"] == 3 and result["done"]
    first, fork = folders(tmp_path / "trial-00001")
    assert result["folder"] == str(fork)
    info = info_of(fork)
    assert info["seed"] == 2 and info["forked_from"]["path"] == str(tmp_path / "trial-00000")
    assert info["forked_from"]["generation"] == 2
    assert info["forked_from"]["changes"]["algorithm.sigma"][1] == 0.9
    donors, forks = read_rows(tmp_path / "trial-00000"), read_rows(fork)
    same = [row["fitness"] == donor["fitness"] for row, donor in zip(forks, donors, strict=True)]
    assert same == [True, True, False]
    assert evaluate_run(fork, episodes=2).summary.n == 2
    assert len(read_rows(first)) <= 1


def test_a_checkpoint_of_its_own_is_gone_on_from_in_its_own_folder(make, tmp_path):
    trial = make(algorithm__sigma=0.5)
    trial.train()
    trial.save(str(tmp_path / "checkpoint"))
    trial.train()
    trial.reset(make.of(0, algorithm__sigma=0.5))
    trial.load_checkpoint(str(tmp_path / "checkpoint"))
    assert trial.train()["training_iteration"] == 3  # its newest one is newer
    assert folders(tmp_path / "trial-00000") == [tmp_path / "trial-00000"]


def test_a_fork_that_was_begun_before_a_crash_is_gone_on_with(make, tmp_path):
    donor = make(0)
    donor.train()
    donor.save(str(tmp_path / "checkpoint"))
    for _ in range(2):
        other = make(1, algorithm__sigma=0.9)
        other.load_checkpoint(str(tmp_path / "checkpoint"))
        other.train()
        other.stop()
    assert folders(tmp_path / "trial-00001") == [tmp_path / "trial-00001"]
    assert len(read_rows(tmp_path / "trial-00001")) == 3


def test_an_environment_cannot_change_in_a_fork(make, tmp_path):
    donor = make(0)
    donor.train()
    donor.save(str(tmp_path / "checkpoint"))
    other = make(1, network__hidden=[8])
    with pytest.raises(ConfigError) as raised:
        other.load_checkpoint(str(tmp_path / "checkpoint"))
    assert [problem.key for problem in raised.value.problems] == ["network.hidden"]


def test_keys_beside_each_other_and_what_is_wrong_with_them(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNE_ORIG_WORKING_DIR", ".")
    trial = Trainable({"config": "inverted_pendulum", "out": str(tmp_path), "algorithm.sigma": 0.25})
    assert trial._wanted.algorithm.sigma == 0.25
    with pytest.raises(ConfigError) as raised:
        Trainable({"config": "inverted_pendulum", "out": str(tmp_path), "algorithm.sgima": 0.25})
    assert [problem.key for problem in raised.value.problems] == ["algorithm.sgima"]
    with pytest.raises(UserError, match="out"):
        Trainable({"config": "inverted_pendulum"})
