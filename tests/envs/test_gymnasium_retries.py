"""Gymnasium environments that fail at random: another process retries the episode, and results are identical."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from neuroevo.core.episode import Episode
from neuroevo.core.errors import EnvironmentFailure, UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.callback import Callback
from tests.support.gymnasium_pools import TOYS, children, gone, nothing_left_behind, pool_of  # noqa: F401 (a fixture)
from tests.support.runs import config, read_rows, results, train

UNLUCKY = f"{TOYS}ToyUnlucky-v0"


@pytest.fixture
def unlucky(tmp_path, monkeypatch):
    """Return a function that sets the number of further failures and returns how many are left."""
    file = tmp_path / "unlucky"
    monkeypatch.setenv("UNLUCKY", str(file))
    file.touch()

    def times(count=None):
        if count is not None:
            file.write_bytes(b"x" * count)
        return file.stat().st_size

    return times


def trajectories(pool):
    """Return the observations, rewards and dones of 4 slots in 25 steps; the slots begin at different times."""
    pool.reset([0, 1], [10, 11], [0, 0])
    pool.step([0, 1], [0, 1])
    pool.reset([2, 3], [12, 13], [0, 0])
    seen = [pool.observe(range(4)).copy()]
    for step in range(25):
        rewards, dones = pool.step(range(4), [(step + slot) % 3 for slot in range(4)])
        seen += [pool.observe(range(4)).copy(), rewards, dones]
    return np.concatenate([np.asarray(each, np.float64).ravel() for each in seen])


@pytest.mark.parametrize(("what", "at"), [("raise", 0), ("be killed", 5), ("leave a child", 0), ("hang", 5)])
def test_an_episode_goes_on_as_if_nothing_had_happened(what, at, unlucky, capfd):
    """The same holds for the other slots of that process, which lose their environments in the middle."""
    pool = pool_of(UNLUCKY, 4, workers=2, what=what, at=at)
    expected = trajectories(pool)
    del pool
    unlucky(2)
    pool = pool_of(UNLUCKY, 4, workers=2, retries=2, timeout=3.0 if what == "hang" else 60.0, what=what, at=at)
    assert np.array_equal(trajectories(pool), expected)
    assert unlucky() == 0
    said = [line for line in capfd.readouterr().err.splitlines() if "replays the episode" in line]
    assert len(said) == 2
    assert all(line.startswith(f"gymnasium environment '{UNLUCKY}', ") for line in said)


@pytest.mark.parametrize(("what", "retries"), [("raise", 0), ("be killed", 1), ("raise", 3)])
def test_an_environment_that_always_fails_ends_the_run(what, retries, unlucky):
    unlucky(100)
    pool = pool_of(UNLUCKY, 1, retries=retries, what=what)
    pool.reset([0], [7], [0])
    reason = "OSError: Too many open files" if what == "raise" else "the worker was killed by signal 9"
    with pytest.raises(EnvironmentFailure, match=rf"step of slot 0 \(worker 0, process \d+\): {reason}"):
        for _ in range(30):
            pool.step([0], [0])
    assert unlucky() == 100 - 1 - retries


def test_the_retries_of_an_episode_are_its_own(unlucky):
    pool = pool_of(UNLUCKY, 1, retries=1, what="raise")
    for seed in range(3):
        unlucky(1)
        pool.reset([0], [seed], [0])
        assert [pool.step([0], [0])[1][0] for _ in range(30)] == [False] * 29 + [True]


def test_a_worker_killed_between_two_steps(unlucky):
    before = children()
    pool = pool_of(UNLUCKY, 4, workers=2, retries=1)
    (first, second) = sorted(children() - before)
    expected = trajectories(pool)
    os.kill(first, signal.SIGKILL)
    assert np.array_equal(trajectories(pool), expected)
    assert second in children()
    assert gone({first})


def test_one_that_is_not_reproducible_breaks_its_episode_off(unlucky):
    """It counts as the worst, like a failed simulation; the run continues."""
    episodes = [Episode(Genome(seed), seed) for seed in range(6)]
    unlucky(1)
    options = {"workers": 1, "kwargs": {"what": "chance"}}
    with LocalEvaluator(f"gymnasium:{UNLUCKY}", "mlp", env_options=options, lanes=1, slots=1) as evaluator:
        outcomes = evaluator.evaluate(episodes)
    ((_, why),) = outcomes.failures.items()
    assert "gave different results: the environment is not reproducible" in why
    assert outcomes.retries == 1


@pytest.mark.parametrize("wrong", [-1, 1001, 0.5, "two"])
def test_retries_that_make_no_sense(wrong):
    with pytest.raises(UserError, match="env.options.retries"):
        config(env={"name": "gymnasium:CartPole-v1", "options": {"retries": wrong}})


LSTM = Network("layers", layers=("dense 8", "tanh", "lstm 4"), normalize_observations=True)


def test_all_that_is_recorded_of_an_episode(unlucky, engine):
    """Compare returns, steps, sums of observations, and the network's recurrent state."""
    normalizer = Normalizer(1, np.full(3, 0.1), np.full(3, 0.5))
    episodes = [Episode(Genome(seed).child(seed, 0.5), seed, 0, normalizer) for seed in range(12)]
    found = []
    for times in (0, 3):
        unlucky(times)
        options = {"workers": 2, "retries": 3, "kwargs": {"what": "be killed", "at": 20}}
        with LocalEvaluator(
            f"gymnasium:{UNLUCKY}", LSTM, env_options=options, lanes=2, slots=3, engine=engine
        ) as evaluator:
            found.append(evaluator.evaluate(episodes))
    assert [outcomes.retries for outcomes in found] == [0, 3]
    assert np.array_equal(found[0].returns, found[1].returns)
    assert np.array_equal(found[0].steps, found[1].steps)
    assert np.array_equal(found[0].observation_sums, found[1].observation_sums)
    assert len(set(found[0].returns.tolist())) == 12


CHANGES = {
    "env": {"name": f"gymnasium:{UNLUCKY}", "options": {"workers": 2, "kwargs": {"what": "be killed"}}},
    "network": {"name": "mlp", "hidden": [4], "normalize_observations": True},
    "training": {"generations": 3, "validation_episodes": 2, "test_episodes": 4},
}


def without_retries(found):
    rows = [{key: value for key, value in row.items() if key != "retries"} for row in found["rows"]]
    cells = [{key: value for key, value in row.items() if key != "retries"} for row in found["csv"]]
    return {**found, "rows": rows, "csv": cells}


def test_runs_count_them(tmp_path, unlucky):
    """In each phase, the results are those of a run without failures, even if all workers are killed."""
    train(RunFolder.create(tmp_path / "lucky", config(**CHANGES)))
    expected = results(tmp_path / "lucky")
    assert [row["retries"] for row in expected["rows"]] == [0, 0, 0]

    class Trouble(Callback):
        def phase(self, generation, name, episodes):
            unlucky(unlucky() + 1)

    from neuroevo.sessions.evaluators import make_evaluator
    from neuroevo.sessions.training_run import run

    folder = RunFolder.create(tmp_path / "unlucky_run", config(**CHANGES))
    with make_evaluator(folder.config) as evaluator, folder.open(["test"]):
        run(folder.config, evaluator, folder, [Trouble()])
    found = results(tmp_path / "unlucky_run")
    assert sum(row["retries"] for row in found["rows"]) >= 6
    assert without_retries(found) == without_retries(expected)
    assert "retries" in (tmp_path / "unlucky_run" / "metrics.csv").read_text().splitlines()[0]

    before = children()

    class Killer(Callback):
        killed: frozenset[int] = frozenset()

        def progress(self, finished, steps):
            if len(self.killed) < 2:
                for worker in children() - before:
                    os.kill(worker, signal.SIGKILL)
                    self.killed |= {worker}

    unlucky(0)
    folder = RunFolder.create(tmp_path / "killed", config(**CHANGES))
    with make_evaluator(folder.config) as evaluator, folder.open(["test"]):
        run(folder.config, evaluator, folder, [Killer()])
    assert without_retries(results(tmp_path / "killed")) == without_retries(expected)


def test_other_runs_have_no_such_column(tmp_path):
    train(RunFolder.create(tmp_path / "run", config(env={"name": "Hopper-v5"}, network={"name": "mlp"})))
    assert all("retries" not in row for row in read_rows(tmp_path / "run"))
