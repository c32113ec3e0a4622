"""Episodes that are over when a run is killed are not replayed, and results equal those of an uninterrupted run."""

import os
import random
import signal
import sqlite3
from contextlib import closing, nullcontext
from dataclasses import replace

import numpy as np
import pytest

from neuroevo.core.errors import DiskError
from neuroevo.runs import episode_rows
from neuroevo.runs.database import DATABASE
from neuroevo.runs.paths import LOG
from neuroevo.runs.writer import Writer
from neuroevo.sessions import evaluators
from neuroevo.sessions import training_run as run_module
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.callback import Callback
from tests.support.databases import change, checkpoints_of, delete_states_after, query, read_rows
from tests.support.runs import config, new_run, play, results, train
from tests.support.toy import ToyEvaluator

_HOPPER = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp", "normalize_observations": True}}
_NS = {"name": "ga_ns", "population": 8, "parents": 3, "sigma": 0.2, "k": 3, "archive_probability": 0.3}
KINDS = {
    "ga": {},
    "ga, every second generation": {"checkpoints": {"every": 2}},
    "es with a normalizer": {**_HOPPER, "algorithm": {"name": "es", "population": 8, "sigma": 0.1}},
    "novelty": {"algorithm": _NS},
    "a target": {"training": {"target": 1e3, "episodes": 2}, "checkpoints": {"every": 3}},
}


class Dribbling(ToyEvaluator):
    """Evaluator whose episodes end in pairs, not in the order of submission, and some of whose episodes fail.

    end_after: number of episodes after which to call `end`. Attributes: over, the number of episodes that have ended.
    """

    def __init__(self, end_after=None, end=None, late=3):
        super().__init__(late=late, failed=lambda episode: "lost" if episode.seed % 7 == 3 else "")
        self.over, self._end_after, self._end = 0, end_after, end

    def _book(self, waited_for=None):
        for age, (batch, found) in enumerate(reversed(self._playing)):
            left = np.flatnonzero(~batch.is_over)
            count = len(left) if batch is waited_for or age >= self._late else len(left) // 2
            ending = np.random.default_rng(len(found)).permutation(left)[:count]
            for pair in np.split(ending, range(2, len(ending), 2)):
                batch.book(found.at(pair))
                self.over += len(pair)
                if self._end is not None and self.over >= self._end_after:
                    self._end()


class Odd(ToyEvaluator):
    """Evaluator that gives the third member of generation 1 this return."""

    def __init__(self, value):
        super().__init__()
        self._value, self._count = value, 0

    def play(self, episode):
        self._count += len(self.calls) == 3
        return self._value if self._count == 3 else super().play(episode)


def interrupt():
    raise KeyboardInterrupt


def outcomes_in(path):
    """Return the number of a run's episode outcomes that are not part of a state."""
    return query(path, "SELECT count(*) FROM episodes")[0][0]


def killed(folder_of, count, report):
    """Play in a process that kills itself after a number of episodes; it reports the number over to `report`."""
    child = os.fork()
    if child == 0:
        try:
            evaluator = Dribbling(count)

            def end():
                report.write_text(str(evaluator.over))
                os.kill(os.getpid(), signal.SIGKILL)

            evaluator._end = end
            play(folder_of(), evaluator)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    return int(report.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_kills_within_generations(tmp_path, kind):
    """Killed ever later in each session; every episode is played exactly once across all sessions."""
    left_alone = Dribbling()
    new_run(tmp_path / "whole", left_alone, **KINDS[kind])
    expected, path, over = results(tmp_path / "whole"), tmp_path / "run", 0
    assert outcomes_in(tmp_path / "whole") == 0
    rng = random.Random(0)

    def go_on():
        return RunFolder.resume(path) if (path / "config.toml").exists() else RunFolder.create(path, config(**changes))

    changes = KINDS[kind]
    while over + 30 < left_alone.over:
        over += killed(go_on, rng.randrange(1, 50), tmp_path / "over")
        assert outcomes_in(path) or checkpoints_of(path)[-1]
        assert query(path, "PRAGMA foreign_key_check") == [] and query(path, "PRAGMA integrity_check") == [("ok",)]
    last = Dribbling()
    play(go_on(), last)
    assert over + last.over == left_alone.over
    assert results(path) == expected
    assert sorted(each.name for each in path.iterdir()) == sorted(each.name for each in (tmp_path / "whole").iterdir())
    assert (path / "config.toml").read_bytes() == (tmp_path / "whole" / "config.toml").read_bytes()


def interrupted(path, after=30, **changes):
    """Return a run that was interrupted in a generation, and the number of episodes that were over."""
    evaluator = Dribbling(after, interrupt)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, evaluator, **changes)
    known = {digest for (digest,) in query(path, "SELECT digest FROM episodes")}
    assert known and known <= {episode.digest for call in evaluator.calls for episode in call}
    return evaluator.over


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """How many episodes a whole run of each number of generations has, and its results."""
    found = {}
    for generations in (3, 5):
        path, evaluator = tmp_path_factory.mktemp("whole") / "run", Dribbling()
        new_run(path, evaluator, training={"generations": generations})
        found[generations] = evaluator.over, results(path)
    return found


class Rates(Callback):
    """Callback; last: by phase, the numbers of episodes and steps in the last progress report."""

    def __init__(self):
        self.last, self._now = {}, None

    def phase(self, generation, name, episodes):
        self._now = generation, name, episodes

    def progress(self, finished, steps):
        self.last[self._now] = finished, steps


def test_progress_has_the_steps_of_this_session_alone(tmp_path):
    """Its rate would be too high with steps of known episodes, or of test episodes played during a generation."""

    class Patient(ToyEvaluator):
        def _book(self, waited_for=None):
            for batch, found in self._playing:
                if batch is waited_for:
                    batch.book(found)

    interrupted(tmp_path / "run", 40)
    folder, rest, heard = RunFolder.resume(tmp_path / "run"), Patient(), Rates()
    with folder.open(["test"]):
        run_module.run(folder.config, rest, folder, [heard])
    assert all(finished == episodes for (*_, episodes), (finished, _) in heard.last.items())
    assert sum(finished for finished, _ in heard.last.values()) > sum(map(len, rest.calls))
    assert sum(steps for _, steps in heard.last.values()) == rest.work().steps


def test_ctrl_c_and_an_older_state(tmp_path):
    """A state is stored then, without the journal's outcomes; if the state is deleted, the journal still suffices."""
    changes = {"checkpoints": {"every": 4}}
    whole = Dribbling()
    new_run(tmp_path / "whole", whole, **changes)
    for number, lost in enumerate((False, True)):
        path = tmp_path / f"run{number}"
        over = interrupted(path, 40, **changes)
        assert checkpoints_of(path)[-1] % 4
        if lost:
            delete_states_after(path, checkpoints_of(path)[-2])
        rest = Dribbling()
        play(RunFolder.resume(path), rest)
        assert rest.over + over == whole.over
        assert results(path) == results(tmp_path / "whole")


def test_the_time_of_a_generation_in_progress_counts(tmp_path, monkeypatch):
    now, path = 0.0, tmp_path / "run"

    def read():
        nonlocal now
        now += 2**-20
        return now

    def end():
        nonlocal now
        now += 1000
        evaluator._end, evaluator._end_after = interrupt, 6

    monkeypatch.setattr("neuroevo.runs.episode_rows.time.perf_counter", read)
    evaluator = Dribbling(4, end)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, evaluator)
    now += 10_000  # between the sessions
    play(RunFolder.resume(path), Dribbling())
    assert {round(row["seconds_total"]) for row in read_rows(path)} == {1000}


DAMAGED = {
    "digest": "randomblob(16)",
    "return": "return + 1",
    "steps": "steps + 1",
    "retries": "coalesce(retries, 0) + 1",
    "failure": "failure || 'x'",
    "sums": "randomblob(length(sums) - 1)",
    "dtype": "'|u1'",
    "behavior": "randomblob(length(behavior))",
    "checksum": "checksum - 1",
}


@pytest.mark.parametrize("column", DAMAGED)
def test_any_damage_is_noticed(tmp_path, whole, column):
    path, rest = tmp_path / "run", Dribbling()
    over = interrupted(path, training={"generations": 3})
    some = "(SELECT digest FROM episodes ORDER BY digest LIMIT 2)"
    assert change(path, f"UPDATE episodes SET {column} = {DAMAGED[column]} WHERE digest IN {some}") == 2
    play(RunFolder.resume(path), rest)
    episodes, expected = whole[3]
    assert rest.over + over == episodes + 2  # the other episodes are known
    assert results(path) == expected
    assert (path / LOG).read_text().count(f"the outcome of an episode in {path / DATABASE} is damaged") == 2


FORGED = {
    "behaviors": lambda found: replace(found, behaviors=np.zeros((len(found), 3))),
    "no behaviors": lambda found: replace(found, behaviors=np.zeros((len(found), 0))),
    "a dtype": lambda found: replace(found, behaviors=found.behaviors.astype(np.float32)),
    "sums": lambda found: replace(found, observation_sums=np.ones((len(found), 4))),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("every", [1, 2])
def test_outcomes_that_this_run_does_not_have(tmp_path, whole, what, every):
    """Even with valid checksums: of some episodes or of all."""
    path = tmp_path / "run"
    interrupted(path)
    with closing(sqlite3.connect(path / DATABASE)) as database, database:
        rows = database.execute(f"SELECT {', '.join(episode_rows._COLUMNS)} FROM episodes").fetchall()
        for digest, *row in rows[::every]:
            forged = FORGED[what](episode_rows._results([row], [0], row[2] is None, row[5]))
            database.execute(episode_rows._INSERT, episode_rows._rows([digest], forged)[0])
    play(RunFolder.resume(path), Dribbling())
    assert results(path) == whole[5][1]
    assert "WARNING the journal has outcomes of another run: " in (path / LOG).read_text()


def test_other_episodes_have_no_outcomes_in_it(tmp_path):
    """An episode's digest depends on its genome, seed, cut-off and normalizer."""
    from neuroevo.core.episode import Episode
    from neuroevo.core.genome import Center, Genome, Graft, LowRank
    from neuroevo.core.observation_statistics import Normalizer

    one = Normalizer(1, np.zeros(2), np.ones(2))
    genomes = [Genome(1), Genome(2), Genome(1).child(3, 0.5), Genome(1).child(3, 0.25), Genome(1).child(4, 0.5)]
    genomes += [Genome(1).child(3, 0.5).child(3, 0.5), Genome(1, network=1), Genome(1).child(3, 0.5, LowRank(2))]
    genomes += [Genome(Center([1.0])), Genome(Center([2.0])), Genome(1, "input float32 1; dense 1 1.0")]
    genomes += [Genome(1).child(3, 0.5, Graft(f"input float32 1; dense {units} 1.0")) for units in (1, 2)]
    episodes = [Episode(genome, 7) for genome in genomes]
    episodes += [Episode(Genome(1), 8), Episode(Genome(1), 7, 5), Episode(Genome(1), 7, normalizer=one)]
    episodes += [Episode(Genome(1), 7, normalizer=Normalizer(1, np.ones(2), np.ones(2)))]
    digests = [episode.digest for episode in episodes]
    assert len(set(digests)) == len(digests)
    assert Episode(Genome(1).child(3, 0.5), 7).digest == digests[2]


@pytest.mark.parametrize("versions", [("1", "2"), ("1", "1"), ("1", "2", "2"), ("1", "2", "1")])
def test_outcomes_of_another_version_are_not_used(tmp_path, monkeypatch, whole, versions):
    """Another version may play episodes differently; the recorded version is that of the last session."""
    path, over = tmp_path / "run", []
    for number, version in enumerate(versions):
        monkeypatch.setattr("neuroevo.sessions.provenance.VERSION", version)
        evaluator = Dribbling(5, None if number == len(versions) - 1 else interrupt)
        with pytest.raises(KeyboardInterrupt) if evaluator._end else nullcontext():
            play(RunFolder.resume(path) if number else RunFolder.create(path, config()), evaluator)
        over.append(evaluator.over)
    used = sum(count for count, *pair in zip(over, versions, versions[1:], strict=False) if pair[0] == pair[1])
    episodes, expected = whole[5]
    assert over[-1] == episodes - used
    assert results(path) == expected


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_return_that_is_not_finite(tmp_path, value):
    """It ends the run; the next session reuses the outcomes of the other episodes."""
    with pytest.raises(ValueError, match="finite"):
        new_run(tmp_path, Odd(value))
    assert outcomes_in(tmp_path) == 7
    assert "cannot be kept" not in (tmp_path / LOG).read_text()
    rest = ToyEvaluator()
    play(RunFolder.resume(tmp_path), rest)
    assert len(rest.calls[0]) == 1


def test_a_journal_that_cannot_be_written_ends_no_run(tmp_path, monkeypatch):
    execute = Writer.execute

    def full(self, sql, values=()):
        if "INTO episodes" in sql:
            raise DiskError("no space")
        return execute(self, sql, values)

    monkeypatch.setattr(Writer, "execute", full)
    new_run(tmp_path / "run", Dribbling())
    monkeypatch.undo()
    new_run(tmp_path / "whole", Dribbling())
    text = (tmp_path / "run" / LOG).read_text()
    assert text.count("outcomes of episodes cannot be kept (no space)") == 1
    assert "finished after 5 generations" in text
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_the_real_evaluator(tmp_path):
    """Interrupted in each phase of a generation, on other hardware each time."""
    changes = {
        "env": {"name": "Hopper-v5"},
        "network": {"name": "mlp", "hidden": [4], "normalize_observations": True},
        "training": {"generations": 2, "max_episode_steps": 50, "test_episodes": 40},
        "algorithm": {"name": "ga", "population": 60, "parents": 3, "sigma": 0.2, "validation_candidates": 20},
    }
    folder = RunFolder.create(tmp_path / "whole", config(**changes))
    train(folder)
    expected, path, said = results(tmp_path / "whole"), tmp_path / "run", []

    class Stop(Callback):
        def __init__(self, phase):
            self.waited_for, self.now = phase, None

        def phase(self, generation, name, episodes):
            self.now = (generation, name)

        def progress(self, finished, steps):
            if self.now == self.waited_for and finished:
                raise KeyboardInterrupt

    for number, phase in enumerate([(0, "population"), (0, "validation"), (1, "population"), (1, "test")]):
        folder = RunFolder.resume(path) if number else RunFolder.create(path, config(**changes, hardware={"slots": 2}))
        with (
            pytest.raises(KeyboardInterrupt),
            evaluators.make_evaluator(folder.config) as evaluator,
            folder.open(["test"]),
        ):
            run_module.run(folder.config, evaluator, folder, [Stop(phase)])
        said.append(outcomes_in(path))
    train(RunFolder.resume(path, ["hardware.slots=3"]))
    assert results(path) == expected
    assert (path / LOG).read_text().count("which are not played again") == sum(count > 0 for count in said) >= 2
