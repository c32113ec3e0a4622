"""A sweep's file: what it says, and everything that is wrong with it before a trial starts."""

import json
from pathlib import Path

import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.problems import NO_VALUE, ConfigError
from neuroevo.sweeps.tune import tuner
from neuroevo.sweeps.tune.points import SEED, trial_seed
from neuroevo.sweeps.tune.sweep import load_sweep
from tests.support.sweeps import SIGMA, load, write

EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "sweeps").glob("*.toml"))


def problems(folder, text, space=SIGMA, **options):
    with pytest.raises(ConfigError) as raised:
        load(folder, text, space, **options)
    return [(problem.key, problem.value) for problem in raised.value.problems]


def keys(*arguments, **options):
    return {key for key, _ in problems(*arguments, **options)}


def test_a_random_search(tmp_path):
    sweep = load(tmp_path, "trials = 3\nseed = 7")
    assert sweep.out == tmp_path / "out" and sweep.metric == "validation_mean" and sweep.trials == 3
    assert [values[SEED] for values in sweep.points] == [trial_seed(7, number) for number in range(3)]
    assert len({values["algorithm.sigma"] for values in sweep.points}) == 3


def test_a_grid(tmp_path):
    sweep = load(tmp_path, 'search = "grid"', '"algorithm.population" = [4, 6]\nnetwork.hidden = [[4], [4, 4]]')
    assert sweep.trials == 4
    assert [values["network.hidden"] for values in sweep.points] == [[4], [4, 4]] * 2


def test_optuna_chooses_as_it_goes(tmp_path):
    sweep = load(tmp_path, 'trials = 5\nsearch = "optuna"')
    assert sweep.points is None and sweep.trials == 5


def test_a_seed_that_the_sweep_itself_sets_is_that_of_all_trials(tmp_path):
    sweep = load(tmp_path, 'trials = 2\nset = ["training.seed=3"]')
    assert sweep.tables["training"]["seed"] == 3 and all(SEED not in values for values in sweep.points)
    sweep = load(tmp_path, 'search = "grid"', '"training.seed" = [3, 4]')
    assert [values[SEED] for values in sweep.points] == [3, 4]


def test_changes_and_threads(tmp_path):
    sweep = load(tmp_path, "trials = 1\nconcurrent = 2", overrides=["training.generations=9"])
    assert sweep.tables["training"]["generations"] == 9
    assert "hardware" not in sweep.tables  # the pipeline that trials share has all threads
    own = load(tmp_path, "trials = 1\nconcurrent = 2\nshared = false")
    assert own.tables["hardware"]["threads"] >= 1
    vbn = load(tmp_path, 'config = "frostbite.toml"\ntrials = 1', overrides=["network.name=virtual_bn"])
    assert vbn.settings.shared is False  # every trial has statistics of its own
    assert load(tmp_path, "trials = 1", concurrent=2).settings.concurrent == 2
    assert load(tmp_path, 'trials = 1\nconcurrent = 2\nset = ["hardware.threads=3"]').tables["hardware"] == {
        "threads": 3
    }


def test_the_default_metric_is_known_at_once(tmp_path):
    text = 'trials = 1\nconfig = "es_inverted_pendulum"'
    assert load(tmp_path, text).metric == "fitness_mean"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("trials = 1\nserach = 1", "sweep.serach", 1),
        ('trials = 1\nsearch = "bayes"', "sweep.search", "bayes"),
        ('trials = 1\nscheduler = "hyperband"', "sweep.scheduler", "hyperband"),
        ("trials = 0", "sweep.trials", 0),
        ('trials = 1\nmetric = "validation_men"', "sweep.metric", "validation_men"),
        ('trials = 1\nmetric = "test_mean"', "sweep.metric", "test_mean"),
        ('trials = 1\nmetric = "fitness"', "sweep.metric", "fitness"),
        ('trials = 1\nconfig = "es_inverted_pendulum"\nmetric = "validation_mean"', "sweep.metric", "validation_mean"),
        ('trials = 1\ntime = "test_mean"', "sweep.time", "test_mean"),
        ('trials = 9\nsearch = "grid"', "sweep.trials", 9),
        ('trials = 1\nscheduler = "asha"\nasha = {max_t = 10, grace_period = 20}', "sweep.asha.grace_period", 20),
        ('trials = 1\nscheduler = "pbt"\npbt = {quantile_fraction = 0.7}', "sweep.pbt.quantile_fraction", 0.7),
        ('trials = 1\nscheduler = "pbt"\nsearch = "optuna"\ntime = "generation"', "sweep.search", "optuna"),
        ('trials = 1\nset = ["cluster.address=auto"]', "cluster.address", "auto"),
    ],
)
def test_what_is_wrong_with_the_sweep(tmp_path, text, key, value):
    space = '"algorithm.population" = [4, 6]' if "grid" in text else SIGMA
    assert (key, value) in problems(tmp_path, text, space)


def test_what_is_missing(tmp_path):
    assert keys(tmp_path, "") == {"sweep.trials"}
    assert "sweep.asha.max_t" in keys(tmp_path, 'trials = 1\nscheduler = "asha"')
    assert "sweep.pbt.perturbation_interval" in keys(tmp_path, 'trials = 1\nscheduler = "pbt"')
    assert "sweep.space" in keys(tmp_path, "trials = 1", "")


@pytest.mark.parametrize(
    ("space", "key", "value"),
    [
        ('"algorithm.sgima" = [0.1]', "algorithm.sgima", 0.1),
        ('"algoritm.sigma" = [0.1]', "algoritm", NO_VALUE),
        ('"sigma" = [0.1]', "sigma", 0.1),
        ('"algorithm.sigma" = {uniform = [-1, 1]}', "algorithm.sigma", -1.0),
        ('"algorithm.sigma" = 0.1', "sweep.space.algorithm.sigma", 0.1),
        ('"network.hidden" = [[4], "large"]', "network.hidden", "large"),
    ],
)
def test_what_is_wrong_with_the_space(tmp_path, space, key, value):
    assert (key, value) in problems(tmp_path, "trials = 2", space)


def test_a_key_that_set_has_too(tmp_path):
    assert "sweep.space.algorithm.sigma" in keys(tmp_path, 'trials = 1\nset = ["algorithm.sigma=1"]')


@pytest.mark.parametrize("key", ["network.hidden", "env.options.frame_skip"])
def test_what_pbt_cannot_change(tmp_path, key):
    text = 'trials = 2\nscheduler = "pbt"\ntime = "generation"'
    config, values = ("pendulum", "[[4], [8]]") if key == "network.hidden" else ("frostbite", "[4, 2]")
    assert f"sweep.space.{key}" in keys(tmp_path, f'config = "{config}.toml"\n{text}', f'"{key}" = {values}')


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_begun(path, tmp_path):
    assert load_sweep(path, out=tmp_path).trials > 1


def test_all_problems_are_told_at_once(tmp_path):
    found = keys(tmp_path, 'metric = "x"\nscheduler = "asha"', '"algorithm.sigma" = [-1]\n"network.name" = ["modle"]')
    assert {"sweep.trials", "sweep.metric", "sweep.asha.max_t", "algorithm.sigma", "network.name"} <= found


def test_no_such_file_or_configuration(tmp_path):
    with pytest.raises(UserError, match="nothing.toml"):
        load_sweep(tmp_path / "nothing.toml")
    with pytest.raises(UserError, match="pendulm"):
        load(tmp_path, 'config = "pendulm"\ntrials = 1')


@pytest.mark.parametrize("missing", ["ray", "optuna"])
def test_without_ray_one_line_names_the_extra(tmp_path, missing, monkeypatch):
    find = tuner.importlib.util.find_spec
    monkeypatch.setattr(tuner.importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    sweep = load(tmp_path, 'trials = 1\nsearch = "optuna"')
    with pytest.raises(UserError, match=missing) as raised:
        tuner.run_sweep(sweep)
    assert "neuroevo[sweep]" in str(raised.value) and "\n" not in str(raised.value)
    assert not sweep.out.exists()


def test_a_folder_is_of_one_sweep(tmp_path):
    sweep = load(tmp_path, "trials = 3")
    sweep.out.mkdir()
    tuner.check_same(sweep)
    before = json.loads((sweep.out / tuner.SWEEP).read_text())
    tuner.check_same(load(tmp_path, "trials = 3\nconcurrent = 2"))
    assert json.loads((sweep.out / tuner.SWEEP).read_text()) == before
    population = 'trials = 3\nset = ["algorithm.population=6"]'
    for text, key in (("trials = 4", "trials"), ("trials = 3\nseed = 1", "seed"), (population, "config")):
        with pytest.raises(ConfigError) as raised:
            tuner.check_same(load(tmp_path, text))
        assert [problem.key for problem in raised.value.problems] == [f"sweep.{key}"]


def test_the_default_folder_is_named_after_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_sweep(write(tmp_path, "trials = 1")).out == tmp_path / "runs" / "sweep"
