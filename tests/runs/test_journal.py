"""Episodes that are over when a run is killed are not played again, and the run ends as if it had been left alone."""

import json
import os
import random
import signal
from dataclasses import replace

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.runs import journal, journal_file
from neuroevo.runs import training_run as run_module
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.paths import JOURNAL, LOG
from neuroevo.system.directory import Directory
from neuroevo.training.callback import Callback
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
    """Has episodes end two at a time, in another order than they were asked for, and some of them fail.

    end_after: calls `end` after so many of them. Attributes: over, how many have ended.
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


def interrupt():
    raise KeyboardInterrupt


def killed(folder_of, count, report):
    """Plays in a process that kills itself once so many episodes are over; how many were, by `report`."""
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
    """Ever more episodes after the start of each session; every episode is played once in all of them together."""
    left_alone = Dribbling()
    new_run(tmp_path / "whole", left_alone, **KINDS[kind])
    expected, path, over = results(tmp_path / "whole"), tmp_path / "run", 0
    assert not (tmp_path / "whole" / JOURNAL).exists()
    rng = random.Random(0)

    def go_on():
        return RunFolder.resume(path) if (path / "config.toml").exists() else RunFolder.create(path, config(**changes))

    changes = KINDS[kind]
    while over + 30 < left_alone.over:
        over += killed(go_on, rng.randrange(1, 25), tmp_path / "over")
        assert (path / JOURNAL).stat().st_size > 0 or "generation" in os.listdir(path / "checkpoints")[-1]
    last = Dribbling()
    play(go_on(), last)
    assert over + last.over == left_alone.over
    assert results(path) == expected
    assert not (path / JOURNAL).exists()
    assert sorted(each.name for each in path.iterdir()) == sorted(each.name for each in (tmp_path / "whole").iterdir())
    for name in ("elites.jsonl", "config.toml"):
        assert (path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def interrupted(path, after=30, **changes):
    """A run that was interrupted in a generation; how many episodes were over."""
    evaluator = Dribbling(after, interrupt)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, evaluator, **changes)
    assert (path / JOURNAL).stat().st_size > 500
    return evaluator.over


class Rates(Callback):
    """last: of each phase, how many episodes and steps the last news of its progress had."""

    def __init__(self):
        self.last, self._now = {}, None

    def phase(self, generation, name, episodes):
        self._now = generation, name, episodes

    def progress(self, finished, steps):
        self.last[self._now] = finished, steps


def test_progress_has_the_steps_of_this_session_alone(tmp_path):
    """Its rate would be too high with those of episodes that are known, or that were tested beside a generation."""

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


def test_ctrl_c_and_an_older_checkpoint(tmp_path):
    """A checkpoint is written then, which has not what the journal has; with it gone, the journal is still enough."""
    changes = {"checkpoints": {"every": 4}}
    whole = Dribbling()
    new_run(tmp_path / "whole", whole, **changes)
    for number, lost in enumerate((False, True)):
        path = tmp_path / f"run{number}"
        over = interrupted(path, 40, **changes)
        newest = max((path / "checkpoints").iterdir())
        assert newest.name > "generation-000001"
        if lost:
            newest.unlink()
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

    monkeypatch.setattr("neuroevo.runs.journal.time.perf_counter", read)
    evaluator = Dribbling(4, end)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, evaluator)
    now += 10_000  # between the sessions
    play(RunFolder.resume(path), Dribbling())
    assert {round(row["seconds_total"]) for row in read_rows(path)} == {1000}


def test_any_damage_is_noticed(tmp_path):
    changes = {"training": {"generations": 3}}
    new_run(tmp_path / "whole", Dribbling(), **changes)
    expected, rng = results(tmp_path / "whole"), random.Random(1)
    interrupted(tmp_path / "run", **changes)
    files = {file.relative_to(tmp_path / "run"): file.read_bytes() for file in (tmp_path / "run").rglob("*.*")}
    good = files.pop(next(name for name in files if name.name == JOURNAL))
    played = set()
    for attempt in range(16):
        path = tmp_path / f"run{attempt}"
        (path / "checkpoints").mkdir(parents=True)
        for name, data in files.items():
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_bytes(data)
        place = rng.randrange(len(good))
        damaged = [
            good[:place],
            good[:place] + bytes([good[place] ^ 1 << rng.randrange(8)]) + good[place + 1 :],
            good[:place] + bytes(len(good) - place),
            good + good[place:],
        ][attempt % 4]
        (path / JOURNAL).write_bytes(damaged)
        evaluator = Dribbling()
        play(RunFolder.resume(path), evaluator)
        assert results(path) == expected, attempt
        assert not (path / JOURNAL).exists()
        if damaged:
            assert f"WARNING {path / JOURNAL} " in (path / LOG).read_text()
        played.add(evaluator.over)
    assert len(played) > 5  # what came before the damage is known


def test_another_runs_journal(tmp_path):
    """Of another configuration, and of another algorithm's episodes under the same one."""
    new_run(tmp_path / "whole", Dribbling())
    expected = results(tmp_path / "whole")
    other = tmp_path / "other"
    interrupted(other, training={"seed": 5})
    path = tmp_path / "run"
    interrupted(path)
    (path / JOURNAL).write_bytes((other / JOURNAL).read_bytes())
    play(RunFolder.resume(path), Dribbling())
    assert results(path) == expected
    assert f"WARNING {path / JOURNAL} is another run's" in (path / LOG).read_text()


FORGED = {
    "behaviors": lambda found: replace(found, behaviors=np.zeros((len(found), 3))),
    "no behaviors": lambda found: replace(found, behaviors=np.zeros((len(found), 0))),
    "a dtype": lambda found: replace(found, behaviors=found.behaviors.astype(np.float32)),
    "sums": lambda found: replace(found, observation_sums=np.ones((len(found), 4))),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("every", [1, 2])
def test_outcomes_that_this_run_does_not_have(tmp_path, what, every):
    """Though they are sealed as its own: of some episodes or of all."""
    new_run(tmp_path / "whole", Dribbling())
    path = tmp_path / "run"
    interrupted(path)
    with Directory(path) as folder:
        owner = json.loads((path / JOURNAL).read_bytes().split(b"\n", 1)[0])["owner"]
        file = journal_file.JournalFile(folder, JOURNAL, owner)
        records = list(file.records)
        file.empty()
        for number, record in enumerate(records):
            digests, found, seconds = journal._decode(record)
            file.append(journal._encode(digests, found if number % every else FORGED[what](found), seconds))
        file.close()
    play(RunFolder.resume(path), Dribbling())
    assert results(path) == results(tmp_path / "whole")
    assert "WARNING the journal has outcomes of another run: " in (path / LOG).read_text()


def test_other_episodes_have_no_outcomes_in_it(tmp_path):
    """An episode's digest is of its genome, seed, cut-off and normalizer."""
    from neuroevo.core.episode import Episode
    from neuroevo.core.genome import Center, Genome, LowRank
    from neuroevo.core.observation_statistics import Normalizer

    one = Normalizer(1, np.zeros(2), np.ones(2))
    genomes = [Genome(1), Genome(2), Genome(1).child(3, 0.5), Genome(1).child(3, 0.25), Genome(1).child(4, 0.5)]
    genomes += [Genome(1).child(3, 0.5).child(3, 0.5), Genome(1, network=1), Genome(1).child(3, 0.5, LowRank(2))]
    genomes += [Genome(Center([1.0])), Genome(Center([2.0]))]
    episodes = [Episode(genome, 7) for genome in genomes]
    episodes += [Episode(Genome(1), 8), Episode(Genome(1), 7, 5), Episode(Genome(1), 7, normalizer=one)]
    episodes += [Episode(Genome(1), 7, normalizer=Normalizer(1, np.ones(2), np.ones(2)))]
    digests = [episode.digest for episode in episodes]
    assert len(set(digests)) == len(digests)
    assert Episode(Genome(1).child(3, 0.5), 7).digest == digests[2]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path, outside = tmp_path / "run", tmp_path / "precious"
    interrupted(path)
    (path / JOURNAL).unlink()
    outside.write_bytes(b"mine")
    {
        "link": lambda: (path / JOURNAL).symlink_to(outside),
        "fifo": lambda: os.mkfifo(path / JOURNAL),
        "folder": (path / JOURNAL).mkdir,
    }[kind]()
    with pytest.raises(UserError, match=rf"{JOURNAL} is a .*, expected a file or nothing"):
        RunFolder.resume(path)
    assert outside.read_bytes() == b"mine"


def test_a_full_disk_ends_no_run(tmp_path, monkeypatch):
    def full(file, data, at):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_file.os, "pwrite", full)
    new_run(tmp_path / "run", Dribbling())
    text = (tmp_path / "run" / LOG).read_text()
    assert text.count("journal.bin cannot be used ([Errno 28] No space left on device)") == 1
    assert "finished after 5 generations" in text


def test_it_has_an_end(tmp_path, monkeypatch):
    """What is beyond that is played again."""
    monkeypatch.setattr(journal_file, "MOST_BYTES", 2000)
    path = tmp_path / "run"
    evaluator = Dribbling(20, interrupt, late=100)
    with pytest.raises(KeyboardInterrupt):
        new_run(path, evaluator, checkpoints={"every": 5})
    assert 0 < (path / JOURNAL).stat().st_size <= 2000
    rest, whole = Dribbling(), Dribbling()
    play(RunFolder.resume(path), rest)
    new_run(tmp_path / "whole", whole, checkpoints={"every": 5})
    assert whole.over - evaluator.over < rest.over < whole.over
    assert results(path) == results(tmp_path / "whole")


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

    from neuroevo.runs.training_run import make_evaluator, run

    for number, phase in enumerate([(0, "population"), (0, "validation"), (1, "population"), (1, "test")]):
        folder = RunFolder.resume(path) if number else RunFolder.create(path, config(**changes, hardware={"slots": 2}))
        with pytest.raises(KeyboardInterrupt), make_evaluator(folder.config) as evaluator, folder.open(["test"]):
            run(folder.config, evaluator, folder, [Stop(phase)])
        said.append((path / JOURNAL).stat().st_size)
    train(RunFolder.resume(path, ["hardware.slots=3"]))
    assert results(path) == expected
    assert (path / LOG).read_text().count("which are not played again") == sum(size > 0 for size in said) >= 2
