"""Other implementations in a sweep: a made-up one, neuroevo's own lanes, and real Brax and evosax."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import neuroevo
from experiments.peers import brax_model, gymnasium_model
from experiments.peers.differences import page
from experiments.peers.experiment import Experiment
from neuroevo.config.load import load_config, make_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.sweeps.executors import Processes
from neuroevo.sweeps.implementations import Reporter, rows_in
from neuroevo.sweeps.report import write_report
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.study import Study
from tests.support.sweeps import load, run_toy_processes, table

MADE_UP, BROKEN = "tests.support.implementation:made_up", "tests.support.implementation:broken"
BOTH = f'configs = ["ga.toml"]\nimplementations = ["neuroevo", "{MADE_UP}"]\n'


def report_of(sweep):
    study = Study(sweep.out)
    return write_report(sweep, [status_of(sweep, trial) for trial in study.trials(sweep)], study)


def test_both_are_in_the_tables_and_finished_ones_are_not_trained_again(tmp_path):
    sweep = load(tmp_path, BOTH)
    _, trials = run_toy_processes(sweep)
    assert [(trial.label, trial.status) for trial in trials] == [("ga", "finished"), ("ga-made_up", "finished")]
    for trial in trials:
        folder = sweep.out / trial.folder
        assert rows_in(folder, -1) == rows_in(folder)[-1:] == rows_in(folder, 2)
    report_of(sweep)
    rows = {row["config"]: row for row in table(sweep.out / "table.csv", without=())}
    assert float(rows["ga-made_up"]["score_mean"]) == pytest.approx(np.random.default_rng(0).normal(size=3)[-1])
    assert (rows["ga-made_up"]["finished"], rows["ga-made_up"]["frames_mean"]) == ("1", "45.0")
    assert float(rows["ga-made_up"]["steps_per_s"]) > 0 and float(rows["ga"]["steps_per_s"]) > 0
    assert (sweep.out / "curves.png").stat().st_size > 500
    listener, _ = run_toy_processes(load(tmp_path, BOTH))
    assert listener.events == []
    grown = load(tmp_path, BOTH + 'set = ["training.generations=5"]')
    listener, trials = run_toy_processes(grown)
    assert [trial.status for trial in trials] == ["finished"] * 2
    assert sorted(listener.events)[-1] == ("started", 1)  # from nothing: notes.txt is gone, see made_up
    assert [len(status_of(grown, trial).rows) for trial in trials] == [5] * 2


def test_failures_are_reported(tmp_path):
    sweep = load(tmp_path, f'configs = ["ga.toml"]\nimplementations = ["{BROKEN}"]\nseeds = 4')
    _, trials = run_toy_processes(sweep)
    reasons = [trial.reason for trial in trials]
    assert {trial.status for trial in trials} == {"failed"}
    assert reasons[0] == "ended without an error, but its budget is not spent"
    assert "ValueError: no way" in reasons[1] and "implementation.py" in reasons[1]
    assert "reports 'test_means'; did you mean test_mean?" in reasons[2].replace("\n", " ")
    assert "reports test_mean = nan, expected a finite number" in reasons[3]


def test_an_implementation_ends_with_its_sweep(tmp_path):
    sweep = load(tmp_path, 'configs = ["ga.toml"]\nimplementations = ["tests.support.implementation:waits"]')
    sweep.out.mkdir()
    (trial,) = sweep.points
    folder, lock = sweep.out / trial.folder, os.open(sweep.out, os.O_RDONLY)
    executor = Processes(sweep, lock)
    executor.start(trial, sweep.config(trial))
    while not ((folder / "metrics.csv").exists() and rows_in(folder)):
        assert executor.ended() == {}
        time.sleep(0.05)
    pid = int((folder / "pid").read_text())
    executor.close()
    os.close(lock)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ('implementations = ["brax"]', "", 'expected "module:function"'),
        ('implementations = ["no_such_module:train"]', "", "there is no module no_such_module"),
        ('implementations = ["tests.support.implementation:none"]', "", "has no function none"),
        ('implementations = ["tests.support.implementation:not_a_function"]', "", "has no function not_a_function"),
        (f'implementations = ["{MADE_UP}", "{MADE_UP}"]', "sweep.implementations", "2 entries have the name made_up"),
        (f'implementations = ["{MADE_UP}"]\ncluster = "auto"', "sweep.implementations", "processes of this machine"),
        (
            f'implementations = ["neuroevo", "{MADE_UP}"]\nsearch = "random"\ntrials = 2',
            "sweep.implementations",
            "expected one with search",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, text, key, reason):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert any(each.key == key and reason in each.reason for each in error.value.problems), error.value


def test_a_search_trains_by_one_implementation(tmp_path):
    text = f'implementations = ["{MADE_UP}"]\nsearch = "tpe"\ntrials = 2\nmetric = "fitness_mean"'
    _, trials = run_toy_processes(load(tmp_path, text))
    assert [trial.status for trial in trials] == ["finished"] * 2
    assert len({trial.values["algorithm.sigma"] for trial in trials}) == 2


def test_rows_are_read_while_they_are_written(tmp_path):
    report = Reporter(tmp_path)
    assert rows_in(tmp_path) == []
    report(steps_population=7, test_mean=-0.5)
    report(steps_population=8, seconds_total=4.0, steps_per_s=2.0, frames_total=60)
    first, second = rows_in(tmp_path)
    assert (first["steps_total"], first["frames_total"], first["test_mean"]) == (7, 7, -0.5)
    assert (second["generation"], second["steps_total"], second["frames_total"]) == (1, 15, 60)
    assert (second["seconds_total"], second["test_mean"]) == (4.0, None)
    assert rows_in(tmp_path, 1) == rows_in(tmp_path, -1) == [second]
    file = tmp_path / "metrics.csv"
    file.write_bytes(file.read_bytes() + b"2,0,1")  # a process was killed while it wrote
    assert rows_in(tmp_path) == [first, second]


def test_a_damaged_file_is_the_reason(tmp_path):
    sweep = load(tmp_path, f'configs = ["ga.toml"]\nimplementations = ["{MADE_UP}"]')
    _, (trial,) = run_toy_processes(sweep)
    file = sweep.out / trial.folder / "metrics.csv"
    text = file.read_text()
    for damaged in (text.replace("0,", "x,"), "x\ny\n", text.replace("steps_total", "steps_totals")):
        assert damaged != text
        file.write_text(damaged)
        now = status_of(sweep, trial)
        assert now.rows == [] and f"{file} is damaged" in now.reason
    report_of(sweep)


PENDULUM = {
    "env": {"name": "brax:inverted_pendulum", "options": {"max_episode_steps": 30}},
    "network": {"name": "mlp", "hidden": [8]},
    "algorithm": {"name": "es", "population": 8, "weight_decay": 0.0},
    "training": {"seed": 5, "generations": 2, "max_episode_steps": "env_default", "test_episodes": 4},
}


@pytest.mark.parametrize("implementation", [gymnasium_model, brax_model])
def test_lanes_train_gymnasiums_counterpart(tmp_path, implementation):
    implementation(make_config(PENDULUM), tmp_path, Reporter(tmp_path))
    rows, run = rows_in(tmp_path), neuroevo.open_run(tmp_path / "run")
    config = load_config(tmp_path / "run" / "config.toml")
    assert config.env.name == "InvertedPendulum-v5"
    assert ("xml_file" in config.env.options) == (implementation is brax_model)
    assert [row["test_mean"] for row in rows] == [row["test_mean"] for row in run.rows()]
    assert [row["steps_total"] for row in rows] == [row["steps_total"] for row in run.rows()]
    assert (config.algorithm.population, config.training.seed, config.network.hidden) == (8, 5, (8,))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("algorithm.name", "ga", 'algorithm.name = "es"'),
        ("env.name", "InvertedPendulum-v5", 'env.name = "brax:TASK"'),
        ("algorithm.weight_decay", 0.1, "algorithm.weight_decay = 0"),
        ("training.test_episodes", 0, "training.test_episodes"),
    ],
)
def test_what_peers_do_not_do_is_refused(key, value, expected):
    tables = {name: dict(values) for name, values in PENDULUM.items()}
    section, name = key.split(".")
    tables[section][name] = value
    if value == "ga":
        tables["algorithm"] = {"name": "ga"}
    with pytest.raises(UserError, match=expected):
        Experiment.of(make_config(tables))


def test_the_differences_are_those_of_the_models():
    text = page(["inverted_pendulum"], "mjx")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert ["reset_noise_scale", "0.01", "-"] in rows
    equal = text.splitlines()[-1]
    for what in ("seconds per step", "numbers in an observation", "positions, velocities"):
        assert what in equal


LIBRARIES = ("brax", "evosax")


@pytest.fixture(scope="module")
def evolved():
    """The rows of each library, all by one process.

    On Brax's trivial environment "fast", which compiles quickly and whose episodes end at the cut-off alone. On two
    devices: what one function gives on both, the next must take on one.
    """
    experiment = Experiment("fast", "positional", 0, 6, 0.1, 0.1, (4,), False, 10, 3, 2, 2)
    program = (
        "import json\n"
        "from importlib import import_module\n"
        "from experiments.peers.experiment import Experiment\n"
        "from neuroevo.accelerated.start import start_jax\n"
        "start_jax(2)\n"
        f"for library in {LIBRARIES!r}:\n"
        "    evolve = import_module(f'experiments.peers.{library}_strategy').evolve\n"
        f"    evolve({experiment!r}, lambda **row: print(json.dumps([library, row]), flush=True))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
    return {library: [row for name, row in rows if name == library] for library in LIBRARIES}


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_evolve_what_the_experiment_says(evolved, library):
    rows = evolved[library]
    assert [row["steps_population"] for row in rows] == [6 * 10] * 3
    assert [row["steps_test"] for row in rows] == [2 * 10] * 3
    assert all(np.isfinite(row["test_mean"]) for row in rows)
