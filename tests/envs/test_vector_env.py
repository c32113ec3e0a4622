"""Environments as a gymnasium.vector.VectorEnv: seeds, arrays, steps in the background, screens, failures and errors.
test_vector_gymnasium.py compares them with Gymnasium's own."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.error import (
    ClosedEnvironmentError,
    InvalidAction,
    ResetNeeded,
)
from gymnasium.vector import AutoresetMode

from neuroevo.core.errors import UserError
from neuroevo.envs import registry
from neuroevo.envs.vector import make_vec
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from tests.support.vector_reference import episode_seeds

MODES = list(AutoresetMode)


def test_nothing_imports_tensorflow():
    script = """
import sys
from neuroevo import make_vec
for name in ("ALE/Frostbite-v5", "Ant-v5"):
    env = make_vec(name, 2)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    env.close()
assert "gymnasium" in sys.modules
assert not {"tensorflow", "torch", "keras"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def play(name, num_envs, seed, steps=60, **keywords):
    """Play random actions, with a generator per environment; return observations [steps + 1, N, ...] and rewards."""
    env = make_vec(name, num_envs, **keywords)
    generators = [np.random.default_rng(i) for i in range(num_envs)]
    seen, rewards = [env.reset(seed=seed)[0]], []
    for _ in range(steps):
        drawn = [generator.random(env.single_action_space.shape) for generator in generators]
        if isinstance(env.single_action_space, gymnasium.spaces.Discrete):
            actions = (np.array(drawn) * env.single_action_space.n).astype(int)
        else:
            actions = 2 * np.array(drawn, np.float32) - 1
        observation, reward, *_ = env.step(actions)
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), np.array(rewards)


@pytest.mark.parametrize(
    ("name", "keywords"),
    [("breakout", {"max_episode_steps": 25, "repeat_action_probability": 0.25}), ("Hopper", {})],
)
def test_everything_random_follows_from_the_seeds(name, keywords):
    seen, rewards = play(name, 4, 11, num_threads=1, **keywords)
    for seed, options in (([11, 12, 13, 14], {"num_threads": 3}), (11, {"copy": True})):
        again = play(name, 4, seed, **options, **keywords)
        assert np.array_equal(seen, again[0]) and np.array_equal(rewards, again[1])
    # Given its actions, an environment depends neither on its neighbors nor on its index in the vector.
    assert np.array_equal(seen[:, :2], play(name, 2, 11, **keywords)[0])
    assert np.array_equal(seen[0, 2:], play(name, 2, [13, 14], 0, **keywords)[0][0])
    other = play(name, 4, 12, **keywords)[0]
    assert not np.array_equal(seen, other) and np.array_equal(seen[0, 1:], other[0, :3])


def test_a_reset_without_seeds_goes_on():
    env = make_vec("Hopper", 3)
    first = env.reset(seed=5)[0]
    assert env.np_random_seed == (5, 6, 7)
    second, third = env.reset()[0], env.reset(seed=[None, 6, None])[0]
    assert env.np_random_seed == (5, 6, 7)
    pool = EnvPool(registry.resolve("Hopper"), 3)
    expected = [list(zip(range(3), episode_seeds(seed), strict=False)) for seed in (5, 6, 7)]
    for episode, found in enumerate((first, second)):
        pool.reset(range(3), [seeds[episode][1] for seeds in expected], [0] * 3)
        assert np.array_equal(found, pool.observe(range(3)))
    pool.reset(range(3), [expected[0][2][1], 6, expected[2][2][1]], [0] * 3)
    assert np.array_equal(third, pool.observe(range(3)))


def test_seeds_are_drawn_where_none_were_given():
    one, other = make_vec("Hopper", 3), make_vec("Hopper", 3)
    assert one.np_random_seed == (None, None, None)
    assert not np.array_equal(one.reset()[0], other.reset()[0])
    assert len({*one.np_random_seed, *other.np_random_seed}) == 6
    again = make_vec("Hopper", 3)
    assert np.array_equal(again.reset(seed=one.np_random_seed)[0], again.reset(seed=list(one.np_random_seed))[0])
    assert again.np_random_seed == one.np_random_seed


def test_observations_are_ones_own_or_take_turns():
    env = make_vec("Hopper", 2)
    seen = [env.reset(seed=0)[0], *(env.step(np.zeros((2, 3)))[0] for _ in range(4))]
    assert len({each.ctypes.data for each in seen}) == 5
    assert all(each.flags.owndata and each.flags.writeable for each in seen)
    turns = make_vec("Hopper", 2, copy=False)
    found = turns.reset(seed=0)[0]
    for expected in seen[1:]:
        before, expected_before = found, found.copy()
        found = turns.step(np.zeros((2, 3)))[0]
        assert np.array_equal(found, expected) and np.array_equal(before, expected_before)
        assert not np.shares_memory(found, before)
    assert turns.step(np.zeros((2, 3)))[0] is before


def test_screens():
    env = make_vec("breakout", 2, render_mode="rgb_array")
    assert env.metadata["render_fps"] == 15 and env.render_mode in env.metadata["render_modes"]
    env.reset(seed=4)
    pool = EnvPool(registry.resolve("breakout"), 2)
    pool.reset([0, 1], [4, 5], [0, 0])
    screens = env.render()
    assert isinstance(screens, tuple) and np.array_equal(screens, pool.render([0, 1]))
    assert screens[0].shape == (210, 160, 3) and screens[0].std() > 0
    quiet = make_vec("breakout", 2)
    quiet.reset(seed=4)
    assert quiet.render() is None


@pytest.mark.parametrize("mode", MODES)
def test_a_simulation_that_fails_is_told(mode):
    # Finite actions with an infinite cost.
    env = make_vec("HalfCheetah", 3, autoreset_mode=mode)
    env.reset(seed=0)
    actions = np.zeros((3, 6), np.float32)
    assert "failure" not in env.step(actions)[4]
    actions[1] = 1e30
    observations, rewards, terminated, truncated, infos = env.step(actions)
    told = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert told["_failure"].tolist() == terminated.tolist() == [False, True, False] and not truncated.any()
    assert told["failure"][0] is told["failure"][2] is None and told["failure"][1].startswith("the reward is -inf")
    assert rewards[1] == 0 and np.isfinite(observations).all() and np.isfinite(rewards).all()
    env.reset(options={"reset_mask": terminated})
    observations, _, terminated, _, infos = env.step(np.zeros((3, 6)))
    assert not terminated.any() and "failure" not in infos


ACTIONS = [
    ("breakout", np.array([0, 4]), "action 4 of environment 1 is out of range [0, 4)"),
    ("breakout", np.array([-1, 0]), "action -1 of environment 0 is out of range [0, 4)"),
    ("breakout", np.array([2**32, 0]), "action 4294967296 of environment 0 is out of range [0, 4)"),
    ("breakout", np.array([0.0, 1.0]), "actions have dtype float64, expected integers"),
    ("breakout", np.array([0]), "actions have shape [1], expected [2]"),
    ("breakout", 0, "actions have shape [], expected [2]"),
    ("Hopper", np.zeros(3), "actions have shape [3], expected [2, 3]"),
    ("Hopper", np.array([[0, 0, 0], [0, np.nan, 0]]), "action[1] of environment 1 is nan, expected a finite number"),
    ("Hopper", np.array([[0, 0, -1e300], [0, 0, 0]]), "action[2] of environment 0 is -inf, expected a finite number"),
    ("Hopper", np.full((2, 3), None), "actions have dtype object, expected numbers"),
]


@pytest.mark.parametrize(("name", "actions", "message"), ACTIONS)
def test_wrong_actions_are_refused_and_change_nothing(name, actions, message):
    env, other = make_vec(name, 2), make_vec(name, 2)
    with pytest.raises(ResetNeeded, match="step was called before reset"):
        env.step(actions)
    env.reset(seed=1), other.reset(seed=1)
    with pytest.raises(InvalidAction) as caught:
        env.step(actions)
    assert message in str(caught.value)
    good = np.zeros(env.action_space.shape, env.action_space.dtype)
    assert np.array_equal(env.step(good)[0], other.step(good)[0])


RESETS = [
    ({"seed": -1}, "seed is -1, expected an integer in [0, 2**63)"),
    ({"seed": 2**63 - 1}, "seed is 9223372036854775808, expected an integer in [0, 2**63)"),
    ({"seed": 1.5}, "seed is 1.5, expected an integer in [0, 2**63)"),
    ({"seed": [0, 2.0]}, "seed is 2.0, expected an integer in [0, 2**63)"),
    ({"seed": [1, 2, 3]}, "seed has 3 values, expected one per environment: 2"),
    ({"options": {"mask": 1}}, "options has the key 'mask', expected 'reset_mask' or nothing"),
    ({"options": {"reset_mask": [True, False]}}, "reset_mask is [True, False], expected a bool array [2]"),
    ({"options": {"reset_mask": np.array([1, 0])}}, "reset_mask is array([1, 0]), expected a bool array [2]"),
    ({"options": {"reset_mask": np.zeros(2, bool)}}, "expected a bool array [2] with a True in it"),
    ({"options": {"reset_mask": np.ones(3, bool)}}, "expected a bool array [2] with a True in it"),
    ({"options": {"reset_mask": np.array([False, True])}}, "environment 0 has no episode yet, but the mask excludes"),
]


@pytest.mark.parametrize(("keywords", "message"), RESETS)
def test_wrong_resets_are_refused(keywords, message):
    env = make_vec("Hopper", 2)
    with pytest.raises(ValueError) as caught:
        env.reset(**keywords)
    assert message in str(caught.value)
    assert env.np_random_seed == (None, None)
    env.reset()
    env.reset(seed=[0, np.int64(2**63 - 1)])


MAKES = [
    ({"name": "Frostbyte"}, UserError, "did you mean frostbite?"),
    ({"frameskip": 4}, UserError, "env.options.frameskip = 4: there is no such key; did you mean frame_skip?"),
    ({"num_envs": 0}, ValueError, "num_envs is 0, expected 1 to 65536"),
    ({"num_envs": 2**70}, ValueError, "num_envs is 1180591620717411303424, expected 1 to 65536"),
    ({"num_threads": 0}, ValueError, "num_threads is 0, expected None or 1 or more"),
    ({"num_threads": 5000}, ValueError, "threads is 5000, expected 1 to 4096"),
    ({"max_episode_steps": 0}, ValueError, "max_episode_steps is 0, expected None or 1 or more"),
    ({"max_episode_steps": 2_000_000_000}, ValueError, "max_steps is 2000000000, expected 0"),
    ({"autoreset_mode": "Sometimes"}, ValueError, "'Sometimes' is not a valid AutoresetMode"),
    ({"render_mode": "human"}, ValueError, "render_mode is 'human', expected None or 'rgb_array'"),
    ({"name": "Ant", "render_mode": "rgb_array"}, ValueError, "expected None: Ant-v5 cannot be rendered"),
    ({"name": "Ant", "max_episode_steps": 0}, UserError, "env.options.max_episode_steps = 0"),
    ({"mode": 17}, ValueError, "17"),
]


@pytest.mark.parametrize(("keywords", "kind", "message"), MAKES)
def test_wrong_arguments_are_refused(keywords, kind, message):
    with pytest.raises(kind) as caught:
        make_vec(**{"name": "frostbite", **keywords})
    assert message in str(caught.value)


def test_without_autoreset_an_episode_that_is_over_must_be_reset():
    env = make_vec("Hopper", 2, autoreset_mode="Disabled", max_episode_steps=1)
    env.reset(seed=0)
    assert env.step(np.zeros((2, 3)))[3].all()
    with pytest.raises(ValueError, match="environment 0 .*autoreset"):
        env.step(np.zeros((2, 3)))
    options = {"reset_mask": np.array([True, False])}
    env.reset(options=options)
    assert "reset_mask" in options  # RecordEpisodeStatistics reads it afterwards
    with pytest.raises(ValueError, match="environment 1 "):
        env.step(np.zeros((2, 3)))


def test_close():
    env = make_vec("Hopper", 2)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, env.render, lambda: env.step(np.zeros((2, 3)))):
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_threads_of_its_own_leave_those_of_the_process_alone():
    before = library.get_threads()
    make_vec("Hopper", 2, num_threads=before + 1).reset(seed=0)
    assert library.get_threads() == before


def test_any_number_of_steps_is_the_limit_of_atari():
    # The emulator's frames are counted where the frame skip does not divide them.
    env = make_vec("pong", 1, max_episode_steps=7, frame_skip=3, autoreset_mode="Disabled")
    _, infos = env.reset(seed=0)
    began, ends = infos["episode_frame_number"][0], []
    for _ in range(7):
        _, _, terminated, truncated, infos = env.step(np.array([0]))
        ends.append((terminated[0], truncated[0]))
    assert ends == [(False, False)] * 6 + [(False, True)]
    assert infos["episode_frame_number"][0] - began == 21
