"""Gymnasium environments, compared with the same environments stepped in this process."""

from __future__ import annotations

import os
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.envs.gymnasium import spaces
from neuroevo.native import library
from tests.support.gymnasium_pools import TOYS, children, gone, nothing_left_behind, pool_of  # noqa: F401 (a fixture)

ROOT = Path(__file__).parents[2]


def as_vector(space: gymnasium.Space, observation: object) -> np.ndarray:
    """Convert an observation as documented, apart from its dtype."""
    if isinstance(space, gymnasium.spaces.Box):
        return np.atleast_1d(observation)
    return gymnasium.spaces.flatten(space, observation)


def as_action(space: gymnasium.Space, action: np.ndarray) -> object:
    """Convert an action as documented."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return space.start + np.int64(action)
    if isinstance(space, gymnasium.spaces.Box):
        return np.reshape(action, space.shape).astype(space.dtype)
    sizes = space.nvec if isinstance(space, gymnasium.spaces.MultiDiscrete) else np.full(space.shape, 2)
    choices = []
    for size in sizes.ravel()[::-1]:  # the last varies fastest
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
    pool = pool_of(name, slots, **kwargs)
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
    """Play some steps of 5 slots; return all observations, rewards and dones."""
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
        pool.reset(range(slots), range(slots), [0] * slots)  # all workers are ready then
        started = children() - before
        assert len(started) == expected
        for worker in started:  # a worker with another worker's socket would keep it open
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
    assert [pool.step([1], [[0.0]])[1][0] for _ in range(200)] == [False] * 199 + [True]  # the environment's limit


@pytest.mark.thorough
@pytest.mark.slow
def test_an_environment_without_limit_is_cut_off():
    pool = pool_of(f"{TOYS}ToyWithoutEnd-v0")
    pool.reset([0], [1], [0])
    steps = 1
    while not pool.step([0], [0])[1][0]:
        steps += 1
    assert steps == 100_000


def test_global_generators_are_seeded_per_episode():
    # Values of the first observation and of the steps, from an environment in its own process.
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
