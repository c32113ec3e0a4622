"""Measures of a behavior: names, bounds, and selection by options."""

import re

import gymnasium
import numpy as np
import pytest

from neuroevo.config.load import make_config
from neuroevo.core.behavior import Measure
from neuroevo.core.errors import EnvironmentFailure
from neuroevo.core.problems import ConfigError
from neuroevo.envs import registry
from neuroevo.envs.mujoco_options import FEET
from neuroevo.native.env_pool import EnvPool
from tests.support.atari_reference import ReferenceEnv
from tests.support.gymnasium_pools import TOYS
from tests.support.mujoco_reference import GymnasiumTask, make

STEPS = 60
INFINITE = float("inf")


def random_actions(pool, seed=0):
    """Yield random actions of one environment forever."""
    rng = np.random.default_rng(seed)
    while True:
        if len(pool.action_low):
            yield rng.uniform(pool.action_low, pool.action_high).astype(np.float32)
        else:
            yield int(rng.integers(pool.num_actions))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pong", {}),
        ("pong", {"behavior": [7, 0, 7]}),
        ("hard_maze", {}),
        ("medium_maze", {}),
        ("Hopper", {}),
        *((task, {"behavior": "contact"}) for task in FEET),
        ("gymnasium:Swimmer-v5", {"behavior": ["x_position", "y_velocity"], "workers": 1}),
    ],
)
def test_every_number_has_a_name_and_stays_within_its_bounds(name, options):
    environment = registry.find(name, options)
    measures, pool = environment.measures, EnvPool(environment.spec, 1)
    assert pool.behavior_shape == (len(measures),) and all(each.name for each in measures)
    low, high = (np.array([getattr(each, end) for each in measures], np.float64) for end in ("low", "high"))
    pool.reset([0], [3], [0])
    for _, action in zip(range(STEPS), random_actions(pool), strict=False):
        _, (done,) = pool.step([0], [action])
        behavior = pool.behavior([0])[0]
        assert (behavior >= low).all() and (behavior <= high).all()
        if done:
            break


def test_names_and_bounds():
    assert registry.find("pong", {"behavior": [49]}).measures == [Measure("RAM 49", 0, 255)]
    assert len(registry.find("pong").measures) == 128
    assert registry.find("Ant").measures == [Measure("x"), Measure("y")]
    assert (Measure("x").low, Measure("x").high) == (-INFINITE, INFINITE)
    walls = np.array(registry.find("hard_maze").walls["walls"])
    x, y = registry.find("hard_maze").measures
    assert (x.name, x.low, x.high) == ("x", walls[:, ::2].min(), walls[:, ::2].max())
    assert (y.name, y.low, y.high) == ("y", walls[:, 1::2].min(), walls[:, 1::2].max())
    feet = registry.find("walker2d", {"behavior": "contact"}).measures
    assert feet == [Measure("contact of foot", 0, 1), Measure("contact of foot left", 0, 1)]
    assert not registry.find("gymnasium:CartPole-v1").measures


def test_bytes_of_memory_are_those_of_ale_py():
    chosen = [107, 0, 127, 2]
    pool, game = EnvPool(registry.resolve("frostbite", {"behavior": chosen}), 1), ReferenceEnv("frostbite")
    pool.reset([0], [5], [4 * STEPS])
    game.reset(5, 4 * STEPS)
    seen = []
    for _, action in zip(range(STEPS), random_actions(pool), strict=False):
        pool.step([0], [action])
        game.step(action)
        seen.append(pool.behavior([0])[0])
        assert seen[-1].dtype == np.uint8 and np.array_equal(seen[-1], game.ale.getRAM()[chosen])
    assert len(np.unique(seen, axis=0)) > 20


@pytest.mark.parametrize("task", FEET)
def test_contacts_of_feet_are_those_in_gymnasium(task):
    pool, reference = make(task, behavior="contact"), GymnasiumTask(f"{task}-v5")
    model, data = reference.env.model, reference.env.data
    feet = [model.geom(name).id for name in FEET[task]]
    for seed in range(3):
        pool.reset([0], [seed], [0])
        reference.start(pool.state([0])[0])
        touched, done = [], False
        for _, action in zip(range(STEPS), random_actions(pool, seed), strict=False):
            _, (done,) = pool.step([0], [action])
            reference.step(action)
            pairs = [contact.geom for contact in data.contact if contact.exclude == 0]
            ground = [{int(a), int(b)} for a, b in pairs if 0 in (model.geom_bodyid[a], model.geom_bodyid[b])]
            touched.append([any(foot in pair for pair in ground) for foot in feet])
            assert np.array_equal(pool.behavior([0])[0], np.mean(touched, axis=0))
            if done:
                break
        assert np.any(touched)


def test_keys_of_info_are_gymnasiums():
    keys = ["x_position", "reward_ctrl"]
    pool = EnvPool(registry.resolve("gymnasium:Swimmer-v5", {"behavior": keys, "workers": 1}), 2)
    env, seed = gymnasium.make("Swimmer-v5"), 9
    pool.reset([0, 1], [8, seed], [0, 0])
    _, info = env.reset(seed=seed)
    ours = pool.behavior([1])[0]
    assert ours.dtype == np.float64 and ours[0] == info["x_position"] and np.isnan(ours[1])
    for _, action in zip(range(STEPS), random_actions(pool), strict=False):
        pool.step([0, 1], [action, action])
        _, _, _, _, info = env.step(action)
        assert list(pool.behavior([1])[0]) == [info[key] for key in keys]


@pytest.mark.parametrize(
    ("toy", "key", "message"),
    [
        ("ToyInfo-v0", "hights", "no key 'hights', which env.options.behavior names; its keys are height, name"),
        ("ToyInfo-v0", "name", "could not convert string to float"),
        ("ToyDict-v0", "height", "info has no key 'height', which env.options.behavior names; it is empty"),
    ],
)
def test_a_key_that_cannot_be_a_behavior(toy, key, message):
    options = {"behavior": [key], "workers": 1, "retries": 0}
    pool = EnvPool(registry.resolve(f"gymnasium:{TOYS}{toy}", options), 1)
    pool.reset([0], [0], [0])
    with pytest.raises(EnvironmentFailure, match=re.escape(message)):
        pool.step([0], [0])


def test_a_behavior_that_is_not_finite_ends_its_episode():
    pool = EnvPool(registry.resolve(f"gymnasium:{TOYS}ToyInfo-v0", {"behavior": ["height"], "workers": 1}), 1)
    pool.reset([0], [0], [0])
    assert pool.step([0], [0]) == ([1.0], [False]) and pool.behavior([0])[0] == [1.0]
    assert pool.step([0], [0]) == ([0.0], [True])
    assert pool.failure(0) == "the behavior has a number that is not finite at step 2"


@pytest.mark.parametrize(
    ("name", "behavior", "key"),
    [
        ("pong", [128], "env.options.behavior.0"),
        ("pong", [3, -1], "env.options.behavior.1"),
        ("pong", "ram", "env.options.behavior"),
        ("Hopper", "contacts", "env.options.behavior"),
        ("Swimmer", "contact", "env.options.behavior"),
        ("gymnasium:CartPole-v1", ["a\nb"], "env.options.behavior.0"),
        ("gymnasium:CartPole-v1", [""], "env.options.behavior.0"),
    ],
)
def test_mistakes(name, behavior, key):
    _, problems = registry.check(name, {"behavior": behavior})
    assert [problem.key for problem in problems] == [key]


def test_a_run_records_what_the_options_choose():
    tables = {"env": {"name": "pong", "options": {"behavior": [49, 54]}}, "training": {"generations": 1}}
    config = make_config(tables)
    assert config.recorded_behavior is not None and config.tables()["env"]["options"] == {"behavior": [49, 54]}
    tables |= {"env": {"name": "gymnasium:CartPole-v1"}, "network": {"name": "mlp"}}
    assert make_config(tables).recorded_behavior is None
    with pytest.raises(ConfigError) as caught:
        make_config({**tables, "algorithm": {"name": "ga_ns"}})
    assert [problem.key for problem in caught.value.problems] == ["algorithm.name"]
    tables["env"]["options"] = {"behavior": ["x"]}
    assert make_config({**tables, "algorithm": {"name": "ga_ns"}}).recorded_behavior is not None
