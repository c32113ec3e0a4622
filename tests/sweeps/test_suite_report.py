"""The report of a suite: tables and learning curves against numbers computed from the runs' files in other ways."""

import resource
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

from neuroevo.analysis.curves import Curve, band, figure_files
from neuroevo.cli import app
from neuroevo.runs.folder import RunFolder
from neuroevo.sweeps.aggregates import aggregates
from neuroevo.sweeps.learning_curves import curve_of, draw_suite
from neuroevo.sweeps.report import lines, text_table, write_report
from neuroevo.sweeps.status import status_of
from neuroevo.system.console import clock
from tests.support.databases import change
from tests.support.runs import play, read_rows
from tests.support.suites import load, table, write
from tests.support.toy import ToyEvaluator

ROOT = Path(__file__).parents[2]
SUITE = """
configs = ["ga.toml", "rs.toml"]
games = ["frostbite", "pong"]
seeds = 3
set = ["training.generations=4"]
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """12 runs; of rs on pong seed 1 was not begun and seed 2 has no generation, of ga seed 2 was interrupted."""
    suite = load(tmp_path_factory.mktemp("suite"), SUITE)
    for run in suite.runs:
        calls = {"rs/pong/seed-2": 1, "ga/pong/seed-2": 7}.get(run.name)  # 3 calls a generation
        if run.name != "rs/pong/seed-1":
            folder = RunFolder.create(run.folder, run.config)
            if calls is None:
                play(folder)
            else:
                with pytest.raises(KeyboardInterrupt):
                    play(folder, ToyEvaluator(interrupt_at=calls))
    return suite


@pytest.fixture(scope="module")
def statuses(suite):
    return [status_of(run) for run in suite.runs]


def metrics(suite, label, game, seed):
    return read_rows(suite.out / label / game / f"seed-{seed}")


def test_the_status_of_every_run(suite, statuses):
    found = {each.run.name: (each.status, len(each.rows)) for each in statuses}
    other = {
        "rs/pong/seed-1": ("not started", 0),
        "rs/pong/seed-2": ("unfinished", 0),
        "ga/pong/seed-2": ("unfinished", 2),
    }
    assert found == {run.name: ("finished", 4) for run in suite.runs} | other


def test_the_table_in_numbers(suite, statuses):
    write_report(statuses, suite.out)
    rows = table(suite.out / "table.csv", without=())
    assert [(row["game"], row["config"]) for row in rows] == [
        ("frostbite", "ga"),
        ("frostbite", "rs"),
        ("pong", "ga"),
        ("pong", "rs"),
    ]
    seeds = {"frostbite ga": [0, 1, 2], "frostbite rs": [0, 1, 2], "pong ga": [0, 1, 2], "pong rs": [0]}
    finished = {"frostbite ga": "3", "frostbite rs": "3", "pong ga": "2", "pong rs": "1"}
    for row in rows:
        key = f"{row['game']} {row['config']}"
        last = [metrics(suite, row["config"], row["game"], seed)[-1] for seed in seeds[key]]
        scores = [each["test_mean"] for each in last]
        assert (row["runs"], row["finished"], row["seeds"]) == ("3", finished[key], str(len(seeds[key])))
        assert row["score_of"] == "test"
        assert float(row["score_mean"]) == pytest.approx(statistics.fmean(scores), rel=1e-12)
        assert float(row["generations_mean"]) == pytest.approx(statistics.fmean(e["generation"] + 1 for e in last))
        assert float(row["frames_mean"]) == pytest.approx(statistics.fmean(e["steps_total"] * 4 for e in last))
        assert float(row["seconds_mean"]) == pytest.approx(statistics.fmean(e["seconds_total"] for e in last))
        assert float(row["seconds_sum"]) == pytest.approx(sum(e["seconds_total"] for e in last), abs=1e-6)
        if len(scores) == 1:
            assert (row["score_standard_error"], row["score_low95"], row["score_high95"]) == ("", "", "")
            continue
        error = statistics.stdev(scores) / len(scores) ** 0.5
        low, high = t.interval(0.95, len(scores) - 1, loc=statistics.fmean(scores), scale=error)
        assert float(row["score_standard_error"]) == pytest.approx(error, rel=1e-9)
        assert float(row["score_low95"]) == pytest.approx(low, rel=1e-9)
        assert float(row["score_high95"]) == pytest.approx(high, rel=1e-9)


def test_interquartile_means_over_all_games(suite, statuses):
    scales = {"frostbite": (-4.0, -2.0), "pong": (-5.0, 0.0)}
    text = write_report(statuses, suite.out, scales)
    ga, rs = table(suite.out / "aggregates.csv", without=())
    assert (ga["games"], ga["runs"], rs["games"], rs["runs"]) == ("2", "6", "2", "4")
    scores = {
        game: [metrics(suite, "ga", game, seed)[-1]["test_mean"] for seed in range(3)] for game in ("frostbite", "pong")
    }
    normalized = [(score + 4) / 2 for score in scores["frostbite"]] + [(score + 5) / 5 for score in scores["pong"]]
    assert float(ga["iqm"]) == pytest.approx(statistics.fmean(sorted(normalized)[1:5]))  # the middle of six
    assert float(ga["iqm_low95"]) < float(ga["iqm"]) < float(ga["iqm_high95"])
    assert min(normalized) <= float(ga["iqm_low95"]) and float(ga["iqm_high95"]) <= max(normalized)
    assert rs["iqm_low95"] == ""  # one game has one run
    (row,) = [line.split() for line in text.splitlines() if line.split()[:3] == ["ga", "2", "6"]]
    assert row[3:] == [f"{float(ga[key]):.3f}" if key else "to" for key in ("iqm", "iqm_low95", "", "iqm_high95")]
    (suite.out / "aggregates.csv").unlink()
    assert "all games" not in write_report(statuses, suite.out)
    assert not (suite.out / "aggregates.csv").exists() and aggregates(statuses, {}) == []


def test_a_row_for_every_run(suite, statuses):
    write_report(statuses, suite.out)
    rows = table(suite.out / "runs.csv", without=())
    assert [f"{row['config']}/{row['game']}/seed-{row['seed']}" for row in rows] == [run.name for run in suite.runs]
    for row in rows:
        name = f"{row['config']}/{row['game']}/seed-{row['seed']}"
        assert row["folder"] == str(suite.out / name)
        if name in ("rs/pong/seed-1", "rs/pong/seed-2"):
            assert row["status"] == {"1": "not started", "2": "unfinished"}[row["seed"]]
            assert (row["score"], row["generations"], row["frames"], row["seconds"]) == ("", "0", "", "")
            continue
        last = metrics(suite, row["config"], row["game"], row["seed"])[-1]
        assert float(row["score"]) == last["test_mean"]
        assert int(row["generations"]) == last["generation"] + 1
        assert int(row["frames"]) == last["steps_total"] * 4
        assert float(row["seconds"]) == last["seconds_total"]


def test_the_table_as_text(suite, statuses):
    text = text_table(statuses).splitlines()
    first = lines(statuses)[0]
    score = first.score
    cells = ["frostbite", "ga", "3", "3 of 3", f"{score.mean:.2f}", f"{score.standard_error:.2f}"]
    iqm = first.iqm
    cells += [f"{score.low:.2f} to {score.high:.2f}", f"{iqm.mean:.2f}", f"{iqm.low:.2f} to {iqm.high:.2f}"]
    cells += ["test", "4", f"{first.frames_mean:,.0f}"]
    assert text[2].split("  ")[0] == "frostbite"
    assert [cell.strip() for cell in text[2].split("  ") if cell][: len(cells)] == cells
    assert [cell.strip() for cell in text[4].split("  ") if cell][2:4] == ["3", "2 of 3"]
    alone = [cell.strip() for cell in text[5].split("  ") if cell]
    assert alone[2:4] == ["1", "1 of 3"] and alone[5:7] == ["n=1", "-"]
    assert len({len(line) for line in text[:6]}) == 1
    at = text.index("3 of 12 runs are not finished:")
    assert text[at + 1] == "  rs/pong/seed-1: not started"
    assert text[at + 2].startswith("  ga/pong/seed-2: unfinished, 2 generations, elite test -")
    assert text[at + 3] == "  rs/pong/seed-2: not started"


def test_validation_is_the_score_where_there_are_no_test_episodes(tmp_path):
    suite = load(tmp_path, 'configs = ["ga.toml"]', overrides=["training.test_episodes=0"])
    (run,) = suite.runs
    play(RunFolder.create(run.folder, run.config))
    (line,) = lines([status_of(run)])
    last = read_rows(run.folder)[-1]
    assert (line.score_of, line.score.mean, line.score.n) == ("validation", last["validation_mean"], 1)


def test_another_configurations_run_is_no_result(tmp_path):
    (run,) = load(tmp_path, 'configs = ["ga.toml"]').runs
    play(RunFolder.create(run.folder, run.config))
    (other,) = load(tmp_path, 'configs = ["ga.toml"]', overrides=["algorithm.sigma=0.5"]).runs
    now = status_of(other)
    assert (now.status, now.rows) == ("unusable", [])
    assert now.reason == f"{run.folder} holds a run of another configuration"
    assert f"  ga/frostbite/seed-0: {now.reason}" in text_table([now]).splitlines()
    change(run.folder, "UPDATE run SET config = 'nonsense = '")
    assert status_of(run).status == "unusable"
    assert "run.db is damaged: its table run " in status_of(run).reason


def test_report_only_starts_nothing(suite):
    arguments = ["suite", str(suite.out.parent / "suite.toml"), "--out", str(suite.out), "--report-only"]
    before = sorted(path for path in suite.out.glob("*/*/*"))
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    assert (suite.out / "table.txt").read_text() in result.stdout
    assert sorted(path for path in suite.out.glob("*/*/*")) == before


def test_a_disk_without_room_for_the_report(tmp_path):
    """A limit on the size of every file stands for it. It is no mistake of the user's, unlike a folder that is none."""
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    file, out = tmp_path / "suite.toml", suite.out
    play(RunFolder.create(suite.runs[0].folder, suite.runs[0].config))

    def report(**options):
        command = [sys.executable, "-m", "neuroevo", "suite", str(file), "--out", str(out), "--report-only"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, **options)
        return done.returncode, done.stderr

    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
    assert report(**limited) == (1, f"neuroevo: cannot write the report into {out}: File too large\n")
    assert list(out.iterdir()) == [out / "ga"]
    (out / "table.txt").mkdir()
    assert report() == (2, f"neuroevo: cannot write the report into {out}: Is a directory\n")


def test_a_report_alone_needs_runs(tmp_path):
    file, out = write(tmp_path, 'configs = ["ga.toml"]'), tmp_path / "out"
    result = CliRunner().invoke(app, ["suite", str(file), "--out", str(out), "--report-only"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"neuroevo: there is no run of {file} in {out}; without --report-only they are started\n"
    assert not out.exists()


def test_a_report_on_nothing(tmp_path):
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    text = write_report([status_of(run) for run in suite.runs], suite.out)
    assert "  ga/frostbite/seed-0: not started" in text
    assert (suite.out / "curves.png").read_bytes().startswith(b"\x89PNG")


def brute_force(curves, frames):
    """Mean and 95% bounds at one point, from lists of (frames, score), with scipy's t distribution."""
    values = [[score for at, score in points if at <= frames][-1] for points in curves]
    mean, n = statistics.fmean(values), len(values)
    half = t.ppf(0.975, n - 1) * statistics.stdev(values) / n**0.5
    return mean, mean - half, mean + half


def test_a_band_is_students_at_every_step_of_a_curve(suite, statuses):
    own = [each for each in statuses if (each.run.label, each.run.game) == ("ga", "frostbite")]
    points = [
        [(row["frames_total"], row["test_mean"]) for row in metrics(suite, "ga", "frostbite", seed)]
        for seed in range(3)
    ]
    assert len({tuple(frames for frames, _ in run) for run in points}) == 3  # no two runs step together
    of = band([curve_of(each) for each in own])
    begin, end = max(run[0][0] for run in points), min(run[-1][0] for run in points)
    grid = sorted({frames for run in points for frames, _ in run if begin <= frames})
    assert of.together == sum(frames <= end for frames in grid) > 6
    assert of.x.tolist() == grid
    expected = np.array([brute_force(points, frames) for frames in grid])
    np.testing.assert_allclose(np.stack([of.mean, of.low, of.high], axis=1), expected, rtol=1e-9)
    between = (of.x[:-1] + of.x[1:]) // 2  # as drawn, each value up to the next step
    np.testing.assert_allclose(of.mean[:-1], [brute_force(points, frames)[0] for frames in between], rtol=1e-9)


def test_curves_by_hand():
    a = Curve(np.array([10, 20, 40]), np.array([1.0, 2.0, 3.0]))
    b = Curve(np.array([15, 30]), np.array([5.0, 9.0]))
    assert a.at(np.array([10, 19, 20, 40])).tolist() == [1.0, 1.0, 2.0, 3.0]
    of = band([a, b])
    assert of.x.tolist() == [15, 20, 30, 40]  # from b's first point on
    assert of.together == 3  # b ends at 30, where a still holds 2, and keeps its 9
    assert of.mean.tolist() == [3.0, 3.5, 5.5, 6.0]
    half = t.ppf(0.975, 1) * np.array([2.0, 1.5, 3.5, 3.0])  # the standard error of two numbers is half their distance
    np.testing.assert_allclose(of.low, of.mean - half)
    np.testing.assert_allclose(of.high, of.mean + half)
    alone = band([a])
    assert alone.mean.tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(alone.low).all() and np.isnan(alone.high).all()
    late = Curve(np.array([50]), np.array([7.0]))
    both = band([a, late])
    assert (both.x.tolist(), both.mean.tolist(), both.together) == ([50], [5.0], 0)  # a was over by then


def test_the_figure_shows_what_was_computed(statuses):
    figure = draw_suite(statuses)
    frostbite, pong = figure.axes
    assert [panel.get_title() for panel in figure.axes] == ["frostbite", "pong"]
    legends = [[text.get_text() for text in panel.get_legend().get_texts()] for panel in figure.axes]
    assert legends == [["ga (n=3)", "rs (n=3)"], ["ga (n=3)", "rs (n=1)"]]
    assert frostbite.get_xlabel() == "frames"
    assert frostbite.get_ylabel() == "elite's test return"
    assert len(frostbite.collections) in (2, 3, 4) and len(pong.collections) in (1, 2)  # one run alone has no band
    for panel in figure.axes:
        named = {line.get_label(): line for line in panel.lines if line.get_label()[0] != "_"}
        beyond = [line for line in panel.lines if line.get_label() == "_beyond"]
        assert {line.get_linestyle() for line in beyond} == {":"}
        assert len(panel.lines) - len(beyond) == (2 + 6 if panel is frostbite else 2 + 3)  # thick ones, each run's
        for label, line in named.items():
            own = [e for e in statuses if (e.run.label, e.run.game) == (label.split()[0], panel.get_title())]
            of = band([curve_of(each) for each in own if each.played])
            rest = [each for each in beyond if each.get_color() == line.get_color()]
            assert len(rest) == (len(own) > 1 and of.together < len(of.x))
            x, mean = line.get_xdata().tolist(), line.get_ydata().tolist()
            for each in rest:  # goes on from the thick line's last point
                x += each.get_xdata().tolist()[1:]
                mean += each.get_ydata().tolist()[1:]
            assert (x, mean) == (of.x.tolist(), of.mean.tolist())
            assert line.get_drawstyle() == "steps-post"
    of = band([curve_of(each) for each in statuses if (each.run.label, each.run.game) == ("ga", "frostbite")])
    drawn = {tuple(vertex) for part in frostbite.collections for vertex in part.get_paths()[0].vertices}
    assert drawn >= set(zip(of.x, of.low, strict=True)) | set(zip(of.x, of.high, strict=True))
    colors = [[line.get_color() for line in panel.lines if line.get_label()[0] != "_"] for panel in figure.axes]
    assert colors[0] == colors[1] and len(set(colors[0])) == 2


def test_the_figures_files(statuses):
    files = figure_files(draw_suite(statuses))
    assert files == figure_files(draw_suite(statuses))
    by_time = figure_files(draw_suite(statuses, "time"), "curves_time")
    assert by_time.keys() == {"curves_time.png", "curves_time.pdf"}
    assert by_time["curves_time.png"] != files["curves.png"]
    assert files["curves.png"].startswith(b"\x89PNG") and files["curves.pdf"].startswith(b"%PDF")


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.6, 3725, 360_000)] == ["0:00:00", "0:01:00", "1:02:05", "100:00:00"]
