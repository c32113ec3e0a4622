"""Watcher of a sweep: the events that it receives while trials are trained."""

import sys

from neuroevo.cli.sweep_progress import SweepProgress
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.sweep import load_sweep
from tests.support import odd_metrics
from tests.support.databases import change
from tests.support.runs import new_run, read_rows
from tests.support.sweeps import GA, TOY_CHILD, Listener, load, run_toy_processes, write

ONE = 'configs = "ga.toml"\n'
DAMAGE = b"\0" * 40 + b"\n\n7,0.002\n\xff\n" + b"x" * 200_000 + b'\n"\n'  # zeros are what a power cut leaves


class Vandal(Listener):
    """Listener that writes DAMAGE into a trial's metrics.csv, once there are rows."""

    def __init__(self, file):
        super().__init__()
        self._file, self.damaged = file, False

    def tick(self):
        if not self.damaged and self._file.exists() and self._file.stat().st_size:
            with self._file.open("ab") as file:
                self.damaged = bool(file.write(DAMAGE))


def test_damage_in_metrics_csv_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "0.2")
    sweep = load(tmp_path, ONE)
    vandal = Vandal(sweep.out / sweep.points[0].folder / "metrics.csv")
    (trial,) = run_sweep(sweep, vandal, program=TOY_CHILD)
    assert vandal.damaged and trial.status == "finished"
    assert vandal.events == [("started", 0), ("finished", 0)]
    assert [row["generation"] for row in vandal.rows[0]][-1] == 2


def test_a_file_that_cannot_be_read_is_reported_once(tmp_path, capsys):
    """A run that stays damaged because the process of its trial does not write it."""
    sweep = load(tmp_path, ONE)
    (trial,) = sweep.points
    folder = sweep.out / trial.folder
    new_run(folder)
    change(folder, "UPDATE generations SET steps_total = steps_total + 1")
    listener = Listener()
    idle = (sys.executable, "-c", "import time; time.sleep(1); raise SystemExit(3)")
    (ended,) = run_sweep(sweep, listener, program=idle)
    assert ended.status == "failed" and ended.reason == "ended with exit code 3"
    ((number, reason),) = [event[1:] for event in listener.events if event[0] == "unreadable"]
    assert number == 0 and f"{folder / 'run.db'} is damaged" in reason
    SweepProgress(sweep).unreadable(trial, reason)
    assert f"{trial.name} continues, but its progress cannot be read: {reason}" in capsys.readouterr().out


def test_metrics_whose_names_csv_must_quote_reach_the_watcher(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "0.1")
    file = write(tmp_path, 'configs = ["odd.toml"]\nset = ["training.generations=5"]')
    (tmp_path / "odd.toml").write_text(GA.replace('name = "ga"', f'name = "{odd_metrics.NAME}"'))
    sweep = load_sweep(file, out=tmp_path / "out")
    listener, (trial,) = run_toy_processes(sweep)
    assert trial.status == "finished"
    rows = read_rows(sweep.out / trial.folder, fitness=False)
    heard = listener.rows[0]
    assert len(heard) > 1 and heard[-1] == rows[-1]
    assert all(row == rows[row["generation"]] for row in heard)
    assert set(odd_metrics.METRICS) < set(rows[-1])
    assert status_of(sweep, trial).rows == rows
