"""The report of a suite: tables and learning curves against numbers computed from the runs' files in other ways."""

import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.clock import clock
from neuroevo.learning_curves import Curve, band, curve, draw, figure_files
from neuroevo.run_folder import RunFolder
from neuroevo.suite_report import lines, text_table, write_report
from neuroevo.suite_standing import standing
from tests.runs import play
from tests.suites import load, table, write
from tests.toy import ToyEvaluator

ROOT = Path(__file__).parents[1]
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
def standings(suite):
    return [standing(run) for run in suite.runs]


def metrics(suite, label, game, seed):
    """The lines of metrics.jsonl."""
    return [
        json.loads(line)
        for line in (suite.out / label / game / f"seed-{seed}" / "metrics.jsonl").read_text().splitlines()
    ]


def test_the_status_of_every_run(suite, standings):
    found = {each.run.name: (each.status, len(each.rows)) for each in standings}
    other = {
        "rs/pong/seed-1": ("not started", 0),
        "rs/pong/seed-2": ("unfinished", 0),
        "ga/pong/seed-2": ("unfinished", 2),
    }
    assert found == {run.name: ("finished", 4) for run in suite.runs} | other


def test_the_table_in_numbers(suite, standings):
    write_report(standings, suite.out)
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


def test_a_row_for_every_run(suite, standings):
    write_report(standings, suite.out)
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


def test_the_table_as_text(suite, standings):
    text = text_table(standings).splitlines()
    first = lines(standings)[0]
    score = first.score
    cells = ["frostbite", "ga", "3", "3 of 3", f"{score.mean:.2f}", f"{score.standard_error:.2f}"]
    cells += [f"{score.low:.2f} to {score.high:.2f}", "test", "4", f"{first.frames_mean:,.0f}"]
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
    (line,) = lines([standing(run)])
    last = json.loads((run.folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert (line.score_of, line.score.mean, line.score.n) == ("validation", last["validation_mean"], 1)


def test_another_configurations_run_is_no_result(tmp_path):
    (run,) = load(tmp_path, 'configs = ["ga.toml"]').runs
    play(RunFolder.create(run.folder, run.config))
    (other,) = load(tmp_path, 'configs = ["ga.toml"]', overrides=["algorithm.sigma=0.5"]).runs
    now = standing(other)
    assert (now.status, now.rows) == ("unusable", [])
    assert now.reason == f"{run.folder} holds a run of another configuration"
    assert f"  ga/frostbite/seed-0: {now.reason}" in text_table([now]).splitlines()
    (run.folder / "config.toml").write_text("nonsense = ")
    assert standing(run).status == "unusable"
    assert "is not valid TOML" in standing(run).reason


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
    text = write_report([standing(run) for run in suite.runs], suite.out)
    assert "  ga/frostbite/seed-0: not started" in text
    assert (suite.out / "curves.png").read_bytes().startswith(b"\x89PNG")


def brute_force(curves, frames):
    """Mean and 95% bounds at one point, from lists of (frames, score), with scipy's t distribution."""
    values = [[score for at, score in points if at <= frames][-1] for points in curves]
    mean, n = statistics.fmean(values), len(values)
    half = t.ppf(0.975, n - 1) * statistics.stdev(values) / n**0.5
    return mean, mean - half, mean + half


def test_a_band_is_students_at_every_step_of_a_curve(suite, standings):
    own = [each for each in standings if (each.run.label, each.run.game) == ("ga", "frostbite")]
    points = [
        [(row["frames_total"], row["test_mean"]) for row in metrics(suite, "ga", "frostbite", seed)]
        for seed in range(3)
    ]
    assert len({tuple(frames for frames, _ in run) for run in points}) == 3  # no two runs step together
    of = band([curve(each) for each in own])
    begin, end = max(run[0][0] for run in points), min(run[-1][0] for run in points)
    grid = sorted({frames for run in points for frames, _ in run if begin <= frames <= end})
    assert len(grid) > 6
    assert of.frames.tolist() == grid
    expected = np.array([brute_force(points, frames) for frames in grid])
    np.testing.assert_allclose(np.stack([of.mean, of.low, of.high], axis=1), expected, rtol=1e-9)
    between = (of.frames[:-1] + of.frames[1:]) // 2  # as drawn, each value up to the next step
    np.testing.assert_allclose(of.mean[:-1], [brute_force(points, frames)[0] for frames in between], rtol=1e-9)


def test_curves_by_hand():
    a = Curve(np.array([10, 20, 40]), np.array([1.0, 2.0, 3.0]))
    b = Curve(np.array([15, 30]), np.array([5.0, 9.0]))
    assert a.at(np.array([10, 19, 20, 40])).tolist() == [1.0, 1.0, 2.0, 3.0]
    of = band([a, b])
    assert of.frames.tolist() == [15, 20, 30]  # from b's first point to its last, where a still holds 2
    assert of.mean.tolist() == [3.0, 3.5, 5.5]
    half = t.ppf(0.975, 1) * np.array([2.0, 1.5, 3.5])  # the standard error of two numbers is half their distance
    np.testing.assert_allclose(of.low, of.mean - half)
    np.testing.assert_allclose(of.high, of.mean + half)
    alone = band([a])
    assert alone.mean.tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(alone.low).all() and np.isnan(alone.high).all()
    late = Curve(np.array([50]), np.array([7.0]))
    assert band([a, late]).frames.size == band([a, late]).mean.size == 0


def test_the_figure_shows_what_was_computed(standings):
    figure = draw(standings)
    frostbite, pong = figure.axes
    assert [panel.get_title() for panel in figure.axes] == ["frostbite", "pong"]
    legends = [[text.get_text() for text in panel.get_legend().get_texts()] for panel in figure.axes]
    assert legends == [["ga (n=3)", "rs (n=3)"], ["ga (n=3)", "rs (n=1)"]]
    assert frostbite.get_xlabel() == "frames"
    assert frostbite.get_ylabel() == "elite's test return"
    assert len(frostbite.collections) == 2 and len(pong.collections) == 1  # one run alone has no band
    for panel in figure.axes:
        named = {line.get_label(): line for line in panel.lines if line.get_label()[0] != "_"}
        assert len(panel.lines) == (2 + 6 if panel is frostbite else 2 + 3)  # thick ones and each run's
        for label, line in named.items():
            own = [e for e in standings if (e.run.label, e.run.game) == (label.split()[0], panel.get_title())]
            of = band([curve(each) for each in own if each.played])
            assert line.get_xdata().tolist() == of.frames.tolist()
            assert line.get_ydata().tolist() == of.mean.tolist()
            assert line.get_drawstyle() == "steps-post"
    of = band([curve(each) for each in standings if (each.run.label, each.run.game) == ("ga", "frostbite")])
    drawn = {tuple(vertex) for vertex in frostbite.collections[0].get_paths()[0].vertices}
    assert drawn >= set(zip(of.frames, of.low, strict=True)) | set(zip(of.frames, of.high, strict=True))
    colors = [[line.get_color() for line in panel.lines if line.get_label()[0] != "_"] for panel in figure.axes]
    assert colors[0] == colors[1] and len(set(colors[0])) == 2


def test_the_figures_files(standings):
    files = figure_files(draw(standings))
    assert files == figure_files(draw(standings))
    assert files["curves.png"].startswith(b"\x89PNG") and files["curves.pdf"].startswith(b"%PDF")


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.6, 3725, 360_000)] == ["0:00:00", "0:01:00", "1:02:05", "100:00:00"]
