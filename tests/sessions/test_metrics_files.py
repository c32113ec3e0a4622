"""metrics.csv is valid CSV for all names of metrics, during a run and after a resume."""

import csv
import re
import sqlite3
from contextlib import closing

import pytest

from neuroevo.core.errors import UserError
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.record import checked_metrics
from tests.support.odd_metrics import METRICS, NAME
from tests.support.runs import interrupted_run, new_run, play, read_rows, results

ODD = {"algorithm": {"name": NAME, "population": 8, "parents": 3, "sigma": 0.2, "validation_candidates": 3}}


def cells(folder):
    """Header and rows of metrics.csv, parsed by a CSV reader."""
    with (folder / "metrics.csv").open(newline="") as file:
        header, *lines = csv.reader(file, strict=True)
    return header, [dict(zip(header, line, strict=True)) for line in lines]


def check(folder):
    """Every number of the database is in metrics.csv under its own name."""
    header, table = cells(folder)
    rows = read_rows(folder)
    columns = [name for name in rows[0] if name != "fitness"]
    assert header == columns + [name for name in rows[-1] if name not in rows[0]]
    assert len(set(header)) == len(header) and set(METRICS[:3]) < set(header)
    for row, line in zip(rows, table, strict=True):
        assert {name: float(value) for name, value in line.items() if value} == {
            name: value for name, value in row.items() if name != "fitness" and value is not None
        }
    return rows


def test_metrics_with_commas_quotes_and_line_ends(tmp_path):
    new_run(tmp_path / "run", **ODD)
    rows = check(tmp_path / "run")
    assert [row[METRICS[0]] for row in rows] == [1, 2, 3, 4, 5]
    assert [row.get(METRICS[3]) for row in rows] == [None, None, 3.75, 4.75, 5.75]


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_resumed_run_goes_on_with_them(tmp_path, after):
    new_run(tmp_path / "whole", **ODD)
    interrupted_run(tmp_path / "run", after, **ODD)
    assert len(check(tmp_path / "run")) == after
    play(RunFolder.resume(tmp_path / "run"))
    check(tmp_path / "run")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_plain_names_are_not_quoted(tmp_path):
    new_run(tmp_path / "run")
    header = (tmp_path / "run" / "metrics.csv").read_text().partition("\n")[0]
    assert header == (
        "generation,sigma,max_episode_steps,fitness_mean,fitness_median,fitness_max,fitness_min,fitness_std,"
        "validation_mean,test_mean,test_standard_error,steps_population,steps_validation,steps_test,steps_total,"
        "frames_total,failures_population,failures_validation,failures_test,seconds_population,seconds_validation,"
        "seconds_test,seconds_total,steps_per_s,idle_share"
    )
    assert list(read_rows(tmp_path / "run")[0]) == [*header.split(","), "fitness"]


@pytest.mark.parametrize(
    "metrics", [{"steps_total": 1}, {1: 2.0}, {"\ud800": 1.0}, {"x": 10**400}, {"x": "1"}], ids=str
)
def test_what_is_not_a_metric(metrics):
    with pytest.raises(UserError, match=re.escape(repr(next(iter(metrics))).strip("'"))):
        checked_metrics("mine", metrics)


def test_what_is_a_metric():
    assert checked_metrics("mine", {"loss, mean": True, "a\rb": None}) == {"loss, mean": 1, "a\rb": None}


def test_a_torn_or_edited_file_is_written_again(tmp_path, whole_run):
    path = tmp_path / "run"
    for nth, damage in enumerate(
        (lambda data: data[:-9], lambda data: data.replace(b"fitness", b"x"), lambda data: b"")
    ):
        interrupted_run(path / str(nth), 3)
        file = path / str(nth) / "metrics.csv"
        file.write_bytes(damage(file.read_bytes()))
        play(RunFolder.resume(path / str(nth)))
        assert results(path / str(nth)) == whole_run()


def test_pandas_reads_the_database(tmp_path):
    pandas = pytest.importorskip("pandas")
    new_run(tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as connection:
        table = pandas.read_sql("SELECT * FROM generations ORDER BY generation", connection)
    csv_table = pandas.read_csv(tmp_path / "run" / "metrics.csv")
    assert list(table["fitness_max"]) == list(csv_table["fitness_max"]) != []
