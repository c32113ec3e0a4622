"""The hard maze: whole episodes against a simulation in Python, a solution, names, and invalid input."""

import cmath
import math
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.config.load import make_config
from neuroevo.config.template import documented
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError, UserError
from neuroevo.envs import hard_maze, mujoco, registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.hard_maze_reference import GOAL_RADIUS, RADIUS, ReferenceMaze

NAMES = {"HardMaze-v0": "hard", "MediumMaze-v0": "medium"}
PROTOCOLS = ("lehman", "uber")
SEEDS = 6

# Way points in the hard maze, from the start past two dead ends to the goal. The protocols' robots brake differently.
WAY = (64 + 168j, 108 + 149j, 145 + 172j, 175 + 168j, 168 + 150j, 72 + 92j, 80 + 76j, 150 + 46j, 147 + 22j, 130 + 18j)
WAY += (31 + 20j,)
NEAR = {"lehman": 8, "uber": 10}


def make(name="hard_maze", slots=1, **options):
    pool = EnvPool(registry.resolve(name, options), slots)
    pool.reset(range(slots), range(slots), [0] * slots)
    return pool


def random_actions(seed, steps=400):
    """Return actions, float32 [steps, 2], whose mean changes now and then, so that the robot moves around."""
    rng = np.random.default_rng(seed)
    means = np.repeat(rng.uniform((-0.6, -0.5), (0.6, 1), (steps // 20 + 1, 2)), 20, axis=0)[:steps]
    return np.clip(means + rng.normal(0, 0.4, (steps, 2)), -1.2, 1.2).astype(np.float32)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", NAMES)
def test_episodes_are_those_of_the_reference(name, protocol):
    pool = make(name, SEEDS, protocol=protocol)
    mazes = [ReferenceMaze(hard_maze.map_path(NAMES[name]), protocol) for _ in range(SEEDS)]
    actions = np.stack([random_actions(seed) for seed in range(SEEDS)])
    np.testing.assert_array_equal(pool.state(range(SEEDS)), [maze.state for maze in mazes])
    going, stopped, furthest = list(range(SEEDS)), 0, 0.0
    for step in range(400):
        observations, behaviors = pool.observe(going), pool.behavior(going)
        for each, slot in enumerate(going):
            np.testing.assert_allclose(observations[each], mazes[slot].observation(), rtol=0, atol=1e-6)
            np.testing.assert_array_equal(observations[each, 7:], mazes[slot].observation()[7:])
            np.testing.assert_allclose(behaviors[each], mazes[slot].state[:2], rtol=0, atol=1e-9)
        rewards, dones = pool.step(going, actions[going, step])
        before = [mazes[slot].place for slot in going]
        expected = [mazes[slot].step(actions[slot, step]) for slot in going]
        np.testing.assert_allclose(rewards, [reward for reward, _ in expected], rtol=0, atol=1e-9)
        assert list(dones) == [done for _, done in expected]
        np.testing.assert_allclose(pool.state(going), [mazes[slot].state for slot in going], rtol=0, atol=1e-9)
        stopped += sum(mazes[slot].place == place for slot, place in zip(going, before, strict=True))
        furthest = max(furthest, *(abs(mazes[slot].place - complex(*pool.state([slot])[0, :2])) for slot in going))
        going = [slot for slot, done in zip(going, dones, strict=True) if not done]
        if not going:
            break
    assert stopped > 100, "the robots should have met walls"
    assert furthest < 1e-9


def solving_actions(protocol):
    """Return actions that drive a robot of the reference along WAY, float32 [steps, 2], and the maze at the end."""
    maze = ReferenceMaze(hard_maze.map_path("hard"), protocol)
    left, actions, done = list(WAY), [], False
    while not done:
        while abs(maze.place - left[0]) < NEAR[protocol] and len(left) > 1:
            left.pop(0)
        error = (math.degrees(cmath.phase(left[0] - maze.place)) - maze.heading + 180) % 360 - 180
        turn, speed = np.clip(error / 3, -3, 3), 3 * max(0, math.cos(math.radians(error))) ** 2
        if len(left) == 1:
            speed = min(speed, abs(maze.place - left[0]) / 5)
        wanted = (turn / 3, speed / 3) if protocol == "uber" else (2 * (turn - maze.turn), 2 * (speed - maze.speed))
        actions.append(np.clip(wanted, -1, 1).astype(np.float32))
        _, done = maze.step(actions[-1])
    return np.array(actions), maze


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_hard_maze_can_be_solved(protocol):
    actions, maze = solving_actions(protocol)
    pool = make(protocol=protocol)
    for step, action in enumerate(actions, 1):
        (reward,), (done,) = pool.step([0], [action])
        assert done == (step == len(actions))
    distance = math.dist(pool.behavior([0])[0], (31, 20))
    assert distance == pytest.approx(abs(maze.place - maze.goal), abs=1e-9)
    assert distance < GOAL_RADIUS
    assert reward == -distance
    assert len(actions) < 400 if protocol == "lehman" else len(actions) == 400


def test_the_way_towards_the_goal_is_a_dead_end():
    """By walking distance, on a grid of 2 units, the pocket next to the goal is further from it than the start."""
    maze = ReferenceMaze(hard_maze.map_path("hard"))
    steps, edge = {16 + 10j: 0}, [16 + 10j]  # times 2: a place 2 units from the goal
    while edge:
        near = {place + move for place in edge for move in (1, -1, 1j, -1j)} - steps.keys()
        edge = [place for place in near if maze.distance_to_walls(2 * place) >= RADIUS]
        steps |= dict.fromkeys(edge, max(steps.values()) + 1)
    start, pocket = 18 + 92j, 15 + 33j
    assert abs(2 * start - maze.goal) > 160 and abs(2 * pocket - maze.goal) < 50
    assert steps[pocket] > steps[start] > 250


@settings(deadline=None, max_examples=30)
@given(
    actions=st.lists(st.tuples(*[st.floats(-2, 2, width=32)] * 2), min_size=1, max_size=60),
    seeds=st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2),
    protocol=st.sampled_from(PROTOCOLS),
    image=st.booleans(),
)
def test_replays_are_identical_whatever_was_before_and_whatever_the_seed(actions, seeds, protocol, image):
    pool = make(slots=2, protocol=protocol, observation="image" if image else "sensors")
    kept = []
    for seed in seeds:
        pool.reset([1], [seed], [0])
        kept.append([pool.observe([1]).tobytes()])
        for action in actions:
            pool.step([1], [action])
            kept[-1] += [pool.observe([1]).tobytes(), pool.state([1]).tobytes(), pool.render([1]).tobytes()]
    assert kept[0] == kept[1]


def test_the_ops_do_what_the_native_pool_does():
    """EnvPoolMake and the other ops, with a cut-off."""
    recipe, pool, actions = registry.resolve("hard_maze"), make(), random_actions(3, 30)
    tf_ops, slots, max_episode_steps = load_ops(), np.array([0], np.int64), np.array([30], np.int64)
    handle = tf_ops.env_pool_make(family=recipe.family, options=list(recipe.options), slots=1)
    tf_ops.env_reset(handle, slots, slots, max_episode_steps, np.zeros(0, np.int64))
    pool.reset(slots, slots, max_episode_steps)
    for step in range(30):
        rewards, dones, _ = tf_ops.env_step(handle, slots, actions[step : step + 1])
        expected_rewards, expected_dones = pool.step(slots, actions[step : step + 1])
        assert (rewards.numpy(), dones.numpy()) == (expected_rewards, expected_dones)
        seen = tf_ops.env_observation(handle, slots, dtype=tf.float32, shape=[11])
        np.testing.assert_array_equal(seen, pool.observe(slots))
    assert expected_dones[0] and expected_rewards[0] < 0
    behaviors = tf_ops.env_behavior(handle, slots, dtype=tf.float64, shape=[2])
    np.testing.assert_array_equal(behaviors, pool.behavior(slots))


def test_shapes_and_bounds():
    pool = make()
    assert (pool.observation_dtype, pool.observation_shape) == (np.float32, (11,))
    assert (pool.action_dtype, pool.num_actions) == (np.float32, 2)
    assert [*pool.action_low, *pool.action_high] == [-1, -1, 1, 1]
    assert pool.action_names == ("turn", "speed")
    assert (pool.behavior_dtype, pool.behavior_shape, pool.state_size) == (np.float64, (2,), 5)
    assert pool.render_shape == (400, 392, 3)
    image = make(observation="image")
    assert (image.observation_dtype, image.observation_shape) == (np.uint8, (84, 84, 4))
    assert make("medium_maze").state([0])[0].tolist() == [30, 22, 0, 0, 0]
    assert make("medium_maze", map="hard").state([0])[0].tolist() == [36, 184, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "task"),
    [
        *((name, "HardMaze-v0") for name in ("HardMaze-v0", "HardMaze", " hard_maze ", "hardmaze", "hard_maze-v0")),
        *((name, "MediumMaze-v0") for name in ("MediumMaze-v0", "medium_maze", "Medium Maze")),
    ],
)
def test_mazes_go_by_their_usual_names(name, task):
    recipe = registry.resolve(name)
    assert (recipe.name, recipe.family) == (task, "hard_maze")
    assert recipe.options == (f"map={hard_maze.map_path(NAMES[task])}",)
    assert registry.check(name, {})[1] == []
    assert registry.find(name).options_type is hard_maze.HardMazeOptions


def test_names_are_listed_and_suggested():
    assert list(hard_maze.TASKS) == list(NAMES)
    assert not {*map(str.lower, mujoco.TASKS)} & {"hardmaze", "mediummaze"}
    assert "mazes (2): HardMaze-v0, MediumMaze-v0" in CliRunner().invoke(app, ["info", "--games"]).stdout
    for name, near in (("HardMaz", "HardMaze-v0"), ("HardMaze-v1", "HardMaze-v0"), ("mediun_maze", "MediumMaze-v0")):
        with pytest.raises(UserError, match=f"'{name}' .* {near}"):
            registry.resolve(name)


BAD = [  # option, value, in a configuration, natively
    ("protocol", "stanley", "'lehman' or 'uber'", "one of: lehman, uber"),
    ("observation", "rays", "'sensors' or 'image'", "one of: sensors, image"),
    ("max_episode_steps", 0, "at least 1", "an integer in [1, 100000]"),
    ("max_episode_steps", 100_001, "at most 100000", "an integer in [1, 100000]"),
    ("max_episode_steps", 2.5, "a valid integer", "an integer in [1, 100000]"),
]


@pytest.mark.parametrize(("option", "value", "expected", "natively"), BAD)
def test_bad_options(option, value, expected, natively):
    _, (problem,) = registry.check("hard_maze", {option: value})
    assert (problem.key, problem.value, problem.reason) == (f"env.options.{option}", value, f"expected {expected}")
    with pytest.raises(UserError, match=re.escape(str(problem))):
        registry.resolve("hard_maze", {option: value})
    path = f"map={hard_maze.map_path('hard')}"
    with pytest.raises(NativeError) as caught:
        EnvPool(EnvSpec("HardMaze-v0", "hard_maze", (path, f"{option}={value}")), 1)
    assert str(caught.value) == f"hard_maze option {option} is '{value}', expected {natively}"


def test_other_maps(tmp_path, monkeypatch):
    (tmp_path / "maze.txt").write_text("start 0 0\nheading 90\ngoal 0 20 # near\nwall 9 -9 9 9\n")
    monkeypatch.chdir(tmp_path)
    for given_path in (str(tmp_path / "maze.txt"), "./maze.txt"):
        pool = make(map=given_path, max_episode_steps=10)
        assert pool.state([0])[0].tolist() == [0, 0, 90, 0, 0]
        rewards = [pool.step([0], [[0, 1]]) for _ in range(7)]  # 0.5, 1.5, 3, 5, 7.5, 10.5, 13.5: 6.5 away
        assert not any(done for _, (done,) in rewards)
        (reward,), (done,) = pool.step([0], [[0, 1]])
        assert done and reward == -3.5
    (tmp_path / "maze.txt").write_text("start 0 0\nheading 90\ngoal 0\n")
    with pytest.raises(NativeError, match="maze .*/maze.txt line 3 has 1 values of 'goal', expected 2"):
        make(map="./maze.txt")


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ("hart", "there is no such map; did you mean hard?, expected hard, medium or a path that starts with / . or ~"),
        ("./nothing.txt", "the map cannot be used: there is no /"),
        ("/no\0such", "the map cannot be used: embedded null byte"),
        ("~nosuchuser/maze.txt", "the map cannot be used: Could not determine home directory."),
        ("", "expected"),
        (7, "expected"),
    ],
)
def test_maps_that_are_not_there(chosen, problem):
    _, (found,) = registry.check("hard_maze", {"map": chosen})
    assert (found.key, found.value) == ("env.options.map", chosen) and problem in found.reason
    with pytest.raises(UserError, match=re.escape(str(found))):
        registry.resolve("hard_maze", {"map": chosen})


def test_bad_actions():
    """An action that is not finite ends its episode; an action of another shape is rejected without ending it."""
    for bad, expected in (([np.nan, 0], "action[0] is nan"), ([0, np.inf], "action[1] is inf")):
        pool = make()
        rewards, dones = pool.step([0], [bad])
        assert (rewards.tolist(), dones.tolist()) == ([0], [True])
        assert pool.failure(0) == f"{expected}, expected a finite number"
    pool, untouched = make(), make()
    with pytest.raises(ValueError, match=r"actions has shape \[1, 3\], expected \[1, 2\]"):
        pool.step([0], [[0, 0, 0]])
    for each in (pool, untouched):
        each.step([0], [[0.5, 1]])
    assert pool.state([0]).tobytes() == untouched.state([0]).tobytes()


def test_configurations_explain_the_options():
    tables = {"env": {"name": "hard_maze"}, "network": {"name": "mlp"}, "training": {"total_steps": 1000}}
    text = documented(make_config(tables))
    assert "# Steps after which an episode is cut off.\n# max_episode_steps = 400\n" in text
    assert '\n# protocol = "lehman"\n' in text and "noop_max" not in text
