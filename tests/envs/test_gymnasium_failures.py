"""Failures of Gymnasium environments: exceptions, workers that die or hang, and values that are not finite."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from neuroevo.core.errors import EnvironmentFailure, NativeError, UserError
from neuroevo.envs import registry
from tests.support.gymnasium_pools import TOYS, children, gone, nothing_left_behind, pool_of  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("what", "at", "raised"),
    [
        ("raise", 0, ["ValueError: the toy broke; grün ?", "Traceback (most recent call last):", "in trouble"]),
        ("raise", 2, ["ValueError: the toy broke; grün ?", "Traceback (most recent call last):", "in trouble"]),
        ("raise at length", 2, ["ValueError: the toy broke", "in trouble", "characters left out"]),
        ("exit", 0, ["SystemExit: 3", "in trouble"]),
        ("wrong shape", 0, ["ValueError: the observation has shape (4,), its space (3,)"]),
        ("no reward", 2, ["TypeError: float() argument must be"]),
    ],
)
def test_exceptions_reach_the_caller(what, at, raised):
    pool = pool_of(f"{TOYS}ToyTrouble-v0", 4, workers=2, what=what, at=at)
    with pytest.raises(NativeError) as failed:
        pool.reset([3], [0], [0])
        pool.step([3], [0])
        pool.step([3], [0])
    doing = "reset" if at == 0 else "step"
    where = rf"gymnasium environment '{TOYS}ToyTrouble-v0', {doing} of slot 3 \(worker 1, process \d+\): "
    assert re.match(where, str(failed.value))
    for text in raised:
        assert text in str(failed.value)
    assert len(str(failed.value)) < 30_000
    with pytest.raises(NativeError, match="slot 3 "):
        pool.step([3], [0])
    if at > 0:  # the worker continues
        pool.reset([1, 3], [0, 0], [0, 0])
        assert pool.step([1, 3], [0, 0])[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        (
            f"{TOYS}ToyTrouble-v0",
            {"what": "raise", "at": -1},
            "start (worker 0, process PID): ValueError: the toy broke",
        ),
        (
            f"{TOYS}ToyTrouble-v0",
            {"what": "die", "at": -1},
            "start (worker 0, process PID): the worker ended with exit",
        ),
        (f"{TOYS}ToyMissing-v0", {}, "`ToyMissing` doesn't exist"),
        (f"{TOYS}ToyDict-v1", {}, "version `v1` for environment `ToyDict` doesn't exist"),
        ("no_such_module:Toy-v0", {}, "No module named 'no_such_module'"),
        ("CartPole-v1", {"gravity": 1}, "got an unexpected keyword argument 'gravity'"),
        (f"{TOYS}ToyGraph-v0", {}, "TypeError: the observation space is Graph("),
        (f"{TOYS}ToyIntegerBox-v0", {}, "TypeError: the action space is Box(0, 3, (2,), int32), expected Discrete"),
        (
            f"{TOYS}ToyImage-v0",
            {"render_mode": "rgb_array", "gray": True},
            "TypeError: the screen is uint8 (4, 5), expected",
        ),
        (f"{TOYS}ToyManyChoices-v0", {}, "has 18446744073709551616 combinations, expected at most 4096"),
    ],
)
def test_what_cannot_be_made(name, kwargs, message):
    with pytest.raises(NativeError) as failed:
        pool_of(name, **kwargs)
    assert message in re.sub(r"process \d+", "process PID", str(failed.value))
    assert str(failed.value).startswith(f"gymnasium environment '{name}', start (")
    assert ("Traceback" in str(failed.value)) == (kwargs.get("what") == "raise")  # only for exceptions of user code


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gymnasium:CartPol-v1", {}, 'env.name = "gymnasium:CartPol-v1": Environment `CartPol` doesn\'t exist'),
        ("gymnasium:CartPole-v9", {}, "Environment version `v9` for environment `CartPole` doesn't exist"),
        ("gymnasium:", {}, 'env.name = "gymnasium:": expected the id of an environment'),
        ("gymnasium:CartPole-v1", {"worker": 2}, "env.options.worker = 2: there is no such key; did you mean workers?"),
        ("gymnasium:CartPole-v1", {"workers": 0}, "env.options.workers = 0: expected at least 1"),
        ("gymnasium:CartPole-v1", {"timeout": -1.0}, "env.options.timeout = -1.0: expected more than 0"),
        ("gymnasium:CartPole-v1", {"kwargs": 3}, "env.options.kwargs = 3: expected"),
        ("gymnasium:CartPole-v1", {"kwargs": {"id": 3}}, "env.options.kwargs.id = 3: expected a keyword argument of"),
        ("gymnasium:CartPole-v1", {"kwargs": {"a": {1}}}, "env.options.kwargs.a = {1}: expected strings, numbers"),
    ],
)
def test_mistakes_are_said_before_anything_starts(name, options, message):
    _, (problem,) = registry.check(name, options)
    assert message in str(problem)
    with pytest.raises(UserError, match=re.escape(message)):
        registry.resolve(name, options)


def test_the_folder_need_not_be_on_the_path(tmp_path, monkeypatch):
    (tmp_path / "my_module.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('MyEnv-v0', CartPoleEnv, max_episode_steps=2)\n"
    )
    monkeypatch.chdir(tmp_path)
    pool = pool_of("my_module:MyEnv-v0")
    pool.reset([0], [0], [0])
    assert [pool.step([0], [0])[1][0] for _ in range(2)] == [False, True]


@pytest.mark.parametrize(("name", "fps"), [("CartPole-v1", 50), ("Acrobot-v1", 15), (f"{TOYS}ToyImage-v0", 30)])
def test_real_time(name, fps):
    """Steps per second according to the source code: CartPole's tau is 0.02 s, for example."""
    assert registry.find(f"gymnasium:{name}", {"workers": 1}).frames_per_s == fps
    assert registry.find("frostbite").frames_per_s is None


def test_rendering():
    pool = pool_of(f"{TOYS}ToyImage-v0", 3, workers=2, render_mode="rgb_array")
    assert pool.render_shape == (4, 5, 3)
    pool.reset([0, 1, 2], [1, 2, 3], [0, 0, 0])
    pool.step([1], [3])
    assert np.array_equal(pool.render([2, 1, 0]), pool.observe([2, 1, 0])[:, ::-1])
    silent = pool_of(f"{TOYS}ToyImage-v0")
    silent.reset([0], [0], [0])
    with pytest.raises(NativeError, match="rendering"):
        silent.render([0])


@pytest.mark.parametrize("what", ["nan reward", "nan observation"])
def test_numbers_that_are_not_finite_end_the_episode(what):
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what=what)
    pool.reset([0], [0], [0])
    pool.step([0], [0])
    before = pool.observe([0])
    assert pool.failure(0) == ""
    rewards, dones = pool.step([0], [0])
    assert (rewards[0], dones[0]) == (0, True)
    assert re.fullmatch(r"the (reward is nan|observation has a number that is not finite) at step 2", pool.failure(0))
    assert np.all(np.isfinite(pool.observe([0])))
    if what == "nan observation":
        assert np.array_equal(pool.observe([0]), before)
    pool.reset([0], [0], [0])
    assert pool.failure(0) == ""


def test_an_observation_that_is_not_finite_at_the_start():
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what="nan observation", at=0)
    pool.reset([0], [0], [0])
    assert np.array_equal(pool.observe([0]), np.zeros((1, 3)))
    assert pool.step([0], [0]) == (0, True)
    assert pool.failure(0) == "the observation has a number that is not finite at step 0"


def test_printing_and_reading_disturb_nobody(capfd):
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what="print")
    pool.reset([0], [0], [0])
    pool.step([0], [0])
    assert pool.step([0], [0])[0][0] == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "printed by the toy\nwritten by the toy\n" in err
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what="read", at=1)
    pool.reset([0], [0], [0])
    assert pool.step([0], [0])[0][0] == 0  # characters


def test_a_killed_worker():
    before = children()
    pool = pool_of("CartPole-v1", 4, workers=2)
    first, second = sorted(children() - before)
    pool.reset(range(4), range(4), [0] * 4)
    os.kill(second, signal.SIGKILL)
    killed = rf"step of slot 1 \(worker 1, process {second}\): the worker was killed by signal 9"
    with pytest.raises(EnvironmentFailure, match=killed):
        pool.step([1], [0])
    assert gone({second})
    with pytest.raises(EnvironmentFailure, match="reset of slot 3 .* the worker was killed by signal 9"):
        pool.reset([3], [0], [0])
    assert pool.step([0, 2], [0, 0])[0].tolist() == [1, 1]  # slots of the other worker


def test_a_worker_that_ends_itself():
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what="die", at=1)
    pool.reset([0], [0], [0])
    with pytest.raises(EnvironmentFailure, match="step of slot 0 .* the worker ended with exit code 4"):
        pool.step([0], [0])


@pytest.mark.parametrize("what", ["hang", "hold"])
def test_an_environment_that_takes_too_long(what):
    before = children()
    pool = pool_of(f"{TOYS}ToyTrouble-v0", timeout=3.0, what=what, at=1)
    pool.reset([0], [0], [0])
    with pytest.raises(EnvironmentFailure, match="step of slot 0 .* no answer within 3 s"):
        pool.step([0], [0])
    assert gone(children() - before)


def test_a_fork_leaves_the_workers_alone():
    pool = pool_of("CartPole-v1", 2, workers=2)
    pool.reset([0, 1], [0, 0], [0, 0])
    forked = os.fork()
    if forked == 0:
        pool.__del__()
        os._exit(0)
    assert os.waitpid(forked, 0)[1] == 0
    assert pool.step([0, 1], [0, 0])[0].tolist() == [1, 1]


HUNG = """
import sys
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
options = {"workers": 2, "kwargs": {"what": "hold", "at": 1}}
pool = EnvPool(registry.resolve("gymnasium:tests.support.gymnasium_toys:ToyTrouble-v0", options), 2)
pool.reset([0, 1], [0, 0], [0, 0])
print("ready", flush=True)
pool.step([0, 1], [0, 0])
"""


def test_workers_that_hang_die_with_their_caller():
    caller = subprocess.Popen([sys.executable, "-c", HUNG], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert caller.stdout.readline() == "ready\n"
    time.sleep(0.5)  # the workers hang by now, holding the GIL
    workers = children(caller.pid)
    assert len(workers) == 2
    caller.kill()
    caller.wait()
    caller.stdout.close()
    assert gone(workers)
