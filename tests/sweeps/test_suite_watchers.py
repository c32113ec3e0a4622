"""What a suite's watcher hears about the runs under way, read from their metrics.csv."""

import sys

import pytest

from neuroevo.cli.suite_progress import PlainSuiteWatcher
from neuroevo.sweeps.runner import run_suite
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.suite import load_suite
from tests.support import odd_metrics
from tests.support.databases import change
from tests.support.runs import new_run, read_rows
from tests.support.suites import GA, TOY_CHILD, Listener, load, run_toys, write

DAMAGED_LINES = {
    "zeros": b"\0" * 40 + b"\n",  # what a power cut leaves of lines that were not on the disk yet
    "empty": b"\n",
    "short": b"7,0.002\n",
    "no UTF-8": b"\xff\n",
    "long": b"x" * 200_000 + b"\n",
    "quote": b'"\n',
}


class Vandal(Listener):
    """Writes each of DAMAGED_LINES once into the metrics.csv of another run, while the run goes."""

    def __init__(self, suite):
        super().__init__()
        self._files = {
            run.folder / "metrics.csv": line for run, line in zip(suite.runs, DAMAGED_LINES.values(), strict=True)
        }
        self.damaged = []

    def tick(self):
        for path in [path for path in self._files if path.exists() and path.stat().st_size]:
            with path.open("ab") as file:
                file.write(self._files.pop(path))
            self.damaged.append(path)


@pytest.fixture(scope="module")
def vandalized(tmp_path_factory):
    """The vandal of a suite with a run for each of DAMAGED_LINES, these runs by the line's name, and the failures."""
    count = len(DAMAGED_LINES)
    suite = load(tmp_path_factory.mktemp("damaged"), f'configs = ["ga.toml"]\nseeds = {count}\nparallel = {count}')
    vandal = Vandal(suite)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_SECONDS", "0.2")
        failures = run_suite(suite, vandal, child=TOY_CHILD)
    return vandal, dict(zip(DAMAGED_LINES, suite.runs, strict=True)), failures


@pytest.mark.parametrize("line", DAMAGED_LINES)
def test_a_damaged_line_of_metrics_csv_stops_nothing(vandalized, line):
    """Only what is shown meanwhile is read from that file."""
    vandal, runs, failures = vandalized
    run = runs[line]
    assert failures == []
    assert run.folder / "metrics.csv" in vandal.damaged
    assert [event for event in vandal.events if event[1] == run.name][-1] == ("finished", run.name, 3)
    assert {row["generation"] for name, row in vandal.rows if name == run.name} <= {0, 1, 2}


def test_a_file_that_cannot_be_read_is_told_once(tmp_path, capsys):
    """By a run's process that leaves it as it is."""
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    (run,) = suite.runs
    new_run(run.folder)
    change(run.folder, "UPDATE generations SET steps_total = steps_total + 1")
    listener = Listener()
    idle = (sys.executable, "-c", "import time; time.sleep(1)")
    (failure,) = run_suite(suite, listener, child=idle)
    told = [event for event in listener.events if event[0] == "unreadable"]
    assert [name for _, name, _ in told] == [run.name] == [failure.run.name]
    assert f"{run.folder / 'run.db'} is damaged" in told[0][2]
    PlainSuiteWatcher().unreadable(run, told[0][2])
    assert f"{run.name} goes on without being shown: {told[0][2]}" in capsys.readouterr().out


def test_metrics_whose_names_csv_must_quote_reach_the_watcher(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "0.1")
    write(tmp_path, 'configs = ["odd.toml"]\nset = ["training.generations=5"]')
    (tmp_path / "odd.toml").write_text(GA.replace('name = "ga"', f'name = "{odd_metrics.NAME}"'))
    suite = load_suite(tmp_path / "suite.toml", out=tmp_path / "out")
    (run,) = suite.runs
    listener, failures = run_toys(suite)
    assert failures == []
    rows = [{k: v for k, v in row.items() if k != "fitness"} for row in read_rows(run.folder)]
    heard = [row for _, row in listener.rows]
    assert len(heard) > 1 and heard[-1] == rows[-1]
    for row in heard:
        known = {name: value for name, value in row.items() if value is not None}
        assert known == {name: value for name, value in rows[int(row["generation"])].items() if value is not None}
    assert set(odd_metrics.METRICS) < set(rows[-1])
    assert status_of(run).rows[-1] == rows[-1]
