"""Plots of runs: curves against metrics.csv, grouping of runs that differ only in their seed, and errors."""

import csv
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import neuroevo
from neuroevo.analysis.curves import figure_bytes
from neuroevo.analysis.run_plots import grouped, plot
from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.core.statistics import summarize
from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, interrupted_run, new_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of one configuration, a run with a different sigma and more generations, and a run on another game."""
    folder = tmp_path_factory.mktemp("plots")
    new_run(folder / "a", training={"seed": 1})
    new_run(folder / "b", training={"seed": 2, "generations": 4})
    new_run(folder / "c", algorithm={"sigma": 0.05}, training={"generations": 7})
    new_run(folder / "d", env={"name": "pong"})
    return {name: neuroevo.open_run(folder / name) for name in "abcd"}


def columns(run, *names):
    with (run.path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [[float(row[name]) for row in rows] for name in names]


def lines(panel):
    return {line.get_label(): line for line in panel.lines if line.get_label()[0] != "_"}


@pytest.mark.parametrize(
    ("x", "column", "scale"),
    [("frames", "frames_total", 1), ("steps", "steps_total", 1), ("time", "seconds_total", 60)],
)
def test_a_run_alone_shows_population_and_elites(runs, x, column, scale):
    (panel,) = runs["a"].plot(x).axes
    shown = lines(panel)
    names = {"best of the population": "fitness_max", "mean of the population": "fitness_mean",
             "elite, validation": "validation_mean", "elite, test ± standard error": "test_mean"}  # fmt: skip
    assert shown.keys() == names.keys()
    for label, name in names.items():
        at, values = columns(runs["a"], column, name)
        assert shown[label].get_xdata().tolist() == pytest.approx([each / scale for each in at])
        assert shown[label].get_ydata().tolist() == values
    assert panel.get_title() == "ga on frostbite, seed 1"
    means, errors = columns(runs["a"], "test_mean", "test_standard_error")
    drawn = panel.collections[0].get_paths()[0].vertices[:, 1]
    assert set(np.subtract(means, errors)) | set(np.add(means, errors)) <= set(drawn)


def test_generations_are_counted(runs):
    (panel,) = runs["a"].plot("generations", "sigma").axes
    (line,) = panel.lines
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5] and set(line.get_ydata()) == {0.2}
    assert panel.get_ylabel() == "sigma"


def test_seeds_are_one_line_and_environments_panels(runs):
    panels = plot(list(runs.values()), "generations").axes
    assert [panel.get_title() for panel in panels] == ["frostbite", "pong"]
    frostbite, pong = map(lines, panels)
    assert list(frostbite) == ["ga, sigma=0.2 (n=2)", "ga, sigma=0.05 (n=1)"]
    assert list(pong) == ["ga, sigma=0.2 (n=1)"]
    scores = [columns(runs[name], "test_mean")[0] for name in "ab"]
    expected = [summarize(np.array([a, b])).mean for a, b in zip(*scores, strict=False)]
    thick = frostbite["ga, sigma=0.2 (n=2)"]
    assert thick.get_ydata().tolist() == pytest.approx(expected)  # up to the end of the shorter run
    (dotted,) = [line for line in panels[0].lines if line.get_linestyle() == ":"]
    assert dotted.get_xdata().tolist() == [4, 5]
    assert dotted.get_ydata().tolist() == pytest.approx([expected[3], (scores[0][4] + scores[1][3]) / 2])


def test_labels_say_what_differs(runs, tmp_path):
    new_run(tmp_path / "rs", algorithm={"name": "random_search", "population": 8, "validation_candidates": 3})
    new_run(tmp_path / "sticky", env={"name": "frostbite", "options": {"repeat_action_probability": 0.25}})
    both = [runs["a"], neuroevo.open_run(tmp_path / "rs"), neuroevo.open_run(tmp_path / "sticky")]
    labels = [label for _, label in grouped(both)]
    assert [label.split(", ")[0] for label in labels] == ["ga", "random_search", "ga"]
    assert labels[2].endswith("options.repeat_action_probability=0.25") and len(set(labels)) == 3
    assert [label for _, label in grouped([runs["a"], runs["b"]])] == ["ga"]


def test_labels_of_runs_that_differ_in_much_fit(runs, tmp_path, recwarn):
    algorithm = {"name": "ga", "population": 10, "parents": 4, "sigma": 0.123456789, "validation_candidates": 4}
    training = {"generations": 3, "validation_episodes": 3, "test_episodes": 3, "max_episode_steps": 1234}
    new_run(tmp_path / "other", algorithm=algorithm, training=training, network={"name": "large_model"})
    other = neuroevo.open_run(tmp_path / "other")
    assert [label for _, label in grouped([runs["d"], other])] == ["ga", "ga"]  # in different panels
    figure = plot([runs["a"], other])
    figure_bytes(figure, "png")
    assert not recwarn.list  # matplotlib warns if a legend does not fit
    (panel,) = figure.axes
    legend, axes = (each.get_window_extent() for each in (panel.get_legend(), panel))
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1 and axes.height > figure.bbox.y1 / 4


def test_without_test_episodes_validation_is_drawn(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        new_run(tmp_path / name, training={"seed": seed, "test_episodes": 0})
    folders = [neuroevo.open_run(tmp_path / name) for name in "ab"]
    (panel,) = plot(folders).axes
    assert panel.get_ylabel() == "elite's validation return"
    assert "elite, test ± standard error" not in lines(folders[0].plot().axes[0])


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_the_command_writes_the_same_picture_again(runs, tmp_path, kind):
    out = tmp_path / f"curves.{kind}"
    words = ["plot", *(str(run.path) for run in runs.values()), "--out", str(out), "--x", "time"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (0, f"wrote {out}: 4 runs against time\n")
    first = out.read_bytes()
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind])
    assert first == figure_bytes(plot(list(runs.values()), "time"), kind)
    if kind != "png":
        return
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 2 and f"{out} exists already" in again.output
    assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--y", "sigm"], "has no column sigm; did you mean sigma? (columns: generation, sigma, "),
        (["--out", "curves.jpg"], "--out curves.jpg: expected a name that ends in .png, .pdf, .svg"),
        (["--out", "absent/curves.png"], "absent"),
        (["--x", "days"], "'days' is not one of"),
    ],
)
def test_mistakes(runs, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["plot", str(runs["a"].path), *words])
    assert result.exit_code == 2 and expected in result.output
    assert not list(tmp_path.iterdir())


def test_a_folder_stands_for_the_runs_below_it(runs, tmp_path, monkeypatch):
    for name in ("1", "deep/er/2"):
        shutil.copytree(runs["a"].path, tmp_path / "all" / name)
    (tmp_path / "all/0").mkdir()
    (tmp_path / "all/0/config.toml").write_text("[of]\nanother = 'program'\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["plot", "all", "all/1"])
    assert result.exit_code == 0 and "wrote curves.png: 2 runs against frames" in result.output
    result = CliRunner().invoke(app, ["evaluate", "all"])
    expected = "there is no run in all: expected all/run.db; 2 runs are below it, such as all/1"
    assert result.exit_code == 2 and expected in " ".join(result.stderr.split())


def test_runs_that_are_none_or_too_young(runs, tmp_path):
    result = CliRunner().invoke(app, ["plot", str(tmp_path / "nowhere")])
    assert result.exit_code == 2 and "there is no run in" in result.output
    young = interrupted_run(tmp_path / "young", 0)
    result = CliRunner().invoke(app, ["plot", str(young)])
    assert result.exit_code == 2 and f"{young} has no finished generation to draw" in result.output
    with pytest.raises(UserError, match="the axis is 'day', expected one of frames, steps, time, generations"):
        runs["a"].plot("day")
    with RunFolder.create(tmp_path / "going", config()).open(["test"]):  # during training
        assert CliRunner().invoke(app, ["plot", str(tmp_path / "going")]).exit_code == 2
