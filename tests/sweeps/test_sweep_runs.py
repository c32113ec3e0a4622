"""Sweeps by Ray Tune on a pendulum and on Frostbite: searches, schedulers, forks, and kills."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray.tune")
pytest.importorskip("optuna")

from neuroevo.analysis.evaluation import evaluate_run  # noqa: E402 (Ray may be missing)
from neuroevo.analysis.exported_network import elite_network
from neuroevo.analysis.network_export import to_arrays  # noqa: E402
from neuroevo.analysis.rendering import choose_players, render  # noqa: E402
from neuroevo.cluster.connection import join, leave  # noqa: E402
from neuroevo.runs.reader import RunReader  # noqa: E402
from neuroevo.sweeps import Trainable  # noqa: E402
from neuroevo.sweeps.tune.ledger import Ledger  # noqa: E402
from neuroevo.sweeps.tune.report import write_report  # noqa: E402
from neuroevo.sweeps.tune.status import statuses  # noqa: E402
from neuroevo.sweeps.tune.trial_folder import folders  # noqa: E402
from neuroevo.sweeps.tune.tuner import run_sweep  # noqa: E402
from tests.support.databases import info_of  # noqa: E402
from tests.support.runs import count_rows, read_rows  # noqa: E402
from tests.support.sweeps import SIGMA, Listener, load, write  # noqa: E402

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ["pendulum", "frostbite"]
PBT = """
trials = 4
scheduler = "pbt"
concurrent = 2
set = ["training.generations=4", "checkpoints.keep_last=1"]
time = "generation"
pbt = {perturbation_interval = 2, quantile_fraction = 0.5, synch = true}
"""
ASHA = """
trials = 4
search = "optuna"
scheduler = "asha"
concurrent = 2
set = ["training.test_episodes=0"]
time = "generation"
asha = {grace_period = 1, reduction_factor = 2}
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    """One Ray for the sweeps of this module."""
    join("local")
    yield
    leave()


def run(folder, environment, text, space=SIGMA):
    sweep = load(folder, f'config = "{environment}.toml"\n{text}', space)
    listener = Listener()
    trials = run_sweep(sweep, listener)
    assert [trial.number for trial in trials] == list(range(sweep.trials))
    assert Ledger.read(sweep.out).trials == {trial.number: trial for trial in trials}
    write_report(statuses(Ledger.read(sweep.out), sweep.metric), sweep.space, sweep.out)
    return sweep, trials, listener


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_grid(environment, cluster, tmp_path):
    space = '"algorithm.sigma" = [0.1, 0.5]\n"algorithm.population" = [4, 6]'
    sweep, trials, listener = run(tmp_path, environment, 'search = "grid"\nset = ["training.generations=2"]', space)
    assert {trial.status for trial in trials} == {"finished"} and listener.total == 4
    for trial in trials:
        reader = RunReader(trial.folder)
        assert reader.config.algorithm.sigma == trial.values["algorithm.sigma"]
        assert reader.config.training.seed == trial.values["training.seed"]
        assert [len(row["fitness"]) for row in reader.rows()] == [trial.values["algorithm.population"]] * 2
        assert [row["validation_mean"] for row in listener.rows[trial.number]] == [
            row["validation_mean"] for row in reader.rows()
        ]
    again = Listener()
    before = {path: path.stat().st_mtime_ns for path in sweep.out.rglob("run.db")}
    run_sweep(sweep, again)
    assert again.events == [] and set(again.before.values()) == {"finished"}
    assert {path: path.stat().st_mtime_ns for path in sweep.out.rglob("run.db")} == before


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_optuna_and_asha(environment, cluster, tmp_path):
    space = SIGMA + '"algorithm.population" = [4, 6]\n"training.max_episode_steps" = {integer = [5, 20]}'
    _, trials, listener = run(tmp_path, environment, ASHA, space)
    assert {trial.status for trial in trials} <= {"finished", "stopped"}
    for trial in trials:
        reader = RunReader(trial.folder)
        assert reader.config.training.max_episode_steps == trial.values["training.max_episode_steps"]
        played = len(reader.rows())
        assert played == len(listener.rows[trial.number])
        assert (played == 3) == (trial.status == "finished")
    assert len({trial.values["algorithm.sigma"] for trial in trials}) == 4


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_population_based_training(environment, cluster, tmp_path):
    sweep, trials, _ = run(tmp_path, environment, PBT)
    assert {trial.status for trial in trials} == {"finished"}
    forks = [path for trial in trials for path in folders(sweep.out / trial.name)[1:]]
    assert forks
    for path in forks:
        forked = info_of(path)["forked_from"]
        donor = Path(forked["path"])
        assert donor.parent == sweep.out and not path.name.startswith(donor.name + "-fork")
        parts = forked["generation"]
        assert [row["fitness"] for row in read_rows(path)[:parts]] == [
            row["fitness"] for row in read_rows(donor)[:parts]
        ]
        number = int(path.name.split("-")[1])
        assert RunReader(path).config.training.seed == trials[number].values["training.seed"]
    assert len({trial.values["training.seed"] for trial in trials}) == 4
    assert not list(sweep.out.rglob("checkpoint_*"))
    last = next(path for path in reversed(forks) if len(read_rows(path)) == 4)
    assert evaluate_run(last, episodes=2, max_episode_steps=20).summary.n == 2
    reader = RunReader(last)
    arrays = to_arrays(elite_network(reader.config, reader.elite()[1], "fork"))
    assert {"network", "genome", "env"} < set(arrays)
    if environment == "frostbite":  # the pendulum's screens need a package
        players = choose_players(reader)[1]
        render(reader.config, players, [0], tmp_path / "fork.gif", max_episode_steps=5)
        assert (tmp_path / "fork.gif").stat().st_size


@pytest.fixture
def signals_kept():
    """Tune leaves handlers behind, of which the first swallows one Ctrl-C."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGUSR1)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_tuner_of_one_s_own(cluster, signals_kept, tmp_path, monkeypatch):
    from ray import tune

    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    write(tmp_path, "trials = 1")
    space = {
        "config": str(tmp_path / "pendulum.toml"),
        "out": str(tmp_path / "mine"),
        "algorithm.sigma": tune.loguniform(1e-3, 1.0),
    }
    tuned = tune.Tuner(
        Trainable,
        param_space=space,
        tune_config=tune.TuneConfig(metric="validation_mean", mode="max", num_samples=2),
        run_config=tune.RunConfig(storage_path=str(tmp_path / "tune"), verbose=0),
    ).fit()
    assert not tuned.errors
    for result in tuned:
        reader = RunReader(result.metrics["folder"])
        assert reader.path.parent == tmp_path / "mine"
        assert reader.config.algorithm.sigma == result.config["algorithm.sigma"]
        assert reader.rows()[-1]["validation_mean"] == result.metrics["validation_mean"]


def generations(out):
    """How many generations each trial's folders have finished, by folder."""
    return {path.parent: count_rows(path.parent) for path in out.glob("trial-*/run.db")}


def test_after_a_kill_the_same_command_goes_on(tmp_path):
    text = 'trials = 3\nconcurrent = 2\nsearch = "optuna"\nset = ["training.generations=30"]'
    file, out = write(tmp_path, text), tmp_path / "out"
    command = [sys.executable, "-m", "neuroevo", "sweep", str(file), "--out", str(out)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while sum(generations(out).values()) < 6:
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed = generations(out)
    assert max(killed.values()) < 30
    began = {path: info_of(path)["started"] for path in killed}
    values = {number: trial.values for number, trial in Ledger.read(out).trials.items()}

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "goes on" in done.stdout
    trials = Ledger.read(out).trials
    assert {trial.status for trial in trials.values()} == {"finished"} and len(trials) == 3
    assert {number: trials[number].values for number in values} == values
    assert sorted(path.name for path in out.glob("trial-*")) == [trial.name for trial in trials.values()]
    for trial in trials.values():
        path = Path(trial.folder)
        assert [row["generation"] for row in read_rows(path)] == list(range(30))
        info = info_of(path)
        if path in killed:
            assert info["started"] == began[path]
        if killed.get(path):
            assert [again["generation"] >= killed[path] for again in info["resumed"]] == [True]
    assert (out / "table.md").is_file() and (out / "curves.png").is_file() and (out / "parallel.png").is_file()


class Killer(Listener):
    """Kills the process of a trial once, after its second generation."""

    def result(self, trial, row):
        super().result(trial, row)
        if len(self.rows[trial.number]) == 2:
            os.kill(row["pid"], signal.SIGKILL)


def test_a_trial_whose_process_dies_goes_on_from_its_newest_checkpoint(cluster, tmp_path):
    sweep = load(tmp_path, 'trials = 1\nshared = false\nset = ["training.generations=40"]')
    (trial,) = run_sweep(sweep, Killer())
    assert trial.status == "finished"
    assert [row["generation"] for row in read_rows(Path(trial.folder))] == list(range(40))
    (again,) = info_of(Path(trial.folder))["resumed"]
    assert again["generation"] >= 2


def test_a_trial_that_fails_does_not_stop_the_others(cluster, tmp_path):
    sweep = load(tmp_path, 'search = "grid"\nset = ["training.generations=2"]', '"algorithm.sigma" = [0.1, 0.5]')
    (sweep.out / "trial-00000").mkdir(parents=True)
    (sweep.out / "trial-00000" / "metrics.jsonl").write_text("{}\n")  # of an earlier version
    failed, other = run_sweep(sweep, Listener())
    assert (failed.status, other.status) == ("failed", "finished") and "metrics.jsonl" in failed.reason
    assert "\n" not in failed.reason
    (sweep.out / "trial-00000" / "metrics.jsonl").unlink()
    listener = Listener()
    assert [trial.status for trial in run_sweep(sweep, listener)] == ["finished", "finished"]
    assert {number for _, number in listener.events} == {0}
