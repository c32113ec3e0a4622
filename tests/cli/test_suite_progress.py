"""What a suite prints while it goes."""

import io

import pytest
from rich.console import Console

from neuroevo.cli import suite_progress
from neuroevo.cli.suite_progress import PlainSuiteWatcher, TerminalSuiteWatcher, share_done
from neuroevo.sweeps.status import RunStatus
from neuroevo.sweeps.watcher import Failure
from tests.support.suites import load


def row(generation, **changes):
    """A row of metrics.csv with what a watcher looks at."""
    values = {"generation": float(generation), "steps_total": 250.0, "frames_total": 1_000_000.0, "seconds_total": 75.0}
    return {**values, "test_mean": 1234.56, "validation_mean": 2.0, **changes}


def tell(watcher, runs):
    """One run starts, has generations and finishes, one goes on and fails."""
    first, second = runs
    with watcher:
        watcher.begin([RunStatus(first, "not started"), RunStatus(second, "unfinished")], 2)
        watcher.started(first, 0, None)
        watcher.started(second, 5, 3)
        watcher.tick()
        watcher.generation(first, row(0))
        watcher.generation(second, row(6, test_mean=None))
        watcher.tick()
        watcher.finished(RunStatus(first, "finished", [row(0), row(1)]))
        watcher.failed(Failure(second, "ended with exit code 1", ["why"]))
        watcher.tick()


@pytest.fixture
def runs(tmp_path):
    return load(tmp_path, 'configs = ["ga.toml"]\nseeds = 2').runs


EVENTS = [
    "2 runs (1 not started, 1 unfinished), 2 at a time",
    "ga/frostbite/seed-0 starts",
    "ga/frostbite/seed-1 goes on from generation 5, threads 3",
    "ga/frostbite/seed-0 finished: 2 generations, elite test 1,234.6, 1,000,000 frames, 0:01:15",
    "ga/frostbite/seed-1 ended with exit code 1",
]


def test_plain_lines(runs, capsys, monkeypatch):
    tell(PlainSuiteWatcher(), runs)
    assert capsys.readouterr().out.splitlines() == EVENTS  # no generation within the first seconds
    monkeypatch.setattr(suite_progress, "SECONDS_BETWEEN_LINES", 0)
    tell(PlainSuiteWatcher(), runs)
    assert capsys.readouterr().out.splitlines() == [
        *EVENTS[:3],
        "ga/frostbite/seed-0: 1 generation, elite test 1,234.6, 1,000,000 frames, 0:01:15",
        "ga/frostbite/seed-1: 7 generations, 1,000,000 frames, 0:01:15",
        *EVENTS[3:],
    ]


def test_bars_on_a_terminal(runs):
    output = io.StringIO()
    tell(TerminalSuiteWatcher(Console(file=output, force_terminal=True, width=150, color_system=None)), runs)
    lines = [line.replace("\x1b[2K", "").strip() for line in output.getvalue().splitlines()]
    for event in EVENTS:
        assert sum(line.endswith(event) for line in lines) == 1
    bars = [line for line in lines if "━" in line]
    assert any("1 generation, elite test 1,234.6" in line for line in bars)
    assert any(line.startswith("all runs") for line in bars)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_never_started(runs, capsys, terminal):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=150, color_system=None)
    with TerminalSuiteWatcher(console) if terminal else PlainSuiteWatcher() as watcher:
        watcher.begin([RunStatus(run, "not started") for run in runs], 1)
        watcher.failed(Failure(runs[0], "could not be started: Permission denied", []))
        watcher.started(runs[1], 0, None)
        watcher.tick()
        watcher.finished(RunStatus(runs[1], "finished", [row(0)]))
    output_text = output.getvalue() if terminal else capsys.readouterr().out
    assert output_text.count("ga/frostbite/seed-0 could not be started: Permission denied") == 1
    assert output_text.count("ga/frostbite/seed-1 finished: ") == 1


def test_the_part_of_the_budget_that_is_spent(tmp_path):
    def share(*budgets, **changes):
        (run,) = load(tmp_path, 'configs = ["ga.toml"]', overrides=[f"training.{each}" for each in budgets]).runs
        return share_done(run.config.training, row(**{"generation": 0, **changes}))

    assert share("generations=4") == 0.25
    assert share("generations=4", "total_steps=500") == 0.5
    assert share("generations=4", "minutes=2.0") == 0.625
    assert share("generations=4", generation=7) == 1.0
