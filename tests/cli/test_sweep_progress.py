"""Output of a sweep: lines, and on a terminal a table of its trials, best first."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from neuroevo.cli import sweep_progress
from neuroevo.cli.sweep_progress import SweepProgress
from neuroevo.training.time_left import share_done
from tests.support.sweeps import load

EVENTS = [
    "3 trials (1 running before), 2 in parallel, in {}",
    "ga/frostbite/seed-0 starts",
    "ga/frostbite/seed-1 resumes",
    "ga/frostbite/seed-0 finished: 2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15",
    "ga/frostbite/seed-1 ended with exit code 1: 7 generations, 1,000,000 frames, 0:01:15",
    "ga/frostbite/seed-2 could not be started: Permission denied",
]


def row(generation, **changes):
    """Return a row of metrics.csv with the columns that a watcher needs."""
    values = {"generation": generation, "steps_total": 250, "frames_total": 1_000_000, "seconds_total": 75.0}
    return {**values, "test_mean": 1234.56, "validation_mean": -5.0, **changes}


def notify(watcher, trials):
    """Notify of a trial that finishes, a trial that resumes and fails, and a trial that cannot be started."""
    first, second, third = trials
    second = replace(second, status="running")
    watcher.begin([first, second, third], 3, 2)
    first = replace(first, status="running")
    watcher.started(first, False)
    watcher.started(second, True)
    watcher.tick()
    watcher.result(first, row(0))
    watcher.result(second, row(6, test_mean=None, validation_mean=7.25))
    watcher.tick()
    watcher.started(second, True)  # its process died, and another process resumes it
    watcher.result(first, row(1))
    watcher.ended(replace(first, status="finished"))
    watcher.ended(replace(second, status="failed", reason="ended with exit code 1\nwhy"))
    watcher.ended(replace(third, status="failed", reason="could not be started: Permission denied"))
    watcher.tick()


@pytest.fixture
def sweep(tmp_path):
    return load(tmp_path, 'configs = "ga.toml"\nseeds = 3')


@pytest.fixture
def search(tmp_path):
    return load(tmp_path, 'configs = "ga.toml"\ntrials = 3\nsearch = "random"')


def chosen(search):
    """Return trials with values that a search might sample."""
    return [search.trial(number, {"algorithm.sigma": 0.12345 * (number + 1)}) for number in range(3)]


def events(sweep):
    return [event.format(sweep.out) for event in EVENTS]


def test_lines(sweep, capsys, monkeypatch):
    progress = SweepProgress(sweep)
    with progress.live:
        notify(progress, sweep.points)
    assert capsys.readouterr().out.splitlines() == events(sweep)  # no generation within the first seconds
    monkeypatch.setattr(sweep_progress, "SECONDS_BETWEEN_LINES", 0)
    notify(SweepProgress(sweep), sweep.points)
    assert capsys.readouterr().out.splitlines() == [
        *events(sweep)[:3],
        "ga/frostbite/seed-0: 1 generation, elite test 1,234.6, 1,000,000 frames, 0:01:15",
        "ga/frostbite/seed-1: 7 generations, 1,000,000 frames, 0:01:15",
        "ga/frostbite/seed-0: 2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15",
        *events(sweep)[3:],
    ]


def test_lines_of_a_search_name_the_values(search, capsys):
    watcher = SweepProgress(search)
    (trial, other, _) = chosen(search)
    watcher.begin([replace(trial, status="finished"), other], 3, 2)
    watcher.started(other, False)
    first, second = capsys.readouterr().out.splitlines()
    searched = "random maximizing validation_mean"
    assert first == f"3 trials (1 finished before), 2 in parallel, in {search.out}, {searched}"
    assert second == f"trial-00001 starts: algorithm.sigma {other.values['algorithm.sigma']:.4g}"


def test_a_terminal(search):
    output = io.StringIO()
    progress = SweepProgress(search, Console(file=output, force_terminal=True, width=150, color_system=None))
    with progress.live:
        notify(progress, chosen(search))
        table = progress.table()
    lines = [line.replace("\x1b[2K", "").strip() for line in output.getvalue().splitlines()]
    for event in ("trial-00000 starts: ", "trial-00001 resumes: ", "trial-00000 finished: ", "trial-00001 ended with "):
        assert sum(event in line for line in lines) == 1
    assert any(line.split()[::4] == ["trial-00001", "250"] for line in lines)
    assert not any("trial-00000: " in line for line in lines)  # generations are in the table
    columns = {column.header: list(column.cells) for column in table.columns}
    assert list(columns) == ["trial", "algorithm.sigma", "validation_mean", "generations", "steps", "status"]
    assert columns["trial"] == ["trial-00001", "trial-00000", "trial-00002"]
    assert columns["validation_mean"] == ["7.25", "-5.00", "-"] and columns["generations"] == ["7", "2", "-"]
    assert columns["status"] == ["failed", "finished", "failed"]
    assert columns["algorithm.sigma"][0] == f"{chosen(search)[1].values['algorithm.sigma']:.4g}"


def test_the_part_of_the_budget_that_is_spent(tmp_path):
    def share(*budgets, **changes):
        sweep = load(tmp_path, 'configs = "ga.toml"', overrides=[f"training.{each}" for each in budgets])
        return share_done(sweep.base.training, row(**{"generation": 0, **changes}))

    assert share("generations=4") == 0.25
    assert share("generations=4", "total_steps=500") == 0.5
    assert share("generations=4", "minutes=2.0") == 0.625
    assert share("generations=4", generation=7) == 1.0
