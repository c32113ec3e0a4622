"""The Python interface to runs: training and resuming, callbacks, metrics and representations."""

import numpy as np
import pytest

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import Elite
from neuroevo.training.callback import Callback, Callbacks
from tests.support.databases import info_of
from tests.support.runs import results

TABLES = {
    "env": {"name": "hard_maze", "options": {"max_episode_steps": 40}},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": {"name": "ga", "population": 8, "parents": 3, "sigma": 0.3, "validation_candidates": 2},
    "training": {"seed": 1, "generations": 3, "validation_episodes": 2, "test_episodes": 2},
    "checkpoints": {"keep_last": 4},
}


class Ears(Callback):
    """Callback that records its calls."""

    def __init__(self, fail_at=None):
        self.heard, self.fail_at = [], fail_at

    def begin(self, config, folder, generation):
        self.heard.append(("begin", config.env.name, folder, generation))

    def phase(self, generation, name, episodes):
        self.heard.append((name, generation, episodes))

    def generation(self, record):
        self.heard.append(("generation", record.generation))
        if record.generation == self.fail_at:
            raise RuntimeError("enough")

    def end(self, error):
        self.heard.append(("end", error))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return neuroevo.train(TABLES, out=tmp_path_factory.mktemp("runs") / "run")


def test_overrides_are_a_table_or_a_list(trained, tmp_path):
    one = neuroevo.train(TABLES, {"training.seed": 5, "training.generations": 1}, out=tmp_path / "one")
    other = neuroevo.train(TABLES, ["training.seed=5", "training.generations=1"], out=tmp_path / "other")
    made = neuroevo.train(trained.config, {"training.seed": 5, "training.generations": 1}, out=tmp_path / "made")
    assert one.config.training.seed == 5 and len(one.rows()) == 1
    assert one.rows()[0]["fitness"] == other.rows()[0]["fitness"] == made.rows()[0]["fitness"]
    assert TABLES["training"]["seed"] == 1
    preset = neuroevo.load_config("smoke", {"algorithm.sigma": 0.25})
    assert preset.algorithm.sigma == 0.25
    for wrong in ("training.seed=5", {"seed": 5}, {"training.seed.deeper": 5}, ["seed=5"]):
        with pytest.raises(UserError):
            neuroevo.train(TABLES, wrong, out=tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_the_same_call_again_goes_on(trained, tmp_path):
    def call(generations, resume="auto"):
        ears = Ears()
        run = neuroevo.train(
            TABLES, {"training.generations": generations}, out=tmp_path / "run", resume=resume, callbacks=[ears]
        )
        return run, [each[3] for each in ears.heard if each[0] == "begin"]

    with pytest.raises(UserError, match="there is no run"):
        call(1, resume=True)
    assert call(1)[1] == [0]
    run, begun = call(3)
    assert begun == [1]
    assert results(run.path) == results(trained.path)
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert call(3)[1] == [] == call(2, resume=True)[1]  # the budget is spent
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    for resume in (False, "always"):
        with pytest.raises(UserError):
            call(3, resume)
    with pytest.raises(UserError, match="seed"):
        neuroevo.train(TABLES, {"training.seed": 2}, out=tmp_path / "run", resume="auto")
    with pytest.raises(UserError, match="out"):
        neuroevo.train(TABLES, resume="auto")


def test_callbacks_hear_everything_in_order(tmp_path):
    ears, numbers = Ears(), []
    run = neuroevo.train(
        TABLES, out=tmp_path / "run", callbacks=[ears, lambda record: numbers.append(record.generation)]
    )
    assert ears.heard[0] == ("begin", "hard_maze", run.path, 0) and ears.heard[-1] == ("end", None)
    assert [each for each in ears.heard if each[0] == "population"] == [
        ("population", number, 8) for number in range(3)
    ]
    assert [each[1] for each in ears.heard if each[0] == "generation"] == numbers == [0, 1, 2]
    weights = 11 * 4 + 4 + 4 * 2 + 2  # a network with 11 inputs, 4 units and 2 outputs
    assert info_of(run.path)["parameters"] == weights


def test_a_callback_that_fails_loses_no_generation(trained, tmp_path):
    ears, failing = Ears(), Ears(fail_at=1)
    with pytest.raises(RuntimeError, match="enough"):
        neuroevo.train(TABLES, out=tmp_path / "run", callbacks=[ears, failing])
    for each in (ears, failing):
        assert isinstance(each.heard[-1][1], RuntimeError)
    run = neuroevo.train(TABLES, out=tmp_path / "run", resume="auto")
    assert results(run.path) == results(trained.path)


def raises_stop(record):
    if record.generation == 1:
        raise neuroevo.Stop("two are enough")


def returns_stop(record):
    return neuroevo.Stop("two are enough") if record.generation == 1 else None


@pytest.mark.parametrize("stop", [raises_stop, returns_stop])
def test_a_stopped_run_is_finished(stop, tmp_path):
    def call(resume, callbacks, generations=9):
        changes = {"training.generations": generations}
        return neuroevo.train(TABLES, changes, out=tmp_path / "run", resume=resume, callbacks=callbacks)

    ears, unheard = Ears(), Ears()
    run = call(False, [stop, ears])
    stopped = len(run.rows())
    assert 2 <= stopped <= 4 and ears.heard[-1] == ("end", None)  # callbacks receive records with a delay
    assert "two are enough" in (run.path / "log.txt").read_text()
    assert len(call("auto", [unheard]).rows()) == stopped and unheard.heard == []
    after = call(True, [], stopped + 1)
    assert len(after.rows()) == stopped + 1
    whole = neuroevo.train(TABLES, {"training.generations": stopped + 1}, out=tmp_path / "whole")
    assert results(after.path) == results(whole.path)


def test_patience(tmp_path):
    heard = Ears()
    patience = neuroevo.Patience(2, metric="fitness_max", min_delta=1e9)  # only the first generation is an improvement
    run = neuroevo.train(TABLES, {"training.generations": 30}, out=tmp_path / "run", callbacks=[patience, heard])
    assert 3 <= len(run.rows()) <= 5
    assert "fitness_max has not risen" in (run.path / "log.txt").read_text()
    with pytest.raises(ValueError, match="fitness_maxx.*fitness_max"):
        neuroevo.train(TABLES, out=tmp_path / "wrong", callbacks=[neuroevo.Patience(2, metric="fitness_maxx")])
    with pytest.raises(ValueError, match="generations is 0"):
        neuroevo.Patience(0)


def test_the_names_of_callbacks_methods_are_checked():
    with pytest.raises(TypeError, match="'on_generation'; did you mean generation"):
        type("Misspelled", (Callback,), {"on_generation": lambda self, record: None})
    helper = type("Helper", (Callback,), {"count": lambda self: 3})
    with pytest.raises(TypeError, match="Helper has none of the methods begin, phase"):
        Callbacks([helper()])


def test_all_callbacks_hear_the_end():
    class Broken(Callback):
        def end(self, error):
            raise OSError("no room")

    ears, error = Ears(), KeyboardInterrupt()
    several = Callbacks([Broken(), ears])
    with pytest.raises(OSError):
        several.begin(neuroevo.make_config(TABLES), None, 0)
        several.end(error)
    assert ears.heard[-1] == ("end", error)
    with pytest.raises(TypeError, match="callback"):
        Callbacks([3])


def test_metrics_are_a_table(trained):
    pytest.importorskip("pandas")
    metrics = trained.metrics
    assert metrics.index.tolist() == [0, 1, 2] and metrics.index.name == "generation"
    assert metrics["fitness_max"].tolist() == [row["fitness_max"] for row in trained.rows()]
    assert "fitness" not in metrics


def test_populations_are_asked_again(trained):
    for generation in (0, 1, 2, None):
        population = trained.population(generation)
        row = trained.rows()[population.generation]
        assert population.fitness.tolist() == row["fitness"] and len(population.genomes) == 8
        assert population.ranking[0] == np.argmax(row["fitness"])
    first, second = trained.population(0), trained.population(1)
    assert first.parents == [None] * 8
    best = {first.genomes[index] for index in first.ranking[:3]}
    elite = trained.elite(0)[1].genome
    assert all(parent in best | {elite} for parent in second.parents if parent is not None)
    again = neuroevo.evaluate(trained, episodes=1)
    assert again.outcomes.returns.shape == (1,)


def test_an_elite_is_evaluated_and_seen(trained, tmp_path):
    run = neuroevo.open_run(trained.path)
    assert isinstance(run.elite()[1], Elite)
    evaluation = run.evaluate(episodes=3, max_episode_steps=10)
    assert evaluation.outcomes.steps.tolist() == [10] * 3
    rendered = run.render(tmp_path / "elite.gif", max_episode_steps=5, members=2)
    assert (tmp_path / "elite.gif").stat().st_size > 500 and rendered.frames == 6
    run.render(tmp_path / "elite.gif", max_episode_steps=2)  # as when a notebook's cell runs again
    with pytest.raises(UserError):
        run.render(tmp_path / "elite.txt")


def test_a_notebook_shows_it(trained):
    assert "ga on hard_maze" in repr(trained) and "3 generations" in repr(trained)
    page = trained._repr_html_()
    assert page.count("<tr>") == 4 and f"{trained.rows()[-1]['steps_total']:,}" in page


def test_what_is_printed_is_short(trained, capfd):
    """Representations must not fill the screen of a console or notebook."""
    records = []
    neuroevo.train(TABLES, out=trained.path.with_name("again"), callbacks=[records.append], progress=True)
    assert [line.partition(":")[0] for line in capfd.readouterr().out.splitlines()] == [
        f"generation {n}" for n in range(3)
    ]
    assert str(records[2]).startswith("generation 2: fitness mean ")
    evaluation, population, (_, elite) = trained.evaluate(episodes=3), trained.population(), trained.elite()
    assert repr(evaluation).startswith("Evaluation(3 episodes, mean return ")
    assert repr(population).startswith("GenerationMembers(generation 2, 8 members, fitness mean ")
    assert repr(elite).startswith("Elite(Genome(")
    assert max(len(repr(each)) for each in (records[2], evaluation, population, elite, trained)) < 250
