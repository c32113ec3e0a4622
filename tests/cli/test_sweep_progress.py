"""What a sweep prints: lines, and on a terminal a table of its trials, the best first."""

import pytest
from rich.console import Console

from neuroevo.cli.sweep_progress import PlainSweepWatcher, TerminalSweepWatcher
from neuroevo.sweeps.tune.ledger import Trial
from tests.support.sweeps import load


@pytest.fixture
def sweep(tmp_path):
    return load(tmp_path, "trials = 3")


@pytest.fixture
def trials(sweep):
    return [Trial(number, values) for number, values in enumerate(sweep.points)]


def row(generation, value):
    return {"generation": generation, "steps_total": 1000 * (generation + 1), "validation_mean": value}


def hear(watcher, trials):
    """Two trials begin, one finishes and one fails."""
    watcher.begin(trials, 3, 2)
    for trial, value in zip(trials[:2], (-5.0, 7.25), strict=True):
        trial.status = "running"
        watcher.started(trial)
        watcher.result(trial, row(3, value))
    trials[0].status = "finished"
    watcher.ended(trials[0])
    trials[1].status, trials[1].reason = "failed", "its process died"
    watcher.ended(trials[1])
    watcher.tick()


def test_lines(sweep, trials, capsys):
    hear(PlainSweepWatcher(sweep), trials)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and str(sweep.out) in lines[0]
    assert [line.split()[0].rstrip(":") for line in lines[1:]] == ["trial-00000", "trial-00001"] * 2
    assert f"{trials[0].values['algorithm.sigma']:.4g}" in lines[1]
    assert "4 generations" in lines[3] and "4,000 steps" in lines[3] and "-5.00" in lines[3]
    assert "failed" in lines[4] and lines[4].endswith("its process died")


def test_a_sweep_that_goes_on_says_so(sweep, trials, capsys):
    trials[0].status, trials[1].status, trials[1].folder = "finished", "running", "somewhere"
    watcher = PlainSweepWatcher(sweep)
    watcher.begin(trials, 3, 2)
    watcher.started(trials[1])
    first, second = capsys.readouterr().out.splitlines()
    assert "goes on" in first and "1 finished" in first and "1 running" in first
    assert "goes on" in second


def test_the_table(sweep, trials):
    console = Console(width=120, force_terminal=True, record=True)
    with TerminalSweepWatcher(sweep, console) as watcher:
        hear(watcher, trials)
        table = watcher.table()
    assert [column.header for column in table.columns][:3] == ["trial", "algorithm.sigma", "validation_mean"]
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["1", "0"] and cells[2] == ["7.25", "-5.00"]
    assert cells[-1] == ["failed", "finished"]
