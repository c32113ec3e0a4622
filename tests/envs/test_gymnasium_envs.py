"""Any environment of Gymnasium, held against the same environment stepped in this process, and what can go wrong."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.core.errors import NativeError, UserError
from neuroevo.envs import registry
from neuroevo.envs.gymnasium import spaces
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.runs.metrics_files import read_rows

TOYS = "tests.support.gymnasium_toys:"
ROOT = Path(__file__).parents[2]


def pool_of(name: str, slots: int = 1, workers: int = 1, timeout: float = 100.0, **kwargs) -> EnvPool:
    options = {"workers": workers, "timeout": timeout, "kwargs": kwargs}
    return EnvPool(registry.resolve(f"gymnasium:{name}", options), slots)


def children(of: int | None = None) -> set[int]:
    """Process ids of the children of a process, by default this one."""
    tasks = Path(f"/proc/{of or os.getpid()}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def gone(processes: set[int], seconds: float = 10) -> bool:
    """Whether all of them end, and are not left as zombies of this process."""
    end = time.monotonic() + seconds
    while any(Path(f"/proc/{process}").exists() for process in processes) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(Path(f"/proc/{process}").exists() for process in processes)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Every pool's processes are gone once the pool is."""
    before = children()
    yield
    gc.collect()
    assert gone(children() - before)


def as_vector(space: gymnasium.Space, observation: object) -> np.ndarray:
    """What documentation says of an observation, apart from its dtype."""
    if isinstance(space, gymnasium.spaces.Box):
        return np.atleast_1d(observation)
    return gymnasium.spaces.flatten(space, observation)


def as_action(space: gymnasium.Space, action: np.ndarray) -> object:
    """What documentation says of an action."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return space.start + np.int64(action)
    if isinstance(space, gymnasium.spaces.Box):
        return np.reshape(action, space.shape).astype(space.dtype)
    sizes = space.nvec if isinstance(space, gymnasium.spaces.MultiDiscrete) else np.full(space.shape, 2)
    choices = []
    for size in sizes.ravel()[::-1]:  # the last counts fastest
        choices.insert(0, action % size)
        action //= size
    return (np.reshape(choices, sizes.shape) + getattr(space, "start", 0)).astype(space.dtype)


SPACES = [  # name, keywords, dtype and shape of an observation, number of actions (negative: of a vector's numbers)
    ("CartPole-v1", {}, "float32", (4,), 2),
    ("CartPole-v1", {"sutton_barto_reward": True, "max_episode_steps": 30}, "float32", (4,), 2),
    ("Pendulum-v1", {"g": 9.81}, "float32", (3,), -1),
    ("MountainCarContinuous-v0", {"goal_velocity": 0.01}, "float32", (2,), -1),
    ("FrozenLake-v1", {}, "float32", (16,), 4),
    ("FrozenLake-v1", {"desc": ["SFF", "FHF", "FFG"], "is_slippery": False}, "float32", (9,), 4),
    ("Blackjack-v1", {"natural": True}, "float32", (32 + 11 + 2,), 2),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0.1}, "float64", (4,), -1),
    ("HalfCheetah-v5", {"exclude_current_positions_from_observation": False}, "float64", (18,), -6),
    (f"{TOYS}ToyDict-v0", {"mean": 1.5}, "float64", (6 + 4 + 3,), 3),
    (f"{TOYS}ToyTuple-v0", {}, "float32", (3 + 2 + 2,), 6),
    (f"{TOYS}ToyImage-v0", {}, "uint8", (4, 5, 3), 16),
    (f"{TOYS}ToyHalf-v0", {}, "float32", (1,), -2),
    (f"{TOYS}ToyLong-v0", {}, "float64", (2,), 3),
]


@pytest.mark.parametrize(("name", "kwargs", "dtype", "shape", "actions"), SPACES)
def test_equals_the_environment_stepped_here(name, kwargs, dtype, shape, actions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its MUJOCO_LOG.TXT into the current folder
    slots = 3
    pool = pool_of(name, slots, workers=2, **kwargs)
    assert (pool.observation_dtype, pool.observation_shape, pool.frame_skip) == (dtype, shape, 1)
    assert (pool.num_actions, pool.action_dtype) == (abs(actions), "int32" if actions > 0 else "float32")
    here = [gymnasium.make(name, **kwargs) for _ in range(slots)]
    space, action_space = here[0].observation_space, here[0].action_space
    if actions < 0:
        assert np.array_equal(pool.action_low, np.ravel(action_space.low).astype(np.float32))
        assert np.array_equal(pool.action_high, np.ravel(action_space.high).astype(np.float32))
    rng = np.random.default_rng(7)
    over, episodes = [True] * slots, 0
    for _ in range(60):
        for slot in np.flatnonzero(over):
            seed = 2**31 * int(rng.integers(2**31)) + 100 + episodes
            pool.reset([slot], [seed], [0])
            first, _ = here[slot].reset(seed=100 + episodes)
            assert np.array_equal(pool.observe([slot])[0], as_vector(space, first).astype(dtype))
            episodes += 1
        if actions > 0:
            given = rng.integers(actions, size=slots).astype(np.int32)
        else:
            given = rng.uniform(-1, 1, (slots, -actions)).astype(np.float32)
        rewards, dones = pool.step(range(slots), given)
        for slot, env in enumerate(here):
            observation, reward, terminated, truncated, _ = env.step(as_action(action_space, given[slot]))
            assert np.array_equal(pool.observe([slot])[0], as_vector(space, observation).astype(dtype))
            assert (rewards[slot], dones[slot]) == (float(reward), terminated or truncated)
        over = dones
    for env in here:
        env.close()


@given(st.data())
def test_every_combination_is_one_action(data):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    starts = data.draw(st.lists(st.integers(-5, 5), min_size=len(sizes), max_size=len(sizes)))
    space = gymnasium.spaces.MultiDiscrete(sizes, start=starts)
    actions = spaces.actions(space)
    decoded = [actions.decode(np.array([index], np.int32)) for index in range(actions.count)]
    assert all(space.contains(action) for action in decoded)
    assert len({tuple(action) for action in decoded}) == np.prod(sizes)
    assert [tuple(action) for action in decoded] == sorted(tuple(action) for action in decoded)


@given(st.sampled_from(["int8", "uint16", "int32", "uint32", "int64", "uint64", "bool"]), st.data())
def test_integers_survive(dtype, data):
    limits = np.iinfo(dtype) if dtype != "bool" else np.iinfo(np.uint8)
    high = 1 if dtype == "bool" else data.draw(st.integers(1, min(limits.max, 2**53)))
    low = data.draw(st.integers(max(limits.min, -(2**53)), high - 1)) if dtype != "bool" else 0
    values = np.array(data.draw(st.lists(st.integers(low, high), min_size=3, max_size=3)), dtype)
    observations = spaces.observations(gymnasium.spaces.Box(low, high, (3,), np.dtype(dtype)))
    written = np.frombuffer(observations.encode(values), observations.dtype)
    assert [int(value) for value in written] == [int(value) for value in values]
    assert observations.dtype == (np.float32 if max(abs(low), abs(high)) <= 2**24 else np.float64)


def play(name: str, workers: int, threads: int) -> list:
    """Some steps of 5 slots: all observations, rewards and ends."""
    library.set_threads(threads)
    pool = pool_of(name, 5, workers)
    seen = []
    pool.reset(range(5), range(5), [0] * 5)
    for step in range(25):
        rewards, dones = pool.step(range(5), [(step + slot) % 2 for slot in range(5)])
        seen += [pool.observe(range(5)), rewards, dones]
        over = np.flatnonzero(dones)
        pool.reset(over, 1000 * step + over, [0] * len(over))
    return seen


@pytest.fixture
def threads():
    before = library.get_threads()
    yield
    library.set_threads(before)


@pytest.mark.usefixtures("threads")
def test_results_do_not_depend_on_workers_and_threads():
    expected = play("CartPole-v1", 1, 1)
    for workers, count in ((1, 3), (2, 2), (5, 3), (64, 1)):
        assert all(map(np.array_equal, play("CartPole-v1", workers, count), expected))


def test_as_many_workers_as_needed():
    before = children()
    for slots, workers, expected in ((5, 2, 2), (2, 5, 2), (1, 1, 1)):
        pool = pool_of("CartPole-v1", slots, workers)
        pool.reset(range(slots), range(slots), [0] * slots)  # all are ready then
        started = children() - before
        assert len(started) == expected
        for worker in started:  # none has the sockets of the others, or would not notice that they are closed
            files = [os.readlink(file) for file in Path(f"/proc/{worker}/fd").iterdir()]
            assert sum(file.startswith("socket:") for file in files) == 1
        del pool
        assert children() == before


def test_a_thousand_slots():
    pool = pool_of("CartPole-v1", 1000, workers=2)
    pool.reset(range(1000), range(1000), [0] * 1000)
    pool.step(range(1000), [1] * 1000)
    seen = pool.observe(range(1000))
    env = gymnasium.make("CartPole-v1")
    for slot in (0, 1, 998, 999):
        env.reset(seed=slot)
        assert np.array_equal(seen[slot], env.step(1)[0])


def test_cut_off():
    pool = pool_of("Pendulum-v1", 2)
    pool.reset([0, 1], [1, 1], [3, 0])
    assert [pool.step([0], [[0.0]])[1][0] for _ in range(3)] == [False, False, True]
    assert [pool.step([1], [[0.0]])[1][0] for _ in range(200)] == [False] * 199 + [True]  # its own limit


@pytest.mark.slow
def test_an_environment_without_limit_is_cut_off():
    pool = pool_of(f"{TOYS}ToyWithoutEnd-v0")
    pool.reset([0], [1], [0])
    steps = 1
    while not pool.step([0], [0])[1][0]:
        steps += 1
    assert steps == 100_000


def test_global_generators_are_seeded_per_episode():
    # Of an environment in a process of its own, its first observation's numbers and those of the steps.
    pool = pool_of(f"{TOYS}ToyGlobal-v0", 2, workers=2)
    seen = []
    for slot in (0, 0, 1):
        pool.reset([slot], [2**31 + 5], [0])
        first = pool.observe([slot])
        pool.step([slot], [0])
        seen.append(np.concatenate([first, pool.observe([slot])]))
    assert seen[0][0, 0] != seen[0][1, 0]
    assert np.array_equal(seen[0], seen[1])
    assert np.array_equal(seen[0], seen[2])


def test_other_slots_of_a_worker_do_not_disturb():
    alone, together = pool_of(f"{TOYS}ToyDict-v0"), pool_of(f"{TOYS}ToyDict-v0", 2)
    alone.reset([0], [3], [0])
    together.reset([1], [3], [0])
    for step in range(5):
        together.reset([0], [step], [0])
        together.step([0], [0])
        assert alone.step([0], [1])[0] == together.step([1], [1])[0]
        assert np.array_equal(alone.observe([0]), together.observe([1]))


@pytest.mark.parametrize(
    ("what", "raised"),
    [
        ("raise", ["ValueError: the toy broke; grün ?", "Traceback (most recent call last):", "in trouble"]),
        ("exit", ["SystemExit: 3", "in trouble"]),
        ("wrong shape", ["ValueError: the observation has shape (4,), its space (3,)"]),
        ("no reward", ["TypeError: float() argument must be"]),
    ],
)
@pytest.mark.parametrize("at", [0, 2])
def test_exceptions_reach_the_caller(what, raised, at):
    if (what, at) == ("no reward", 0):
        return  # a reset has none
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
    with pytest.raises(NativeError, match="slot 3 is not live"):
        pool.step([3], [0])
    if at > 0:  # the worker goes on
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
    assert ("Traceback" in str(failed.value)) == (kwargs.get("what") == "raise")  # where it tells more


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
        ("gymnasium:CartPole-v1", {"kwargs": {"id": 3}}, "env.options.kwargs.id = 3: expected a keyword of"),
        ("gymnasium:CartPole-v1", {"kwargs": {"a": {1}}}, "env.options.kwargs.a = {1}: expected text, numbers"),
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
    """Steps in a second, as their sources have it: CartPole's tau is 0.02 s, for example."""
    assert registry.find(f"gymnasium:{name}", {"workers": 1}).frames_per_s() == fps
    assert registry.find("frostbite").frames_per_s() is None


def test_rendering():
    pool = pool_of(f"{TOYS}ToyImage-v0", 3, workers=2, render_mode="rgb_array")
    assert pool.render_shape == (4, 5, 3)
    pool.reset([0, 1, 2], [1, 2, 3], [0, 0, 0])
    pool.step([1], [3])
    assert np.array_equal(pool.render([2, 1, 0]), pool.observe([2, 1, 0])[:, ::-1])
    silent = pool_of(f"{TOYS}ToyImage-v0")
    silent.reset([0], [0], [0])
    with pytest.raises(NativeError, match="rendering is not supported by this environment"):
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
    with pytest.raises(NativeError, match=killed):
        pool.step([1], [0])
    assert gone({second})
    with pytest.raises(NativeError, match="reset of slot 3 .* the worker was killed by signal 9"):
        pool.reset([3], [0], [0])
    assert pool.step([0, 2], [0, 0])[0].tolist() == [1, 1]  # the other worker's


def test_a_worker_that_ends_itself():
    pool = pool_of(f"{TOYS}ToyTrouble-v0", what="die", at=1)
    pool.reset([0], [0], [0])
    with pytest.raises(NativeError, match="step of slot 0 .* the worker ended with exit code 4"):
        pool.step([0], [0])


@pytest.mark.parametrize("what", ["hang", "hold"])
def test_an_environment_that_takes_too_long(what):
    before = children()
    pool = pool_of(f"{TOYS}ToyTrouble-v0", timeout=3.0, what=what, at=1)
    pool.reset([0], [0], [0])
    with pytest.raises(NativeError, match="step of slot 0 .* no answer within 3 s"):
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
    time.sleep(0.5)  # they hang by now, holding the interpreter's lock
    workers = children(caller.pid)
    assert len(workers) == 2
    caller.kill()
    caller.wait()
    caller.stdout.close()
    assert gone(workers)


SMALL = """
[network]
name = "mlp"
[algorithm]
name = "ga"
population = 4
parents = 2
validation_candidates = 2
"""
CONFIG = f"""
[env]
name = "gymnasium:tests.support.gymnasium_toys:ToyTrouble-v0"
[env.options.kwargs]
what = "hold"
at = 20
{SMALL}[training]
generations = 2
test_episodes = 1
[hardware]
lanes = 2
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_run_whose_environment_hangs(tmp_path):
    (tmp_path / "hang.toml").write_text(CONFIG)
    command = [sys.executable, "-m", "neuroevo", "train", str(tmp_path / "hang.toml"), "--out", str(tmp_path / "run")]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline().startswith("ga on gymnasium:")
    time.sleep(2)
    workers = children(run.pid)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "interrupted; go on with" in err
    assert gone(workers)


TIRED = f"""
[env]
name = "gymnasium:tests.support.gymnasium_toys:ToyTired-v0"
[env.options]
workers = 1
timeout = 3.0
[env.options.kwargs]
episodes = 10
{SMALL}[training]
generations = 3
validation_episodes = 2
test_episodes = 0
[hardware]
lanes = 1
slots = 1
"""  # a generation has 8 episodes


def train_tired(folder, *arguments):
    (folder / "tired.toml").write_text(TIRED)
    command = ["train", folder / "tired.toml", f"--out={folder / 'run'}", *arguments]
    return CliRunner().invoke(app, [str(each) for each in command])


@pytest.mark.parametrize("hang", ["false", "true"])
def test_what_an_environment_says_comes_first(tmp_path, hang):
    """Its reason and its traceback, without TensorFlow's; finished generations are kept."""
    done, out = train_tired(tmp_path, f"--set=env.options.kwargs.hang={hang}"), tmp_path / "run"
    assert done.exit_code == 1
    first, *others = done.stderr.splitlines()
    reason = "no answer within 3 s" if hang == "true" else "OverflowError: tired"
    where = rf"gymnasium environment '{TOYS}ToyTired-v0', reset of slot 0 \(worker 0, process \d+\)"
    assert re.fullmatch(f"neuroevo: {where}: {reason}", first)
    assert others.pop() == f"go on with: neuroevo train --resume {out}"
    if hang == "true":
        assert others == []
    else:
        assert others[:2] == ["of it all", "Traceback (most recent call last):"]
        assert others[-2:] == ["OverflowError: tired", "of it all"]
        assert 'raise OverflowError("tired\\nof it all")' in others[-4] + others[-3]
    assert [row["generation"] for row in read_rows(out)] == [0]
    last = (out / "log.txt").read_text().splitlines()[-1]
    assert re.search(f"ERROR stopped in generation 1: EnvironmentFailure: {where}: {reason}$", last)


def test_debug_shows_where_a_graph_failed(tmp_path):
    done = train_tired(tmp_path, "--debug")
    assert done.exit_code == 1
    assert "Graph execution error" in done.stderr and "lane_graph.py" in done.stderr
    assert "neuroevo: gymnasium environment" in done.stderr.split("Graph execution error")[-1]


@pytest.mark.parametrize(
    ("toy", "network", "message"),
    [
        ("ToyImage", {"normalize_observations": True}, "network.normalize_observations = true: .* shows screens"),
        ("ToyDict", {"dtype": "int8", "activation": "relu"}, "network.dtype = .int8.: .* numbers with fractions"),
        ("ToyHalf", {"action_bins": 3}, r"action\[1\] lies between -2 and inf, expected finite bounds for its 3 bins"),
        ("ToyLong", {"action_bins": 3}, "network.action_bins = 3: expected 0 where an action is one of 3"),
    ],
)
def test_networks_that_do_not_fit_are_refused_before_anything_is_played(toy, network, message):
    from neuroevo.networks.architectures import Network
    from neuroevo.rollout.evaluator import LocalEvaluator

    with pytest.raises(UserError, match=message):
        LocalEvaluator(f"gymnasium:{TOYS}{toy}-v0", Network("mlp", **network), lanes=1, slots=1)


@pytest.mark.parametrize(
    ("name", "network", "shape"),
    [("CartPole-v1", "large_model", "[4]"), ("FrozenLake-v1", "model", "[16]"), ("CartPole-v1", "virtual_bn", "[4]")],
)
def test_networks_for_screens_name_one_for_numbers(tmp_path, name, network, shape):
    """As the command says it: the environment, what it shows, the key to set and to what, in one line."""
    table = {"env.name": f"gymnasium:{name}", "network.name": network, "training.generations": 1}
    changes = [f"--set={key}={value}" for key, value in table.items()]
    done = CliRunner().invoke(app, ["train", "frostbite_ga", *changes, f"--out={tmp_path / 'run'}"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f'neuroevo: network.name = "{network}": this network is for screens of [height, width, channels], '
        f"and gymnasium:{name} shows observations of {shape}; expected mlp\n"
    )
    assert not (tmp_path / "run").exists()


def test_what_bench_cannot_measure():
    from neuroevo.benchmarks import rates

    with pytest.raises(UserError, match=r"ToyHalf-v0 lies between \[-1.0, -2.0\] and \[1.0, inf\], expected finite"):
        rates.env(f"gymnasium:{TOYS}ToyHalf-v0", 1, None, 0.1)
    with pytest.raises(UserError, match="gymnasium:nothing:Nothing-v0 cannot be made: .*No module named 'nothing'"):
        rates.env("gymnasium:nothing:Nothing-v0", 1, None, 0.1)


def test_the_graph_and_the_lane_runner_play_the_same():
    from neuroevo.core.episode import Episode
    from neuroevo.core.genome import Genome
    from neuroevo.native.rollout import run_episodes
    from neuroevo.networks import architectures
    from neuroevo.rollout.evaluator import LocalEvaluator

    genomes = [Genome(base, ((base + 1, 0.1),)) for base in range(4)]
    episodes = [Episode(genome, seed, 100) for genome in genomes for seed in (1, 2)]
    with LocalEvaluator("gymnasium:CartPole-v1", "mlp", lanes=2, slots=2) as evaluator:
        played = evaluator.evaluate(episodes)
    expected = run_episodes(registry.resolve("gymnasium:CartPole-v1"), [architectures.mlp], episodes, lanes=1, slots=3)
    assert np.array_equal(played.returns, expected.returns)
    assert np.array_equal(played.steps, expected.steps)
    assert len(set(played.steps.tolist())) > 1
