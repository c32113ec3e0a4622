"""Population-based training: forks of the best, independent of interruptions of the driver."""

from pathlib import Path

import pytest

from neuroevo.analysis.evaluation import evaluate_run
from neuroevo.analysis.exported_network import elite_network
from neuroevo.analysis.network_export import to_arrays
from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps import driver
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.pbt import exchanges
from neuroevo.sweeps.searches import draw
from neuroevo.sweeps.study import Study
from tests.support.crashes import Crash, with_crashes
from tests.support.databases import info_of
from tests.support.inline import Inline, InlineToys
from tests.support.runs import read_rows, results
from tests.support.sweeps import SIGMA, TOY_CHILD, Listener, load, run_toys

PBT = """
configs = "{}.toml"
search = "pbt"
trials = 4
search_options = {{interval = 2, quantile = 0.5}}
set = ["training.generations=6"]
"""


@pytest.fixture
def inline(monkeypatch):
    """Return a function that runs a sweep in this process, with ToyEvaluators or the real ones."""
    monkeypatch.setattr(driver, "_POLL_SECONDS", 0)

    def run(sweep, watcher=None, executor=InlineToys):
        monkeypatch.setattr(driver, "Processes", executor)
        executor.started.clear()
        return run_sweep(sweep, watcher)

    return run


def loaded(folder, name="ga", text=PBT, **options):
    folder.mkdir()
    return load(folder, text.format(name), **options)


def forks(sweep):
    """Return the folders of forks in the order in which they came about."""
    found = [path for path in sweep.out.iterdir() if path.is_dir() and "-fork-" in path.name]
    return sorted(found, key=lambda path: (path.name.rpartition("-")[2], path.name))


def donor(path):
    return Path(info_of(path)["forked_from"]["path"])


def outcome(sweep, trials):
    """Return a sweep's trials, the ancestry of their forks, and the results in all folders."""
    folders = sorted(path for path in sweep.out.iterdir() if path.is_dir())
    history = {path.name: (donor(path).name, info_of(path)["forked_from"]["generation"]) for path in forks(sweep)}
    return trials, history, {path.name: results(path) for path in folders}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return an uninterrupted sweep and its outcome."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_POLL_SECONDS", 0)
        patch.setattr(driver, "Processes", InlineToys)
        sweep = loaded(tmp_path_factory.mktemp("whole") / "sweep")
        found = outcome(sweep, run_sweep(sweep))
    return sweep, found


def test_forks_continue_from_the_donors_states(inline, tmp_path):
    sweep, listener = loaded(tmp_path / "sweep", "maze"), Listener()
    trials = inline(sweep, listener, Inline)
    assert [(trial.number, trial.status) for trial in trials] == [(number, "finished") for number in range(4)]
    assert len({trial.seed for trial in trials}) == 4
    made = forks(sweep)
    assert [path.name[-6:] for path in made] == ["000002", "000002", "000004", "000004"]
    for path in made:
        end, from_ = int(path.name[-6:]), info_of(path)["forked_from"]
        assert from_["generation"] == end and not path.name.startswith(donor(path).name.partition("-fork-")[0])
        rows, donors = read_rows(path), read_rows(donor(path))
        assert [row["fitness"] for row in rows[:end]] == [row["fitness"] for row in donors[:end]]
        if len(rows) > end and len(donors) > end:
            assert rows[end]["fitness"] != donors[end]["fitness"]
        assert RunReader(path).config.training.seed == trials[int(path.name.split("-")[1])].seed
    for trial in trials:
        reader = RunReader(sweep.out / trial.folder)
        assert len(reader.rows()) == 6
        assert reader.config.algorithm.sigma == trial.values["algorithm.sigma"]
        assert 0.001 <= trial.values["algorithm.sigma"] <= 1.0
    assert {number for kind, number in listener.events if kind == "finished"} == set(range(4))
    last = sweep.out / next(trial.folder for trial in trials if trial.folder.endswith("-fork-000004"))
    assert evaluate_run(last, episodes=2, max_episode_steps=20).summary.n == 2
    reader = RunReader(last)
    assert {"network", "genome", "env"} < set(to_arrays(elite_network(reader.config, reader.elite()[1], 0)))


def test_the_worst_continue_as_forks_of_the_best(whole):
    sweep, (trials, history, _) = whole
    for end in (2, 4):
        decided = Study(sweep.out).study.user_attrs[f"exchanges after {end}"]
        names = {number: folder for _, number, folder, _ in decided}
        at = {trial.number: folder_at(sweep, trial.number, end) for trial in trials}
        metrics = {number: read_rows(path)[end - 1]["validation_mean"] for number, path in at.items()}
        order = sorted(metrics, key=metrics.get)
        assert {number for number, *_ in decided} == set(order[:2]) and set(names) <= set(order[2:])
        assert {f"trial-{number:05d}-fork-{end:06d}": (folder, end) for number, _, folder, _ in decided} == {
            name: of for name, of in history.items() if of[1] == end
        }


def folder_at(sweep, number, end):
    """Return the folder that a trial had until this generation ended."""
    name = f"trial-{number:05d}"
    before = [path for path in forks(sweep) if path.name.startswith(name) and int(path.name[-6:]) < end]
    return before[-1] if before else sweep.out / name


def test_two_sweeps_are_equal_and_another_seed_is_another_one(inline, whole, tmp_path):
    _, expected = whole
    again = loaded(tmp_path / "again")
    assert outcome(again, inline(again)) == expected
    other = loaded(tmp_path / "other", text=PBT + "seed = 1\n")
    assert outcome(other, inline(other)) != expected
    listener = Listener()
    assert inline(again, listener) == expected[0]
    assert listener.events == [] and InlineToys.started == []


def test_processes_and_several_at_a_time_change_nothing(tmp_path):
    text = PBT.replace("trials = 4", "trials = 2").replace("generations=6", "generations=4")
    here, there = loaded(tmp_path / "here", text=text), loaded(tmp_path / "there", text=text, parallel=2)
    expected = outcome(here, run_toys(here)[1])
    assert expected[1]  # there is a fork
    assert outcome(there, run_sweep(there, program=TOY_CHILD)) == expected


def test_a_driver_that_ends_between_decision_and_forks_is_resumed_to_the_same(inline, whole, tmp_path, monkeypatch):
    """Interrupt it after zero and one forks, while another fork is being made."""
    original = RunFolder.fork
    for count in range(2):
        sweep, made = loaded(tmp_path / str(count)), []

        def fork(path, *arguments, count=count, made=made, **options):
            if len(made) == count:
                path.mkdir()
                (path / ".run.db.7.tmp").write_text("half")
                raise Crash
            made.append(path)
            return original(path, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "fork", fork)
            with pytest.raises(Crash):
                inline(sweep)
        assert len(made) == count
        assert outcome(sweep, inline(sweep)) == whole[1]
        assert all(generation for _, generation in InlineToys.started)  # each resumes from a state


def test_a_driver_that_ends_between_two_writes_is_resumed_to_the_same(inline, whole, tmp_path, monkeypatch):
    sweep = loaded(tmp_path / "ended")
    trials, crashes = with_crashes(inline, sweep, every=60)
    assert crashes > 5
    assert outcome(sweep, trials) == whole[1]


def test_a_trial_that_fails_leaves_the_population(inline, tmp_path):
    sweep = loaded(tmp_path / "sweep")
    (sweep.out / "trial-00000").mkdir(parents=True)
    (sweep.out / "trial-00000" / "metrics.jsonl").write_text("{}\n")  # of an earlier version
    trials = inline(sweep)
    assert [trial.status for trial in trials] == ["failed", "finished", "finished", "finished"]
    assert "metrics.jsonl" in trials[0].reason
    assert all("trial-00000" not in str(donor(path)) for path in forks(sweep))


def test_a_population_that_has_no_trial_to_spare_exchanges_nothing(inline, tmp_path):
    sweep = loaded(tmp_path / "sweep", text=PBT.replace("trials = 4", "trials = 1"))
    assert [trial.folder for trial in inline(sweep)] == ["trial-00000"] and forks(sweep) == []


def test_a_population_has_one_budget(inline, whole):
    sweep, (trials, *_) = whole
    for change, key in (
        (("generations=6", "generations=8"), "sweep.budgets"),
        (("trials = 4", "trials = 6"), "sweep.trials"),
    ):
        other = load(sweep.out.parent, PBT.format("ga").replace(*change))
        with pytest.raises(ConfigError) as caught:
            inline(other)
        assert [problem.key for problem in caught.value.problems] == [key]
    assert Study(sweep.out).trials() == trials


def test_values_change_a_little_or_are_drawn_again(whole):
    sweep, (trials, *_) = whole
    metrics = {trial.number: float(trial.number) for trial in trials}
    seen = [each for end in range(2, 80, 2) for each in exchanges(sweep, trials, metrics, end)]
    assert {each.number for each in seen} == {0, 1} and {each.donor for each in seen} == {2, 3}
    sigma = {trial.number: trial.values["algorithm.sigma"] for trial in trials}
    factors = [each.values["algorithm.sigma"] / sigma[each.donor] for each in seen]
    assert all(0.001 <= each.values["algorithm.sigma"] <= 1.0 for each in seen)
    near = [factor for factor in factors if 0.5 < factor < 2]
    assert len(seen) / 2 < len(near) < len(seen)
    assert exchanges(sweep, trials, metrics, 2) == exchanges(sweep, trials[::-1], metrics, 2)


def test_values_that_the_configuration_refuses_are_not_taken(whole, tmp_path):
    space = SIGMA + '"algorithm.parents" = {integer = [1, 4]}\n"training.max_episode_steps" = {integer = [5, 20]}\n'
    sweep = loaded(tmp_path / "sweep", space=space)
    trials = [sweep.trial(number, draw(sweep.space, number)) for number in range(4)]
    metrics = {trial.number: float(trial.number) for trial in trials}
    for end in range(2, 40, 2):
        for each in exchanges(sweep, trials, metrics, end):
            assert 1 <= each.values["algorithm.parents"] <= 4 and 5 <= each.values["training.max_episode_steps"] <= 20
            assert type(each.values["algorithm.parents"]) is int
