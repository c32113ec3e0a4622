"""Reports on sweeps: tables and figures against numbers computed from the runs' files in other ways."""

import itertools
import shutil
import statistics
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

from neuroevo.analysis.curves import Curve, band, figure_files
from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.statistics import interval, summarize
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps.aggregates import aggregates, improvements
from neuroevo.sweeps.figures import curve_of, draw_curves, draw_profiles
from neuroevo.sweeps.report import lines, tables_of, text_of, write_report
from neuroevo.sweeps.status import TrialStatus, status_of
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Trial, load_sweep
from neuroevo.system.console import clock
from tests.support.databases import change
from tests.support.runs import play, read_rows
from tests.support.sweeps import load, table, write
from tests.support.toy import ToyEvaluator, call_of

ONE = 'configs = "ga.toml"\n'
GRID = """
configs = ["ga.toml", "rs.toml"]
games = ["frostbite", "pong"]
seeds = 3
set = ["training.generations=4"]
normalize = {frostbite = [-4, -2], pong = [-5, 0]}
"""
SEARCH = 'configs = "ga.toml"\ntrials = 5\nsearch = "random"'
SPACE = '"algorithm.sigma" = {log_uniform = [0.01, 1.0]}\n"network.name" = ["model", "large_model"]'
SCALES = {"frostbite": (-4.0, -2.0), "pong": (-5.0, 0.0)}


def begun(sweep):
    """Return the study of a new sweep."""
    sweep.out.mkdir(exist_ok=True)
    study = Study(sweep.out, new=True)
    study.begin(sweep, lambda trial: True)
    return study


def played(sweep, study, status="finished", evaluator=None):
    """Play the next trial; a trial that its evaluator interrupts stays unfinished."""
    trial = study.ask(sweep)
    folder = RunFolder.create(sweep.out / trial.folder, sweep.config(trial))
    if evaluator is None:
        play(folder)
    else:
        with pytest.raises(KeyboardInterrupt):
            play(folder, evaluator)
    now = status_of(sweep, trial)
    for step, row in enumerate(now.rows, 1):
        study.report(trial.number, step, row[now.metric])
    if status == "stopped":
        study.note(trial.number, stopped=1)
    if status != "running":
        study.tell(trial.number, status, now.value)


def found(sweep, study):
    return [status_of(sweep, trial) for trial in study.trials()]


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """12 trials; rs on pong failed with seed 1 and waits with seed 2, ga on pong was interrupted with seed 2."""
    sweep = load(tmp_path_factory.mktemp("grid"), GRID)
    study = begun(sweep)
    for trial in sweep.points[:-1]:
        if trial.name == "rs/pong/seed-1":
            study.tell(study.ask(sweep).number, "failed", reason="ended with exit code 1\nwhy")
        else:
            going = trial.name == "ga/pong/seed-2"
            played(sweep, study, *(["running", ToyEvaluator(interrupt_at=7)] if going else []))  # 3 calls a generation
    return sweep, study


@pytest.fixture(scope="module")
def report(grid):
    """Write the report and return its text."""
    sweep, study = grid
    return write_report(sweep, found(sweep, study), study)


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """Two finished trials, one stopped after its first generation, one that failed, and one that has just begun."""
    sweep = load(tmp_path_factory.mktemp("search"), SEARCH, SPACE)
    study = begun(sweep)
    played(sweep, study)
    played(sweep, study)
    played(sweep, study, "stopped", ToyEvaluator(interrupt_at=call_of(2, "population")))
    study.tell(study.ask(sweep).number, "failed", reason="its process died")
    study.ask(sweep)
    return sweep, study


def metrics(sweep, label, game, seed):
    return read_rows(sweep.out / label / game / f"seed-{seed}")


def made_up(scores):
    """Return statuses of trials with these scores, given by configuration and game."""
    config = load_config("smoke", ["training.test_episodes=2"])
    each = [(label, game, score) for label, of in scores.items() for game, own in of.items() for score in own]
    return [
        TrialStatus(Trial(number, label, game, number), config, "validation_mean", [{"test_mean": score}])
        for number, (label, game, score) in enumerate(each)
    ]


def test_the_status_of_every_trial(grid):
    sweep, study = grid
    other = {
        "rs/pong/seed-1": ("failed", 0),
        "rs/pong/seed-2": ("waiting", 0),
        "ga/pong/seed-2": ("running", 2),
    }
    assert {each.trial.name: (each.trial.status, len(each.rows)) for each in found(sweep, study)} == {
        trial.name: ("finished", 4) for trial in sweep.points
    } | other


@pytest.mark.usefixtures("report")
def test_the_table_in_numbers(grid):
    sweep, _ = grid
    rows = table(sweep.out / "table.csv", without=())
    counts = {"frostbite ga": (3, 3), "frostbite rs": (3, 3), "pong ga": (3, 2), "pong rs": (1, 1)}
    assert [f"{row['game']} {row['config']}" for row in rows] == list(counts)
    for row, (seeds, finished) in zip(rows, counts.values(), strict=True):
        last = [metrics(sweep, row["config"], row["game"], seed)[-1] for seed in range(seeds)]
        scores = [each["test_mean"] for each in last]
        assert (row["runs"], row["finished"], row["seeds"]) == ("3", str(finished), str(seeds))
        assert row["score_of"] == "test"
        assert float(row["score_mean"]) == pytest.approx(statistics.fmean(scores), rel=1e-12)
        assert float(row["generations_mean"]) == pytest.approx(statistics.fmean(e["generation"] + 1 for e in last))
        assert float(row["frames_mean"]) == pytest.approx(statistics.fmean(e["steps_total"] * 4 for e in last))
        assert float(row["seconds_mean"]) == pytest.approx(statistics.fmean(e["seconds_total"] for e in last))
        assert float(row["seconds_sum"]) == pytest.approx(sum(e["seconds_total"] for e in last), abs=1e-6)
        if len(scores) == 1:
            assert (row["score_standard_error"], row["score_low95"], row["score_iqm_low95"]) == ("", "", "")
            continue
        error = statistics.stdev(scores) / len(scores) ** 0.5
        low, high = t.interval(0.95, len(scores) - 1, loc=statistics.fmean(scores), scale=error)
        assert float(row["score_standard_error"]) == pytest.approx(error, rel=1e-9)
        assert float(row["score_low95"]) == pytest.approx(low, rel=1e-9)
        assert float(row["score_high95"]) == pytest.approx(high, rel=1e-9)


def test_interquartile_means_over_all_games(grid, report):
    sweep, study = grid
    ga, rs = table(sweep.out / "aggregates.csv")
    assert (ga["games"], ga["runs"], rs["games"], rs["runs"]) == ("2", "6", "2", "4")
    normalized = [
        (metrics(sweep, "ga", game, seed)[-1]["test_mean"] - low) / (high - low)
        for game, (low, high) in SCALES.items()
        for seed in range(3)
    ]
    assert float(ga["iqm"]) == pytest.approx(statistics.fmean(sorted(normalized)[1:5]))  # the middle of six
    assert float(ga["iqm_low95"]) < float(ga["iqm"]) < float(ga["iqm_high95"])
    assert min(normalized) <= float(ga["iqm_low95"]) and float(ga["iqm_high95"]) <= max(normalized)
    assert rs["iqm_low95"] == ""  # one game has one run
    (row,) = [line.split() for line in report.splitlines() if line.split()[:3] == ["ga", "2", "6"]]
    assert row[3:] == [f"{float(ga[key]):.3f}" if key else "to" for key in ("iqm", "iqm_low95", "", "iqm_high95")]
    better = table(sweep.out / "improvement.csv")
    assert [(row["config"], row["than"]) for row in better] == [("ga", "rs"), ("rs", "ga")]
    assert sum(float(row["probability"]) for row in better) == pytest.approx(1)
    assert f"{float(better[0]['probability']):.3f}" in report and better[0]["low95"] == ""
    without = replace(sweep, scales={})
    plain = text_of(without, found(sweep, study), tables_of(without, found(sweep, study)))
    assert "all games" not in plain and "better" not in plain
    assert aggregates(found(sweep, study), {}) == improvements(found(sweep, study), {}) == []


def test_the_probability_of_improvement():
    """Two games with three seeds: all pairs, and an interval from all possible resamples."""
    own = {"frostbite": [1.0, 2.0, 5.0], "pong": [-3.0, 4.0, 4.0]}
    theirs = {"frostbite": [1.0, 1.5, 3.0], "pong": [-5.0, 4.0, 6.0]}
    statuses = made_up({"a": own, "b": theirs, "c": {"pong": [9.0]}})
    games = {game: improved(own[game], theirs[game]) for game in own}
    found = {(row["config"], row["than"]): row for row in improvements(statuses, SCALES)}
    of = found["a", "b"]
    assert of["probability"] == pytest.approx(statistics.fmean(games.values()))
    assert found["b", "a"]["probability"] == pytest.approx(1 - of["probability"])
    every = [
        [
            improved(x, y)
            for x in itertools.product(own[game], repeat=3)
            for y in itertools.product(theirs[game], repeat=3)
        ]
        for game in own
    ]
    means = np.add.outer(*map(np.array, every)) / 2
    np.testing.assert_allclose([of["low95"], of["high95"]], np.percentile(means, [2.5, 97.5]), atol=0.03)
    assert (found["c", "a"]["probability"], found["c", "a"]["low95"]) == (1, None)  # of pong alone, with one seed


def improved(own, theirs):
    """Return the probability that a number of the first list is larger than one of the second; a draw counts half."""
    return statistics.fmean((a > b) + (a == b) / 2 for a in own for b in theirs)


def test_performance_profiles():
    scores = {"a": {"frostbite": [-3.0, -2.0, -1.0], "pong": [-4.0, 1.0]}, "b": {"frostbite": [-4.5], "pong": []}}
    (panel,) = draw_profiles(made_up(scores), SCALES).axes
    first, second = panel.lines
    assert [first.get_label(), second.get_label()] == ["a", "b"]
    marks = first.get_xdata()
    assert marks[0] == -0.25 and marks[-1] == 1.5  # from the lowest to the largest normalized score
    a = [[0.5, 1.0, 1.5], [0.2, 1.2]]
    expected = [statistics.fmean(statistics.fmean(x > mark for x in game) for game in a) for mark in marks]
    np.testing.assert_allclose(first.get_ydata(), expected)
    np.testing.assert_allclose(second.get_ydata(), [mark < -0.25 for mark in marks])


@pytest.mark.usefixtures("report")
def test_a_row_for_every_trial(grid):
    sweep, _ = grid
    rows = table(sweep.out / "runs.csv", without=())
    assert [row["folder"] for row in rows] == [trial.folder for trial in sweep.points]
    assert [int(row["trial"]) for row in rows] == list(range(12))
    for row in rows:
        assert row["folder"] == f"{row['config']}/{row['game']}/seed-{row['seed']}"
        if row["folder"] in ("rs/pong/seed-1", "rs/pong/seed-2"):
            assert row["status"] == {"1": "failed", "2": "waiting"}[row["seed"]]
            assert (row["score"], row["generations"], row["frames"], row["seconds"]) == ("", "0", "", "")
            continue
        last = metrics(sweep, row["config"], row["game"], row["seed"])[-1]
        assert float(row["score"]) == last["test_mean"] and float(row["validation_mean"]) == last["validation_mean"]
        assert int(row["generations"]) == last["generation"] + 1
        assert int(row["frames"]) == last["steps_total"] * 4 == 4 * int(row["steps"])
        assert float(row["seconds"]) == last["seconds_total"]


def test_the_table_as_text(grid):
    sweep, study = grid
    statuses = found(sweep, study)
    text = text_of(sweep, statuses, tables_of(sweep, statuses)).splitlines()
    first = {name: f"{value:,.2f}" for name, value in lines(statuses)[0].items() if isinstance(value, float)}
    cells = ["frostbite", "ga", "3", "3 of 3", first["score_mean"], first["score_standard_error"]]
    cells += [f"{first['score_low95']} to {first['score_high95']}", first["score_iqm"]]
    cells += [f"{first['score_iqm_low95']} to {first['score_iqm_high95']}"]
    cells += ["test", "4", first["frames_mean"].removesuffix(".00")]
    assert text[2].startswith("frostbite  ")
    rows = [[cell.strip() for cell in line.split("  ") if cell] for line in text[:6]]
    assert rows[2][: len(cells)] == cells
    assert rows[4][2:4] == ["3", "2 of 3"]
    assert rows[5][2:4] == ["1", "1 of 3"] and rows[5][5:7] == ["n=1", "-"]
    assert len({len(line) for line in text[:6]}) == 1
    at = text.index("3 of 12 trials are not finished:")
    assert text[at + 1] == "  rs/pong/seed-1: failed: ended with exit code 1"
    assert text[at + 2].startswith("  ga/pong/seed-2: running, 2 generations, elite test -")
    assert text[at + 3 :] == ["  rs/pong/seed-2: waiting"]


def test_values_of_a_grid_are_rows_of_their_own(tmp_path):
    sweep = load(tmp_path, ONE + "seeds = 2", '"algorithm.sigma" = [0.25, 0.5]')
    statuses = [status_of(sweep, trial) for trial in sweep.points]
    assert [(row["config"], row["runs"]) for row in lines(statuses)] == [("ga sigma 0.25", 2), ("ga sigma 0.5", 2)]
    sweep = load(tmp_path, ONE, '"training.seed" = [5, 8]')
    (row,) = lines([status_of(sweep, trial) for trial in sweep.points])
    assert (row["config"], row["runs"]) == ("ga", 2)


def test_validation_is_the_score_where_there_are_no_test_episodes(tmp_path):
    sweep = load(tmp_path, ONE, overrides=["training.test_episodes=0"])
    study = begun(sweep)
    played(sweep, study)
    (row,) = lines(found(sweep, study))
    last = read_rows(sweep.out / "ga/frostbite/seed-0")[-1]
    assert (row["score_of"], row["score_mean"], row["seeds"]) == ("validation", last["validation_mean"], 1)


def test_a_run_that_is_no_result_is_named(tmp_path):
    """Runs of another configuration, damaged runs, and missing runs of finished trials."""
    sweep = load(tmp_path, ONE)
    study = begun(sweep)
    played(sweep, study)
    folder = sweep.out / "ga/frostbite/seed-0"

    def reason(of):
        (now,) = found(of, study)
        assert now.rows == [] and lines([now])[0]["finished"] == 0
        assert text_of(of, [now], tables_of(of, [now])).splitlines()[-2:] == [
            "1 of 1 trials cannot be read:",
            f"  ga/frostbite/seed-0: {now.reason}",
        ]
        return now.reason

    other = load(tmp_path, ONE, overrides=["algorithm.sigma=0.5"])
    assert reason(other) == f"{folder} holds a run of another configuration"
    change(folder, "UPDATE run SET config = 'nonsense = '")
    assert "run.db is damaged: its table run " in reason(sweep)
    shutil.rmtree(folder)
    assert reason(sweep) == f"there is no run in {folder}"


def test_report_only_starts_nothing(grid):
    sweep, _ = grid
    before = sorted(sweep.out.glob("*/*/*"))
    file = sweep.out.parent / "sweep.toml"
    result = CliRunner().invoke(app, ["sweep", str(file), "--out", str(sweep.out), "--report-only"])
    assert result.exit_code == 0, result.stderr
    assert (sweep.out / "table.txt").read_text() in result.stdout
    assert sorted(sweep.out.glob("*/*/*")) == before


def test_a_disk_without_room_for_the_report(tmp_path, toy_command):
    """A full disk, simulated by a limit on file sizes, is not a user error, unlike an unusable folder."""
    sweep = load(tmp_path, ONE)
    played(sweep, begun(sweep))
    before = {path.name for path in sweep.out.iterdir()}

    def report(**options):
        words = ["sweep", str(tmp_path / "sweep.toml"), "--out", str(sweep.out), "--report-only"]
        done = toy_command(*words, **options)
        return done.returncode, done.stderr

    assert report(largest_file=100) == (1, f"neuroevo: cannot write the report into {sweep.out}: File too large\n")
    assert {path.name for path in sweep.out.iterdir()} == before
    (sweep.out / "table.txt").mkdir()
    assert report() == (2, f"neuroevo: cannot write the report into {sweep.out}: Is a directory\n")


def test_a_report_alone_needs_trials(tmp_path):
    file, out = write(tmp_path, ONE), tmp_path / "out"

    def error():
        result = CliRunner().invoke(app, ["sweep", str(file), "--out", str(out), "--report-only"])
        assert (result.exit_code, result.stdout) == (2, "")
        return result.stderr

    assert error() == f"neuroevo: there is no sweep in {out}: expected {out / 'sweep.db'}\n"
    assert not out.exists()
    sweep = load_sweep(file, out=out)
    study = begun(sweep)
    assert error() == f"neuroevo: no trial of {file} in {out} has started; omit --report-only to start them\n"
    assert "  ga/frostbite/seed-0: waiting" in write_report(sweep, found(sweep, study), study)
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    (out / "sweep.db").write_bytes(b"nonsense" * 1000)
    assert error().startswith(f"neuroevo: {out / 'sweep.db'} cannot be read: ")


def test_trials_of_a_search_by_their_metric(search):
    sweep, study = search
    statuses = found(sweep, study)
    rows = read_rows(sweep.out / "trial-00000")
    assert statuses[0].value == rows[-1]["validation_mean"] and len(statuses[0].rows) == 3
    assert statuses[0].test == interval(2, rows[-1]["test_mean"], rows[-1]["test_standard_error"])
    assert statuses[4].value is None and statuses[4].test.mean is None


def test_a_stopped_trial_counts_with_the_generations_until_then(search):
    """A stopped trial's process plays further generations until it receives the signal."""
    sweep, study = search
    now = found(sweep, study)[2]
    first, _ = read_rows(sweep.out / "trial-00002", fitness=False)
    assert now.rows == [first] and now.value == first["validation_mean"] and now.test.mean == first["test_mean"]


def test_the_report_on_a_search(search):
    sweep, study = search
    statuses = found(sweep, study)
    text = write_report(sweep, statuses, study)
    assert (sweep.out / "table.txt").read_text() == text
    head, rule, *rows = text.split("\n\n")[0].splitlines()
    assert head.split()[:4] == ["trial", "algorithm.sigma", "network.name", "validation_mean"] and set(rule) == {"-"}
    best = sorted(statuses[:3], key=lambda now: -now.value)
    assert rows[0].split()[:4] == [
        str(best[0].trial.number),
        f"{best[0].trial.values['algorithm.sigma']:.4g}",
        best[0].trial.values["network.name"],
        f"{best[0].value:.2f}",
    ]
    assert [int(row.split()[0]) for row in rows] == [*(now.trial.number for now in best), 3, 4]
    assert rows[3].split()[-1] == "failed"
    assert "2 of 5 trials are not finished:\n  trial-00003: failed: its process died\n  trial-00004: running\n" in text
    cells = table(sweep.out / "runs.csv", without=())
    assert [row["status"] for row in cells] == ["finished", "finished", "stopped", "failed", "running"]
    for row, now in zip(cells, statuses, strict=True):
        assert float(row["algorithm.sigma"]) == now.trial.values["algorithm.sigma"]
        assert row["validation_mean"] == ("" if now.value is None else str(now.value))
    assert float(cells[0]["test_low95"]) == statuses[0].test.low
    for name in ("curves", "parallel", "slices", "importance"):
        assert (sweep.out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (sweep.out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert not (sweep.out / "table.csv").exists()


def test_a_seed_that_is_searched_is_shown(tmp_path):
    sweep = load(tmp_path, SEARCH, '"training.seed" = [5, 8]')
    study = begun(sweep)
    seeds = [study.ask(sweep).seed for _ in range(5)]
    statuses = found(sweep, study)
    rows = text_of(sweep, statuses, tables_of(sweep, statuses)).split("\n\n")[0].splitlines()[2:]
    assert [int(row.split()[1]) for row in rows] == seeds and set(seeds) <= {5, 8}


def test_a_report_on_a_search_that_has_just_begun(tmp_path):
    sweep = load(tmp_path, SEARCH, SPACE)
    study = begun(sweep)
    study.ask(sweep)
    assert "  trial-00000: running\n" in write_report(sweep, found(sweep, study), study)
    assert (sweep.out / "curves.png").exists() and not (sweep.out / "parallel.png").exists()
    study.tell(0, "finished", float("nan"))
    played(sweep, study)
    write_report(sweep, found(sweep, study), study)
    assert (sweep.out / "parallel.png").exists()


def test_a_fork_counts_with_its_history(search):
    sweep, study = search
    first = found(sweep, study)[0]
    name = "trial-00000-fork-000003"
    RunFolder.fork(sweep.out / name, sweep.out / "trial-00000", ["training.generations=9"]).open(["test"]).close()
    now = status_of(sweep, replace(first.trial, folder=name, status="running"))
    assert now.trial.name == "trial-00000"
    assert len(now.rows) == 3 and now.value == first.value


def test_an_interval_is_that_of_the_numbers():
    numbers = np.array([1.0, 4.0, 2.0, 8.0])
    of = summarize(numbers)
    assert interval(4, of.mean, of.standard_error) == of
    half = 3.182446305284263 * np.std(numbers, ddof=1) / 2  # of Student's t table for 3 degrees of freedom
    assert of.high - of.mean == pytest.approx(half)
    assert interval(1, 3.0, None).low is None


def of_group(statuses, label, game):
    return [each for each in statuses if (each.trial.label, each.trial.game) == (label, game)]


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


def test_the_figure_shows_what_was_computed(grid):
    statuses = found(*grid)
    figure = draw_curves(statuses)
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
            own = [each for each in of_group(statuses, label.split()[0], panel.get_title()) if each.played]
            of = band([curve_of(each) for each in own])
            rest = [each for each in beyond if each.get_color() == line.get_color()]
            assert len(rest) == (len(own) > 1 and of.together < len(of.x))
            x, mean = line.get_xdata().tolist(), line.get_ydata().tolist()
            for each in rest:  # continues from the thick line's last point
                x += each.get_xdata().tolist()[1:]
                mean += each.get_ydata().tolist()[1:]
            assert (x, mean) == (of.x.tolist(), of.mean.tolist())
            assert line.get_drawstyle() == "steps-post"
    of = band([curve_of(each) for each in of_group(statuses, "ga", "frostbite")])
    drawn = {tuple(vertex) for part in frostbite.collections for vertex in part.get_paths()[0].vertices}
    assert drawn >= set(zip(of.x, of.low, strict=True)) | set(zip(of.x, of.high, strict=True))
    colors = [[line.get_color() for line in panel.lines if line.get_label()[0] != "_"] for panel in figure.axes]
    assert colors[0] == colors[1] and len(set(colors[0])) == 2


def test_the_same_figure_has_the_same_files(grid):
    statuses = found(*grid)
    files = figure_files(draw_curves(statuses))
    assert files == figure_files(draw_curves(statuses)) and files.keys() == {"curves.png", "curves.pdf"}
    assert figure_files(draw_curves(statuses, "time"))["curves.png"] != files["curves.png"]


def test_clock():
    assert [clock(seconds) for seconds in (0, 59.6, 3725, 360_000)] == ["0:00:00", "0:01:00", "1:02:05", "100:00:00"]
