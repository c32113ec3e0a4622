"""The report on a sweep: what trials' folders say, tables and figures."""

import csv
import io

import numpy as np
import pytest

from neuroevo.runs.folder import RunFolder
from neuroevo.sweeps.tune.ledger import Ledger, Trial
from neuroevo.sweeps.tune.plots import draw_curves, draw_parallel, height, scale
from neuroevo.sweeps.tune.report import table, trial_row, write_report
from neuroevo.sweeps.tune.space import Choice, Range
from neuroevo.sweeps.tune.status import TrialStatus, status_of, statuses
from neuroevo.system.statistics import interval, summarize
from tests.support.runs import new_run, read_rows
from tests.support.toy import ToyEvaluator, call_of

SPACE = {"algorithm.sigma": Range(0.01, 1.0, log=True), "algorithm.population": Choice((4, 8))}
METRIC = "validation_mean"


@pytest.fixture
def ledger(tmp_path):
    """Two finished trials, one that was stopped with a test pending, one that failed before it began, one waiting."""
    found = Ledger(tmp_path / "trials.json")
    for number, (sigma, population) in enumerate([(0.2, 8), (0.5, 4), (0.02, 8), (0.1, 8), (0.3, 4)]):
        found.trials[number] = Trial(number, {"algorithm.sigma": sigma, "algorithm.population": population})
    for number in (0, 1):
        path = tmp_path / found.trials[number].name
        new_run(path, algorithm={"sigma": [0.2, 0.5][number]}, training={"test_episodes": 4})
        found.update(number, status="finished", folder=str(path))
    path = tmp_path / found.trials[2].name
    with pytest.raises(KeyboardInterrupt):
        new_run(path, ToyEvaluator(late=1, interrupt_at=call_of(2, "population")))
    found.update(2, status="stopped", folder=str(path))
    found.update(3, status="failed", reason="its process died")
    return found


def test_the_ledger_is_read_as_it_was_written(ledger, tmp_path):
    assert Ledger.read(tmp_path).trials == ledger.trials
    assert Ledger.read(tmp_path / "nothing").trials == {}


def test_how_trials_stand(ledger):
    found = statuses(ledger, METRIC)
    assert [now.value for now in found[:3]] == sorted((now.value for now in found[:3]), reverse=True)
    assert [now.trial.number for now in found[3:]] == [3, 4]
    by = {now.trial.number: now for now in found}
    rows = read_rows(ledger.path.parent / "trial-00000")
    assert by[0].value == rows[-1][METRIC] and by[0].steps == rows[-1]["steps_total"] and by[0].generations == 5
    assert by[0].test == interval(4, rows[-1]["test_mean"], rows[-1]["test_standard_error"])
    assert by[4].value is None and by[4].test.mean is None


def test_a_stopped_trial_counts_with_the_generation_whose_test_is_missing(ledger):
    now = status_of(ledger.trials[2], METRIC)
    assert len(read_rows(ledger.path.parent / "trial-00002")) == 1 and now.generations == 2
    assert now.rows[1]["test_mean"] is None and now.value == now.rows[1][METRIC]
    assert now.test.mean == now.rows[0]["test_mean"]


def test_a_folder_that_is_gone_is_said(ledger, tmp_path):
    now = status_of(Trial(9, {}, "finished", str(tmp_path / "gone")), METRIC)
    assert now.value is None and "gone" in now.reason


def test_an_interval_is_that_of_the_numbers():
    numbers = np.array([1.0, 4.0, 2.0, 8.0])
    of = summarize(numbers)
    assert interval(4, of.mean, of.standard_error) == of
    half = 3.182446305284263 * np.std(numbers, ddof=1) / 2  # of Student's t table for 3 degrees of freedom
    assert of.high - of.mean == pytest.approx(half)
    assert interval(1, 3.0, None).low is None


def test_the_tables(ledger, tmp_path):
    found = statuses(ledger, METRIC)
    text = write_report(found, SPACE, tmp_path / "report")
    assert (tmp_path / "report" / "table.md").read_text() == text == table(found, SPACE)
    head, rule, *rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in head][:4] == ["trial", *SPACE, METRIC] and len(rows) == 5 and set(rule[1]) == {"-"}
    assert "trial-00003: its process died" in text
    cells = list(csv.DictReader(io.StringIO((tmp_path / "report" / "table.csv").read_text())))
    assert [int(row["trial"]) for row in cells] == [now.trial.number for now in found]
    first = trial_row(found[0], SPACE)
    assert float(cells[0][METRIC]) == first[METRIC] and float(cells[0]["test_low95"]) == first["test_low95"]
    assert [row["status"] for row in cells[3:]] == ["failed", "waiting"] and cells[4][METRIC] == ""
    for name in ("curves", "parallel"):
        assert (tmp_path / "report" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "report" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_curves_are_the_rows(ledger):
    found = statuses(ledger, METRIC)
    (panel,) = draw_curves(found).axes
    assert len(panel.lines) == 3
    best = max(panel.lines, key=lambda line: line.get_zorder())
    assert best.get_xydata().tolist() == [[row["steps_total"], row[METRIC]] for row in found[0].rows]


def test_parallel_coordinates(ledger):
    found = statuses(ledger, METRIC)
    (panel,) = draw_parallel(found, SPACE).axes
    lines = [line.get_ydata().tolist() for line in panel.lines if len(line.get_ydata()) == 3]
    best, worst = found[0], found[2]
    expected = [height(of, best.trial.values[key]) for key, of in SPACE.items()]
    assert lines[-1] == [*expected, 1.0]
    assert lines[0][-1] == 0.0 and lines[0][1] == height(
        SPACE["algorithm.population"], worst.trial.values["algorithm.population"]
    )


def test_axes():
    assert height(Range(0.01, 1.0, log=True), 0.1) == pytest.approx(0.5)
    assert height(Range(2, 4), 3.5) == 0.75
    assert [height(Choice(("a", "b", "c")), value) for value in "abc"] == [0, 0.5, 1]
    assert scale(Range(0, 4, integer=True)) == [0, 1, 2, 3, 4] and scale(Range(1, 2, integer=True)) == [1, 2]
    assert scale(Range(0.01, 1.0, log=True))[2] == pytest.approx(0.1)


@pytest.mark.parametrize("rows", [0, 1])
def test_figures_of_little(rows):
    row = {"steps_total": 10, METRIC: 1.0, "test_mean": None, "test_standard_error": None}
    found = [TrialStatus(Trial(0, {"algorithm.sigma": 0.1, "algorithm.population": 4}), METRIC, [row] * rows)]
    draw_curves(found).canvas.draw()
    draw_parallel(found, SPACE).canvas.draw()


def test_a_fork_counts_with_its_history(ledger, tmp_path):
    folder = RunFolder.fork(tmp_path / "fork", tmp_path / "trial-00000", ["training.generations=9"])
    folder.open(["test"]).close()
    now = status_of(Trial(7, {}, "running", str(tmp_path / "fork")), METRIC)
    assert now.generations == 5 and now.value == status_of(ledger.trials[0], METRIC).value
