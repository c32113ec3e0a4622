"""Names and options of MuJoCo tasks, invalid input, and failed simulations, which only affect their episode."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.config.load import make_config
from neuroevo.config.template import documented
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError, UserError
from neuroevo.envs import atari, mujoco, registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.mujoco_reference import GymnasiumTask, make


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("HalfCheetah-v5", "HalfCheetah"),
        ("halfcheetah", "HalfCheetah"),
        (" half_cheetah ", "HalfCheetah"),
        ("Ant", "Ant"),
        ("walker2d-v5", "Walker2d"),
        ("inverted double pendulum", "InvertedDoublePendulum"),
    ],
)
def test_tasks_go_by_their_usual_names(name, task):
    recipe = registry.resolve(name)
    assert (recipe.name, recipe.family) == (f"{task}-v5", "mujoco")
    assert recipe.options[0] == f"task={task}" and re.match(r"model=/.*\.xml$", recipe.options[1])
    assert registry.check(name, {})[1] == []


@pytest.mark.parametrize("name", mujoco.TASKS)
def test_every_task_is_found_and_no_game(name):
    assert registry.resolve(f"{name}-v5").name == f"{name}-v5" not in atari.AtariGame.names()


@pytest.mark.parametrize(
    ("name", "near"), [("HalfCheeta", "HalfCheetah"), ("HalfCheetah-v4", "HalfCheetah"), ("hoper", "Hopper")]
)
def test_unknown_tasks_are_named_with_the_nearest(name, near):
    with pytest.raises(UserError, match=f"'{name}' .* {near}-v5"):
        registry.resolve(name)
    _, (problem,) = registry.check(name, {})
    assert (problem.key, problem.value) == ("env.name", name)
    assert problem.reason.startswith(f"there is no such environment; did you mean {near}-v5?")


BAD = [  # option, value, message for a configuration, message of the native code; None to skip the native code
    ("frame_skip", 0, "at least 1", "an integer in [1, 1000]"),
    ("frame_skip", 2.5, "a valid integer", "an integer in [1, 1000]"),
    ("max_episode_steps", 0, "at least 1", "an integer in [1, 1000000000]"),
    ("ctrl_cost_weight", float("nan"), "a finite number", "a finite number"),
    ("ctrl_cost_weight", "much", "a valid number", "a finite number"),
    ("forward_reward_weight", float("inf"), "a finite number", "a finite number"),
    ("reset_noise_scale", -0.1, "at least 0", "a number in [0, 1e+06]"),
    ("terminate_when_unhealthy", 1, "a valid boolean", "true or false"),
    ("healthy_z_range", [1.0], "two numbers [low, high] with low <= high", None),
    ("healthy_z_range", [2, 1], "two numbers [low, high] with low <= high", None),
    ("healthy_z_range", [float("nan"), 1], "two numbers [low, high] with low <= high", None),
    ("healthy_z_range", [0, 10**400], "two numbers [low, high] with low <= high", None),
    ("healthy_z_range", 0.5, "two numbers [low, high] with low <= high", "two numbers low,high with low <= high"),
    ("healthy_z_range", "2,1", "two numbers [low, high] with low <= high", "two numbers low,high with low <= high"),
    ("healthy_z_range", "nan,1", "two numbers [low, high] with low <= high", "two numbers low,high with low <= high"),
    ("healthy_z_range", "", "two numbers [low, high] with low <= high", "two numbers low,high with low <= high"),
]


@pytest.mark.parametrize(("option", "value", "expected", "native"), BAD)
def test_bad_values_have_one_message(option, value, expected, native):
    _, (problem,) = registry.check("Ant-v5", {option: value})
    assert (problem.key, problem.reason) == (f"env.options.{option}", f"expected {expected}")
    with pytest.raises(UserError) as caught:
        registry.resolve("Ant-v5", {option: value})
    assert str(caught.value) == str(problem)
    if native is not None:
        with pytest.raises(NativeError) as caught:
            given("Ant", f"{option}={value}")
        assert str(caught.value) == f"mujoco option {option} is '{value}', expected {native}"


def given(task, *options, model=None):
    """Create a pool with unchecked options."""
    path = model or mujoco.model_path(mujoco.TASKS[task]().xml_file)
    return EnvPool(EnvSpec(task, "mujoco", (f"task={task}", f"model={path}", *options)), 1)


def test_unknown_options_are_named_with_the_legal_ones():
    with pytest.raises(UserError, match="ctrl_cost = 0.1: .*ctrl_cost_weight"):
        registry.resolve("Ant-v5", {"ctrl_cost": 0.1})
    with pytest.raises(UserError, match=r"\[env.options\]: xml_file, frame_skip, max_episode_steps, reset_noise"):
        registry.resolve("InvertedPendulum-v5", {"healthy_z_range": [0, 1]})  # an option of other tasks
    with pytest.raises(NativeError) as caught:
        given("InvertedPendulum", "healthy_reward=1")
    assert str(caught.value) == (
        "mujoco has no option 'healthy_reward', expected one of: task, model, frame_skip, max_episode_steps, "
        "reset_noise_scale, feet"
    )
    with pytest.raises(NativeError, match="option task .*'Anti', .*: Ant, HalfCheetah, Hopper, Humanoid, "):
        EnvPool(EnvSpec("Anti", "mujoco", ("task=Anti",)), 1)


def test_main_body_is_a_body():
    with pytest.raises(NativeError, match="body 'tail'"):
        make("Ant-v5", main_body="tail")
    with pytest.raises(NativeError, match=r"main_body 14 .*\[0, 14\)"):
        make("Ant-v5", main_body=14)
    for value in (-1, "", 1.5, True):
        with pytest.raises(UserError, match="name of a body .*number"):
            registry.resolve("Ant-v5", {"main_body": value})


def test_bad_models_are_named(tmp_path):
    missing = tmp_path / "missing.xml"
    _, (problem,) = registry.check("Ant-v5", {"xml_file": str(missing)})
    assert (problem.key, problem.value) == ("env.options.xml_file", str(missing))
    assert f"there is no {missing}" in problem.reason
    with pytest.raises(UserError, match=re.escape(str(missing))):
        registry.resolve("Ant-v5", {"xml_file": str(missing)})
    with pytest.raises(UserError, match="/assets/horse.xml"):
        registry.resolve("Ant-v5", {"xml_file": "horse.xml"})
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><geom size='nothing'/></worldbody></mujoco>")
    with pytest.raises(NativeError) as caught:
        make("Ant-v5", xml_file=str(broken))
    expected = "XML Error: bad format in attribute 'size' | Element 'geom', line 1"
    assert str(caught.value) == f"MuJoCo model '{broken}' cannot be loaded: {expected}"
    for task, other, message in [
        ("Hopper", "inverted_pendulum.xml", "the MuJoCo model has 2 joint coordinates, Hopper needs at least 3"),
        ("Reacher", "hopper.xml", "the MuJoCo model has no body 'fingertip'"),
        (
            "InvertedDoublePendulum",
            "hopper.xml",
            "the MuJoCo model has 0 sites, InvertedDoublePendulum needs at least 1",
        ),
    ]:
        with pytest.raises(NativeError, match=re.escape(message)):
            make(task, xml_file=other)
    broken.write_text("<mujoco><worldbody/></mujoco>")
    with pytest.raises(NativeError, match="1 bodies, Swimmer .* 2"):
        make("Swimmer", xml_file=str(broken))


@pytest.mark.parametrize("name", ["~no-such-user/ant.xml", "/a\0b.xml", "/" + 300 * "a", 300 * "a"])
def test_models_that_no_file_can_be_called(name):
    _, (problem,) = registry.check("Ant-v5", {"xml_file": name})
    assert problem.key == "env.options.xml_file" and "cannot be used: " in problem.reason
    with pytest.raises(UserError, match="cannot be used: "):
        registry.resolve("Ant-v5", {"xml_file": name})


def test_a_model_that_starts_unstable_is_refused(tmp_path):
    text = mujoco.model_path("reacher.xml").read_text()
    path = tmp_path / "nowhere.xml"
    path.write_text(text.replace('ref="-.1"', 'ref="nan"'))
    with pytest.raises(NativeError) as caught:
        make("Reacher", xml_file=str(path))
    assert str(caught.value) == (
        f"MuJoCo model '{path}' cannot be used: joint coordinate 3 is initially nan, expected at most 1e+10 in size"
    )


def test_configurations_explain_the_options_of_their_task():
    played = {"network": {"name": "mlp"}, "training": {"total_steps": 1000}}
    text = documented(make_config({"env": {"name": "Hopper-v5"}, **played}))
    meaning = "Range in which the robot is healthy; either end may be infinite."
    assert f"# {meaning}\n# healthy_z_range = [0.7, inf]\n" in text
    assert "noop_max" not in text
    with pytest.raises(UserError, match="env.options.noop_max = 3: "):
        make_config({"env": {"name": "Hopper-v5", "options": {"noop_max": 3}}, **played})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_action_that_is_not_finite_ends_its_episode_alone(bad):
    pool = make("HalfCheetah-v5", slots=2)
    pool.reset([0, 1], [1, 2], [0, 0])
    before, actions = pool.observe([0, 1]), np.zeros((2, 6), np.float32)
    with pytest.raises(ValueError, match=re.escape("actions has shape [2, 5], expected [2, 6]")):
        pool.step([0, 1], np.zeros((2, 5), np.float32))
    assert np.array_equal(pool.observe([0, 1]), before)
    actions[1, 4] = bad
    rewards, dones = pool.step([0, 1], actions)
    assert dones.tolist() == [False, True] and rewards[1] == 0
    assert (pool.failure(0), pool.failure(1)) == ("", f"action[4] is {bad}, expected a finite number")
    assert np.array_equal(pool.observe([1]), before[1:])  # only the other slot was stepped
    assert not np.array_equal(pool.observe([0]), before[:1])


def explosive(tmp_path):
    """A model of HalfCheetah whose motors make the simulation diverge when they are used."""
    text = mujoco.model_path("half_cheetah.xml").read_text()
    changed = re.sub(r'gear="[^"]*"', 'gear="1e14"', text)
    assert changed != text
    path = tmp_path / "explosive.xml"
    path.write_text(changed)
    return str(path)


def test_an_unstable_simulation_ends_its_episode_alone(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo would write its MUJOCO_LOG.TXT into the current folder
    pool, alone = (make("HalfCheetah-v5", slots=slots, xml_file=explosive(tmp_path)) for slots in (3, 1))
    pool.reset([0, 1, 2], [7, 8, 9], [0, 0, 0])
    alone.reset([0], [7], [0])
    still, actions = np.zeros((1, 6), np.float32), np.zeros((3, 6), np.float32)
    actions[1] = 1
    rewards, dones = pool.step([0, 1, 2], actions)
    assert dones.tolist() == [False, True, False] and rewards[1] == 0
    assert re.match(r"the simulation is unstable: bad \w+ \d+ \(at 0.05 simulated seconds\)", pool.failure(1))
    assert np.isfinite(pool.observe([1])).all() and np.isfinite(pool.behavior([1])).all()
    assert pool.failure(0) == pool.failure(2) == ""
    with pytest.raises(NativeError, match="slot 1 "):
        pool.step([1], actions[1:2])
    for _ in range(50):  # the other slots are not affected
        reward, _ = alone.step([0], still)
        assert rewards[0] == reward[0] and np.array_equal(pool.observe([0]), alone.observe([0]))
        rewards, _ = pool.step([0], still)
    pool.reset([1], [7], [0])  # the slot is usable again
    alone.reset([0], [7], [0])
    assert pool.failure(1) == "" and np.array_equal(pool.observe([1]), alone.observe([0]))
    assert pool.step([1], still)[0] == alone.step([0], still)[0]
    assert capfd.readouterr().err == "" and not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_an_error_of_mujocos_ends_the_episode_alone(tmp_path):
    text = mujoco.model_path("ant.xml").read_text()
    path = tmp_path / "cramped.xml"
    path.write_text(text.replace("<worldbody>", '<size memory="12K"/><worldbody>', 1))
    pool = make("Ant-v5", xml_file=str(path))  # its arena is too small for a step
    for seed in range(3):
        pool.reset([0], [seed], [0])
        done, steps = False, 0
        while not done:
            rewards, dones = pool.step([0], np.ones((1, 8), np.float32))
            done, steps = dones[0], steps + 1
        assert rewards[0] == 0 and steps < 50
        assert re.match(r"MuJoCo: mj_stackAlloc: .* \| max = .* simulated seconds\)$", pool.failure(0))


def test_python_programs_keep_their_own_warnings(tmp_path):
    # MuJoCo's handlers are global and shared with Python's mujoco: a program's handler also receives the warnings of
    # neuroevo's environments, from any thread.
    program = f"""
import mujoco, numpy
heard = []
mujoco.set_mju_user_warning(heard.append)
from tests.support.mujoco_reference import make
pool = make("HalfCheetah-v5", slots=4, xml_file={explosive(tmp_path)!r})
pool.reset(range(4), range(4), [0] * 4)
pool.step(range(4), numpy.ones((4, 6), numpy.float32))
assert all("unstable" in pool.failure(slot) for slot in range(4))
assert sum("simulation is unstable" in text for text in heard) == 4, heard
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, cwd=Path(__file__).parents[2])


def test_python_programs_still_see_warnings(tmp_path, capfd):
    make("HalfCheetah-v5")  # sets neuroevo's handlers
    task = GymnasiumTask("HalfCheetah-v5", xml_file=explosive(tmp_path))
    task.env.reset(seed=1)
    task.env.step(np.ones(6, np.float32))
    assert "MuJoCo: Nan, Inf or huge value in QACC" in capfd.readouterr().err


def test_the_ops_play_the_same():
    tf_ops, recipe, pool = load_ops(), registry.resolve("HalfCheetah-v5"), make("HalfCheetah-v5", slots=2)
    slots, seeds, limits = np.array([0, 1]), np.array([3, 4]), np.array([0, 20])
    handle = tf_ops.env_pool_make(family=recipe.family, options=list(recipe.options), slots=2)
    tf_ops.env_reset(handle, slots, seeds, limits, np.zeros(0, np.int64))
    pool.reset(slots, seeds, limits)
    rng = np.random.default_rng(0)
    for step in range(4):
        actions = rng.uniform(-1, 1, (2, 6)).astype(np.float32)
        theirs, ours = tf_ops.env_step(handle, slots, actions), pool.step(slots, actions)
        assert np.array_equal(theirs.rewards, ours[0]) and np.array_equal(theirs.dones, ours[1])
        assert theirs.dones.numpy().tolist() == [False, step == 3]  # 20 frames of 5 a step
        seen = tf_ops.env_observation(handle, slots, dtype=tf.float64, shape=[17])
        assert np.array_equal(seen, pool.observe(slots))
    with pytest.raises(tf.errors.InvalidArgumentError, match="actions"):
        tf_ops.env_step(handle, slots[:1], np.zeros((1, 5), np.float32))
    rewards, dones, _ = tf_ops.env_step(handle, slots[:1], np.array([[0, 0, np.nan, 0, 0, 0]], np.float32))
    assert rewards.numpy().tolist() == [0] and dones.numpy().tolist() == [True]


def test_a_family_that_cannot_be_loaded_leaves_the_others(tmp_path, monkeypatch):
    for name in ("build_info.json", "libneuroevo_core.so", "libneuroevo_atari.so"):
        (tmp_path / name).symlink_to(library.LIBRARY_FOLDER / name)
    (tmp_path / "libneuroevo_mujoco.so").write_text("no library")
    monkeypatch.setattr(library, "LIBRARY_FOLDER", tmp_path)
    with pytest.warns(UserWarning, match=r"libneuroevo_mujoco.so cannot be loaded \(.*\); `make build` rebuilds it"):
        assert library.core.__wrapped__().neuroevo_get_threads() > 0


def test_the_library_is_that_of_the_wheel():
    make("Ant-v5")
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libmujoco" in line}
    assert len(loaded) == 1
    import mujoco

    assert ctypes.CDLL(loaded.pop()).mj_version() == mujoco.mj_version()
