"""The MuJoCo tasks against Gymnasium's own, from the same starts: observations, rewards and ends."""

import inspect
import re
from dataclasses import fields

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import load_env_creator

from neuroevo.core.settings import documentation
from neuroevo.envs import mujoco
from neuroevo.envs.mujoco import TASKS
from tests.support.mujoco_reference import GymnasiumTask, make

STEPS, OPTION_STEPS = 1000, 80  # 80 steps are enough for every option but one to have an effect
TOLERANCE = 1e-10  # of observation values and rewards

# Values that are not the default. Those of xml_file are models with another time step, made by the test.
WEIGHTS = {"forward_reward_weight": 0.3, "ctrl_cost_weight": 0.77, "contact_cost_weight": 0.02, "healthy_reward": 0.6}
WEIGHTS |= {"impact_cost_weight": 0.03, "uph_cost_weight": 2.5, "reward_near_weight": 1.7, "reward_dist_weight": 0.8}
WEIGHTS |= {"reward_control_weight": 0.33, "reset_noise_scale": 0.15}
SWITCHES = ("terminate_when_unhealthy", "exclude_current_positions_from_observation", "include_cinert_in_observation")
SWITCHES += ("include_cvel_in_observation", "include_qfrc_actuator_in_observation", "include_cfrc_ext_in_observation")
COMMON = {"xml_file": None, "frame_skip": 3, "max_episode_steps": 7, **WEIGHTS, **dict.fromkeys(SWITCHES, False)}
COMMON |= {"contact_cost_range": (0.5, 1.0), "impact_cost_range": (0.5, 1.0), "contact_force_range": (-0.5, 0.25)}
OWN = {
    "Ant": {"main_body": "aux_1", "healthy_z_range": (0.6, 0.9)},
    "Hopper": {
        "healthy_z_range": (1.2, 1.3),
        "healthy_angle_range": (-0.02, float("inf")),
        "healthy_state_range": (-3.0, 2.0),
    },
    "Walker2d": {"healthy_z_range": (1.1, 1.3), "healthy_angle_range": (-0.1, 0.2)},
    "Humanoid": {"healthy_z_range": (1.3, 1.45)},
}
NAMES = sorted(TASKS)
# Gymnasium has no `behavior`; tests/envs/test_measures.py tests it.
OPTIONS = [(task, field.name) for task in NAMES for field in fields(TASKS[task]) if field.name != "behavior"]
CHANGES_NOTHING = [("HumanoidStandup", "uph_cost_weight")]  # Gymnasium ignores it


def value_of(task, option, tmp_path):
    if option != "xml_file":
        return OWN.get(task, {}).get(option, COMMON.get(option))
    text = mujoco.model_path(TASKS[task]().xml_file).read_text()
    changed = re.sub(r'timestep="([^"]*)"', lambda found: f'timestep="{float(found[1]) / 2}"', text)
    assert changed != text
    path = tmp_path / "model.xml"
    path.write_text(changed)
    return str(path)


def play(task, options, steps=STEPS, seed=0):
    """Play random actions in both tasks; after each episode both start again from the same state.

    Returns the observations as bytes, the number of terminations of Gymnasium's task, and the number of episodes.
    """
    pool, reference = make(task, **options), GymnasiumTask(f"{task}-v5", **options)
    rng, over, ends, episodes, seen = np.random.default_rng(seed), True, 0, 0, []
    for _ in range(steps):
        if over:
            episodes += 1
            pool.reset([0], [int(rng.integers(2**63))], [0])
            expected = reference.start(pool.state([0])[0])
            assert np.abs(pool.observe([0])[0] - expected).max() <= TOLERANCE
        action = rng.uniform(pool.action_low, pool.action_high).astype(np.float32)
        rewards, dones = pool.step([0], [action])
        expected, reward, terminated, over = reference.step(action)
        observation = pool.observe([0])[0]
        assert observation.shape == expected.shape and observation.dtype == expected.dtype == np.float64
        assert np.abs(observation - expected).max() <= TOLERANCE
        assert abs(rewards[0] - reward) <= TOLERANCE
        assert dones[0] == over
        ends += terminated
        seen.append((observation.tobytes(), rewards[0], dones[0]))
    assert pool.failure(0) == ""
    return seen, ends, episodes


DEFAULT_PLAY = {}


@pytest.mark.slow
@pytest.mark.parametrize("task", NAMES)
def test_1000_steps_equal_gymnasium(task):
    seen, ends, episodes = DEFAULT_PLAY[task] = play(task, {})
    spec = gymnasium.spec(f"{task}-v5")
    if task in ("Reacher", "Pusher"):
        assert ends == 0 and episodes == STEPS // spec.max_episode_steps
    elif task in ("HalfCheetah", "Swimmer", "HumanoidStandup"):
        assert (ends, episodes) == (0, 1) and seen[-1][-1]
    else:
        assert ends > 1
    # Actions outside the action space: only the control cost uses them without clipping.
    pool, reference = make(task), GymnasiumTask(f"{task}-v5")
    pool.reset([0], [5], [0])
    reference.start(pool.state([0])[0])
    action = np.full(pool.num_actions, 3.7, np.float32)
    rewards, _ = pool.step([0], [action])
    expected, reward, _, _ = reference.step(action)
    assert abs(rewards[0] - reward) <= TOLERANCE and np.abs(pool.observe([0])[0] - expected).max() <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("task", "option"), OPTIONS)
def test_steps_with_an_option_equal_gymnasium(task, option, tmp_path):
    value = value_of(task, option, tmp_path)
    assert value is not None and value != getattr(TASKS[task](), option)
    seen, _, _ = play(task, {option: value}, OPTION_STEPS)
    if task not in DEFAULT_PLAY:
        DEFAULT_PLAY[task] = play(task, {}, OPTION_STEPS)
    assert (seen == DEFAULT_PLAY[task][0][:OPTION_STEPS]) == ((task, option) in CHANGES_NOTHING)


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("HalfCheetah", "inverted_pendulum.xml"),
        ("Swimmer", "inverted_pendulum.xml"),
        ("Hopper", "half_cheetah.xml"),
        ("Walker2d", "inverted_double_pendulum.xml"),
        ("Ant", "half_cheetah.xml"),
        ("Humanoid", "ant.xml"),
        ("HumanoidStandup", "half_cheetah.xml"),
        ("InvertedPendulum", "hopper.xml"),
    ],
)
def test_a_task_with_another_robot_equals_gymnasium(task, model):
    # Robots of fewer and of more joints, bodies and motors than the task's own; the smallest has two joints.
    seen, _, _ = play(task, {"xml_file": model}, 60)
    assert len(set(seen)) == 60


def test_a_body_may_be_given_by_its_number():
    by_name, by_number = play("Ant", {"main_body": "aux_1"}, 50)[0], play("Ant", {"main_body": 3}, 50)[0]
    assert by_name == by_number != play("Ant", {"main_body": "front_left_leg"}, 50)[0]


@pytest.mark.parametrize("task", NAMES)
def test_options_and_defaults_are_gymnasiums(task):
    spec = gymnasium.spec(f"{task}-v5")
    theirs = inspect.signature(load_env_creator(spec.entry_point).__init__).parameters
    theirs = {name: each.default for name, each in theirs.items() if each.kind is not each.VAR_KEYWORD}
    del theirs["self"], theirs["default_camera_config"]
    theirs["max_episode_steps"] = spec.max_episode_steps
    options = TASKS[task]()
    ours = {field.name: getattr(options, field.name) for field in fields(options)}
    assert ours.pop("behavior", "position") == "position" and ours == theirs
    assert all(documentation(TASKS[task], field) for field in TASKS[task].__pydantic_fields__)


@pytest.mark.parametrize("task", NAMES)
def test_spaces_are_gymnasiums(task):
    pool, env = make(task), GymnasiumTask(f"{task}-v5").env
    assert pool.observation_shape == env.observation_space.shape
    assert pool.observation_dtype == env.observation_space.dtype == np.float64
    assert pool.action_dtype == env.action_space.dtype == np.float32
    assert np.array_equal(pool.action_low, env.action_space.low)
    assert np.array_equal(pool.action_high, env.action_space.high)
    actuators = [env.model.actuator(number) for number in range(env.model.nu)]
    assert pool.action_names == tuple(each.name or env.model.joint(each.trnid[0]).name for each in actuators)
    assert pool.frame_skip == env.frame_skip
    assert pool.state_size == env.model.nq + env.model.nv
    assert pool.behavior_shape == (2,) and pool.behavior_dtype == np.float64 and pool.render_shape == ()


@pytest.mark.parametrize("task", NAMES)
def test_starts_are_spread_as_gymnasiums(task):
    # Distribution of each number of the state over many starts; the reference uses Gymnasium's own generator.
    episodes = 400
    pool, env = make(task, slots=episodes), GymnasiumTask(f"{task}-v5").env
    every = list(range(episodes))
    pool.reset(every, every, [0] * episodes)
    ours, theirs = pool.state(every), []
    for seed in every:
        env.reset(seed=seed)
        theirs.append(env.state_vector())
    theirs = np.array(theirs)
    spread = theirs.std(axis=0)
    assert np.abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() <= 0.35 * spread.max()
    assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) <= 0.35 * spread + 1e-12)
    assert np.all(np.abs(ours.std(axis=0) - spread) <= 0.2 * spread + 1e-12)
    # Uniform distributions are bounded, normal ones are not.
    kurtosis = ((ours - ours.mean(axis=0)) ** 4).mean(axis=0) / np.maximum(ours.std(axis=0), 1e-12) ** 4
    expected = ((theirs - theirs.mean(axis=0)) ** 4).mean(axis=0) / np.maximum(spread, 1e-12) ** 4
    assert np.all(np.abs(kurtosis - expected)[spread > 0] < 1.1)
    assert len(np.unique(ours, axis=0)) == episodes
