"""Searches and pruners give the same values and results, independent of interruptions."""

import optuna
import pytest

from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sweeps import driver
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.searches import make_pruner
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.study import DATABASE, NAME, Study
from tests.support.crashes import with_crashes
from tests.support.inline import Inline, InlineToys
from tests.support.runs import count_rows, results, timeless
from tests.support.sweeps import SIGMA, TOY_CHILD, Listener, load

ASHA = 'pruner = "asha"\npruner_options = {min_resource = 1, reduction_factor = 2}\n'
KINDS = {
    "grid": 'search = "grid"\n',
    "random and median": 'search = "random"\ntrials = 3\npruner = "median"\n'
    "pruner_options = {n_startup_trials = 2, n_warmup_steps = 0}\n",
    "tpe and asha": 'search = "tpe"\ntrials = 3\nsearch_options = {n_startup_trials = 2}\n' + ASHA,
    "cmaes and hyperband": 'search = "cmaes"\ntrials = 3\nsearch_options = {n_startup_trials = 2}\n'
    'pruner = "hyperband"\npruner_options = {min_resource = 1, reduction_factor = 2}\n',
    "qmc": 'search = "qmc"\ntrials = 3\n',
}
SPACE = SIGMA + '"algorithm.population" = {integer = [4, 8]}\n'
GRID = '"algorithm.sigma" = [0.1, 0.5]\n"algorithm.population" = [4, 6]\n'
PRUNED = 'configs = "ga.toml"\nsearch = "tpe"\ntrials = 4\nset = ["training.generations=6"]\n' + ASHA


@pytest.fixture
def inline(monkeypatch):
    """Return a function that runs a sweep in this process, with ToyEvaluators or the real ones."""
    monkeypatch.setattr(driver, "_POLL_SECONDS", 0)

    def run(sweep, watcher=None, executor=InlineToys):
        monkeypatch.setattr(driver, "Processes", executor)
        return run_sweep(sweep, watcher)

    return run


def outcome(sweep, trials):
    """Return a sweep's results, without clocks and the sweep's folder."""
    return [
        (trial, [timeless(row) for row in status_of(sweep, trial).rows], steps(sweep, trial.number)) for trial in trials
    ]


def steps(sweep, number):
    """Return the metric of each generation of a trial that was reported to the pruner."""
    found = Study(sweep.out).study.get_trials()
    return [each for each in found if each.user_attrs.get("number") == number][-1].intermediate_values


@pytest.mark.parametrize(
    ("kind", "name", "executor"),
    [("tpe and asha", "maze", Inline), *((kind, "ga", InlineToys) for kind in KINDS if "tpe" not in kind)],
)
def test_the_same_sweep_gives_the_same_values_and_results(inline, kind, name, executor, tmp_path):
    found = []
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        text = f'configs = "{name}.toml"\n{KINDS[kind]}'
        sweep, listener = load(folder, text, GRID if kind == "grid" else SPACE), Listener()
        trials = inline(sweep, listener, executor)
        assert [trial.number for trial in trials] == list(range(sweep.trials))
        assert {trial.status for trial in trials} <= {"finished", "stopped"}
        for trial in trials:
            reader = RunReader(sweep.out / trial.folder)
            assert reader.config.algorithm.sigma == trial.values["algorithm.sigma"]
            assert reader.config.algorithm.population == trial.values["algorithm.population"]
            assert reader.config.training.seed == trial.seed
            rows = reader.rows()
            assert [len(row["fitness"]) for row in rows] == [trial.values["algorithm.population"]] * 3
            told = steps(sweep, trial.number)
            assert told == {place + 1: row["validation_mean"] for place, row in enumerate(rows[: trial.stopped])}
            assert (trial.status == "finished") == (trial.stopped in (None, 3))
        found.append((outcome(sweep, trials), [results(sweep.out / trial.folder) for trial in trials]))
        again = Listener()
        assert inline(sweep, again, executor) == trials and again.events == []
    assert found[0] == found[1]
    assert len({str(trial.values) for trial, *_ in found[0][0]}) == len(found[0][0])
    assert len({trial.seed for trial, *_ in found[0][0]}) == (1 if kind == "grid" else len(found[0][0]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if " and " in kind])
def test_pruners_end_trials(inline, kind, tmp_path):
    text = f'configs = "ga.toml"\n{KINDS[kind].replace("trials = 3", "trials = 8")}set = ["training.generations=4"]'
    trials = inline(load(tmp_path, text))
    stopped = [trial.stopped for trial in trials if trial.status == "stopped"]
    assert len(trials) == 8 and 0 < len(stopped) < 8 and all(1 <= after < 4 for after in stopped)
    assert {trial.stopped for trial in trials if trial.status == "finished"} <= {None, 4}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_pruned_trial_does_not_depend_on_when_its_process_stops(inline, tmp_path, monkeypatch):
    """Inline its run is at its end before the pruner is asked; a process is stopped while it plays."""
    (tmp_path / "inline").mkdir(), (tmp_path / "processes").mkdir()
    whole = load(tmp_path / "inline", PRUNED)
    expected = inline(whole)
    monkeypatch.undo()
    monkeypatch.setenv("TOY_SECONDS", "0.08")
    sweep = load(tmp_path / "processes", PRUNED)
    trials = run_sweep(sweep, program=TOY_CHILD)
    assert outcome(sweep, trials) == outcome(whole, expected)
    assert {count_rows(whole.out / trial.folder) for trial in expected} == {6}
    stopped = [trial for trial in trials if trial.status == "stopped"]
    assert stopped and {trial.stopped for trial in trials if trial.status == "finished"} <= {None, 6}
    assert min(count_rows(sweep.out / trial.folder) for trial in stopped) < 6


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["tpe and asha", "cmaes and hyperband"])
def test_a_driver_that_ends_between_two_writes_is_resumed_to_the_same(inline, kind, tmp_path, monkeypatch):
    """Including writes while a search samples the values of a trial, and while a pruner decides."""
    text = f'configs = "ga.toml"\n{KINDS[kind]}set = ["training.generations=4"]'
    (tmp_path / "whole").mkdir(), (tmp_path / "ended").mkdir()
    whole = load(tmp_path / "whole", text, SPACE)
    expected = outcome(whole, inline(whole))
    sweep = load(tmp_path / "ended", text, SPACE)
    trials, crashes = with_crashes(inline, sweep, every=60)
    assert crashes > 2
    assert outcome(sweep, trials) == expected


def test_values_are_those_of_the_space_and_the_configuration_accepts_them(inline, tmp_path):
    space = '"algorithm.parents" = {integer = [1, 8]}\n"algorithm.population" = {integer = [2, 8]}\n'
    space += '"network.hidden" = [[4], [4, 4]]\n'
    sweep = load(tmp_path, 'configs = "pendulum.toml"\nsearch = "tpe"\ntrials = 8', space)
    trials = inline(sweep)
    assert [trial.number for trial in trials] == list(range(8)) and len({trial.seed for trial in trials}) == 8
    for trial in trials:
        assert trial.values["algorithm.parents"] <= trial.values["algorithm.population"]
        assert trial.values["network.hidden"] in ([4], [4, 4])
        assert type(trial.values["algorithm.population"]) is int
    states = [each.state.name for each in Study(sweep.out).study.get_trials()]
    assert states.count("COMPLETE") == 8 and states.count("FAIL") == len(states) - 8 > 0


@pytest.mark.parametrize("search", ["random", "qmc", "pbt"])
def test_a_trial_that_fails_changes_no_values_of_others(search, tmp_path):
    chosen = []
    for name in ("whole", "failed"):
        (tmp_path / name).mkdir()
        sweep = load(tmp_path / name, f'search = "{search}"\ntrials = 4', SPACE)
        sweep.out.mkdir()
        study = Study(sweep.out, new=True)
        study.begin(sweep, lambda trial: True)
        chosen.append([study.ask(sweep)])
        if name == "failed":
            study.tell(0, "failed", reason="its process died")
            study.begin(sweep, lambda trial: True)
            assert study.ask(sweep) == chosen[1][0]
        chosen[-1] += [study.ask(sweep) for _ in range(3)]
    assert chosen[0] == chosen[1] and len({str(trial.values) for trial in chosen[0]}) == 4


def test_a_search_whose_points_are_all_refused_says_why(inline, tmp_path):
    sweep = load(tmp_path, 'search = "tpe"\ntrials = 2')
    (tables,) = sweep.tables.values()
    tables["network"]["name"] = "modle"
    with pytest.raises(ConfigError, match="each of 100 points") as caught:
        inline(sweep)
    assert [problem.key for problem in caught.value.problems] == ["network.name"]


def test_optuna_reads_a_sweep(inline, tmp_path):
    """Readers such as notebooks and optuna-dashboard."""
    sweep = load(tmp_path, PRUNED)
    trials = inline(sweep)
    study = optuna.load_study(study_name=NAME, storage=f"sqlite:///{sweep.out / DATABASE}")
    assert [each.user_attrs["number"] for each in study.trials] == list(range(4))
    names = {"finished": "COMPLETE", "stopped": "PRUNED"}
    assert [each.state.name for each in study.trials] == [names[trial.status] for trial in trials]
    assert [each.params for each in study.trials] == [trial.values for trial in trials]
    best = max((trial for trial in trials if trial.status == "finished"), key=lambda trial: value(sweep, trial))
    assert study.best_trial.user_attrs["number"] == best.number and study.best_value == value(sweep, best)


def value(sweep, trial):
    return status_of(sweep, trial).value


def test_asha_and_hyperband_follow_the_budget():
    def rungs(pruner, options, generations):
        """Return the generations after which trials that are worse than other trials are pruned."""
        study = optuna.create_study(direction="maximize", pruner=make_pruner(pruner, options, generations))
        for number in range(8):
            trial = study.ask()
            found = []
            for step in range(1, generations + 1):
                trial.report(-number, step)
                found += [step] if trial.should_prune() else []
            study.tell(trial, -number)
        return found

    assert rungs("asha", {}, 32)[0] == 2
    assert rungs("asha", {}, 64)[0] == 4
    assert rungs("asha", {"min_resource": 3}, 64)[0] == 3
    assert make_pruner("hyperband", {}, 32)._max_resource == 32
