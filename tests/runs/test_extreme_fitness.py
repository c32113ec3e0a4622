"""Extreme but finite returns do not end a run, and every command can read the run afterwards."""

import json
import sys
import warnings
from itertools import cycle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neuroevo
from neuroevo.analysis.curves import figure_bytes
from neuroevo.analysis.evaluation import evaluate
from neuroevo.analysis.run_plots import plot
from neuroevo.inspector.inspection import Inspection
from neuroevo.inspector.payload import text
from neuroevo.sessions.folder import RunFolder
from tests.support import toy
from tests.support.databases import read_rows
from tests.support.runs import new_run, play
from tests.support.toy import ToyEvaluator
from tests.training.test_tensorboard import events

LARGEST = sys.float_info.max
ANSWERS = ("overview", "curves/fitness_std", "curves/test_mean", "alone/0", "about/0", "cloud/0", "generation/0/0")
ANSWERS += ("generation/0/1", "way/0", "family/0/1/0", "ancestors/0/0")


class Returns(ToyEvaluator):
    """Evaluator with these returns, one episode after another."""

    def __init__(self, returns, interrupt_at=None):
        super().__init__(interrupt_at)
        self._returns = cycle(returns)

    def play(self, episode):
        return next(self._returns)


def check(path, returns, episodes):
    """A run is interrupted, resumed and read; statistics are finite and within the range of the returns."""
    changes = {"training": {"generations": 3, "episodes": episodes}, "checkpoints": {"every": 1}}
    with pytest.raises(KeyboardInterrupt):
        new_run(path, Returns(returns, interrupt_at=4), **changes)
    play(RunFolder.resume(path), Returns(returns))
    rows = read_rows(path)
    assert len(rows) == 3
    for row in rows:
        json.dumps(row, allow_nan=False)
        assert row["fitness_min"] <= row["fitness_median"] <= row["fitness_max"]
        assert abs(row["fitness_mean"]) <= max(map(abs, returns)) * (1 + 1e-15)
        assert 0 <= row["fitness_std"] <= max(row["fitness_max"] / 2 - row["fitness_min"] / 2, 0) * 2
    histograms = [v.histo for file in events(path) for e in file for v in e.summary.value if v.HasField("histo")]
    assert len(histograms) == 3 and all(sum(each.bucket) == each.num == 8 for each in histograms)
    with Inspection([path]) as inspection:
        for name in ANSWERS:
            text(inspection.answer(name))
        cloud = inspection.answer("cloud/0")
        assert all(low < high for low, high in zip(cloud["low"], cloud["high"], strict=True))
    run = neuroevo.open_run(path)
    evaluation = evaluate(Returns(returns), run.elite()[1], range(5))
    json.dumps(evaluation.row(), allow_nan=False)
    assert evaluation.lines()
    return run


@pytest.mark.thorough
@settings(max_examples=20)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8), st.sampled_from([1, 2]))
@example([0.6, 0.6000000000000001], 1)
@example([1e16], 1)
@example([1e16, 1e16 + 2], 1)
@example([1e308], 2)
@example([-1e308], 2)
@example([1e308, -1e308, 0.6], 1)
@example([LARGEST, -LARGEST, 5e-324], 1)
@example([LARGEST], 3)
@example([5e-324, 0.0, 1e-310], 1)
def test_a_run_survives_any_finite_fitness(tmp_path_factory, returns, episodes):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        check(tmp_path_factory.mktemp("extreme") / "run", returns, episodes)


@pytest.mark.parametrize("behaviors", [[(1e307, -1e307), (0, 0)], [(1e307, 1e307), (-1e307, -1e307)], [(1e200, 0)]])
def test_a_run_and_its_page_survive_any_finite_behaviors(tmp_path, monkeypatch, behaviors):
    drawn = cycle(behaviors)
    monkeypatch.setattr(toy, "theta", lambda genome: next(drawn))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        check(tmp_path / "run", [0.5, 1.0], 1)


@pytest.mark.parametrize("returns", [[0.6, 0.6000000000000001], [LARGEST, -LARGEST], [5e-324]])
def test_plots_of_such_runs(tmp_path, returns):
    run = check(tmp_path / "run", returns, 1)
    for column in (None, "fitness_mean", "fitness_std"):
        assert figure_bytes(plot([run], "generations", column), "png")
