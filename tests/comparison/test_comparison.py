"""neuroevo compare: real runs at small size, real Brax and evosax."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from neuroevo.accelerated.peers.experiment import Experiment
from neuroevo.comparison.report import throughput_table, useful_rate, write_report
from neuroevo.comparison.runner import JobFailure, done, run_jobs
from neuroevo.comparison.settings import Job, load_comparison
from neuroevo.core.problems import ConfigError

pytestmark = pytest.mark.slow

SMALL = """
[compare]
contenders = ["native", "same_model"]
seeds = 2
population = 8
hidden = [8]
test_episodes = 4
throughput = [1, 3, 4]
throughput_seconds = 0.1
tasks = [{ name = "inverted_pendulum", episode_length = 30, generations = 3 }]
"""


def comparison_of(tmp_path, text=SMALL):
    file = tmp_path / "small.toml"
    file.write_text(text)
    return load_comparison(file, tmp_path / "out")


def without_bare(comparison):
    """Without the one job that JAX has to compile for."""
    jobs = [job for job in comparison.jobs if job.contender != "bare"]
    comparison.jobs[:] = jobs
    return comparison


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    comparison = without_bare(comparison_of(tmp_path_factory.mktemp("comparison")))
    assert run_jobs(comparison, lambda job: None, lambda end: None) == []
    return comparison


def test_every_job_reports(finished):
    results = done(finished.jobs, finished.out)
    assert len(results) == len(finished.jobs) == 1 + 2 * 2 + 2
    for each in (each for each in results if each.job.kind == "evolve"):
        assert [row["generation"] for row in each.rows] == [1, 2, 3]
        last = each.rows[-1]
        assert 0 < last["steps"] <= 3 * 8 * 30
        assert 0 < last["test_steps"] <= 3 * 4 * 30
        assert 0 < last["test_mean"] <= 30  # a reward of 1 a step
        assert 0 < last["seconds"] < each.seconds
        assert useful_rate(each) == (last["steps"] + last["test_steps"]) / last["seconds"]
        assert each.memory_mb > 50


def test_same_seeds_give_the_same_returns_again(finished, tmp_path):
    job = next(job for job in finished.jobs if job.kind == "evolve")
    again = comparison_of(tmp_path)
    again.jobs[:] = [job]
    run_jobs(again, lambda job: None, lambda end: None)
    rows = [[row["test_mean"] for row in done([job], each.out)[0].rows] for each in (finished, again)]
    assert rows[0] == rows[1]


def test_batches_that_cores_cannot_share_are_left_out(finished):
    rates = [each for each in done(finished.jobs, finished.out) if each.job.kind == "throughput"]
    cores = rates[0].job.experiment.devices
    expected = [width for width in (1, 3, 4) if width % min(cores, width) == 0]
    assert all([row["width"] for row in each.rows] == expected for each in rates)
    assert len(throughput_table(rates)) == 1 + len(expected)


def test_the_differences_are_those_of_the_models(finished):
    page = done(finished.jobs, finished.out)[0]
    assert page.job.kind == "differences"
    rows = {row["what"]: (row["neuroevo"], row["brax"]) for row in page.rows}
    assert rows["seconds per step"] == ("0.04", "0.04")
    assert rows["numbers in an observation"] == ("4", "4")
    assert rows["positions, velocities"] == ("2, 2", "2, 2")
    assert rows["reset_noise_scale"][0] == "0.01"


def test_the_report_has_a_row_for_each_contender_and_generation(finished):
    text = write_report(finished)
    assert sum(line.startswith("| inverted_pendulum | neuroevo") for line in text.splitlines()) == 2
    with (finished.out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3
    assert {row["contender"] for row in rows} == {"native", "same_model"}
    for name in ("curves.png", "throughput.png", "differences.md"):
        assert (finished.out / name).stat().st_size > 500


def test_what_was_done_is_not_done_again_unless_the_file_changed(finished, tmp_path):
    started = []
    assert run_jobs(finished, started.append, lambda end: None) == []
    assert started == []
    changed = without_bare(comparison_of(tmp_path, SMALL.replace("population = 8", "population = 6")))
    assert done(changed.jobs, finished.out) == []


def test_a_job_that_fails_is_reported_and_does_not_stop_the_others(tmp_path):
    comparison = comparison_of(tmp_path)
    comparison.jobs[:] = [job for job in comparison.jobs if job.kind == "evolve"][:2]
    (comparison.out / "jobs").mkdir(parents=True)
    (comparison.out / "jobs" / f"{comparison.jobs[0].name}.rows").mkdir()  # where the first cannot write
    ends = []
    failures = run_jobs(comparison, lambda job: None, ends.append)
    assert [each.job for each in failures] == [comparison.jobs[0]]
    assert isinstance(ends[0], JobFailure) and "Is a directory" in "".join(ends[0].output)
    assert ends[1].job == comparison.jobs[1]


def test_a_comparison_that_is_interrupted_ends_its_process_and_goes_on(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(SMALL.replace("generations = 3", "generations = 100000"))
    command = [sys.executable, "-m", "neuroevo", "compare", str(file), "--out", str(tmp_path / "out")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = tmp_path / "out" / "jobs" / "evolve-inverted_pendulum-native-seed-0.rows"
    deadline = time.monotonic() + 120
    while not (rows.exists() and rows.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True).stdout.split()
    assert workers
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "to resume: neuroevo compare" in errors
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)
    assert not rows.with_suffix(".json").exists()


def test_a_job_survives_json(finished):
    for job in finished.jobs:
        assert Job.of(json.loads(json.dumps(job.table()))) == job


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (('"native"', '"cuda"'), "compare.contenders"),
        (('"inverted_pendulum"', '"pendulum"'), "compare.tasks"),
        (("population = 8", "population = 7"), "compare.population"),
        (("population = 8", "populations = 8"), "compare.populations"),
        (("hidden = [8]", "hidden = []"), "compare.hidden"),
        (("seeds = 2", "seeds = [1, 1]"), "compare.seeds"),
    ],
)
def test_mistakes_are_named_by_their_key(tmp_path, change, key):
    with pytest.raises(ConfigError) as error:
        comparison_of(tmp_path, SMALL.replace(*change))
    assert [each.key for each in error.value.problems][0].startswith(key)


LIBRARIES = ("brax", "evosax")


@pytest.fixture(scope="module")
def evolved():
    """The rows of each library, all by one process.

    On Brax's trivial environment "fast", which compiles quickly and whose episodes end at the cut-off alone. On two
    devices: what one function gives on both, the next must take on one.
    """
    experiment = Experiment("fast", "positional", 0, 6, 0.1, 0.1, (4,), False, 10, 3, 2, 2)
    program = (
        "import sys, json\n"
        "from dataclasses import asdict\n"
        "from importlib import import_module\n"
        "from neuroevo.accelerated.peers.experiment import Experiment\n"
        "from neuroevo.accelerated.start import start_jax\n"
        "start_jax(2)\n"
        f"for library in {LIBRARIES!r}:\n"
        "    evolve = import_module(f'neuroevo.accelerated.peers.{library}_es').evolve\n"
        f"    evolve({experiment!r}, lambda row: print(json.dumps([library, asdict(row)]), flush=True))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
    return {library: [row for name, row in rows if name == library] for library in LIBRARIES}


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_evolve_what_the_experiment_says(evolved, library):
    rows = evolved[library]
    assert [row["generation"] for row in rows] == [1, 2, 3]
    assert [row["steps"] for row in rows] == [6 * 10, 2 * 6 * 10, 3 * 6 * 10]
    assert rows[-1]["compile_seconds"] < rows[-1]["seconds"]
