"""Videos of robots: frames against Gymnasium's renderer and the replayed states, and errors without OpenGL."""

import os
import subprocess
import sys

import numpy as np
import pytest

import neuroevo
from neuroevo.analysis.rendering import Agent, render
from neuroevo.analysis.replay import Replay
from neuroevo.analysis.video.robot_camera import RobotCamera
from neuroevo.core.errors import UserError
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from tests.analysis.test_video import decode, fps_of

TABLES = {
    "env": {"name": "Hopper-v5"},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": {"name": "ga", "population": 6, "parents": 2, "sigma": 0.3, "validation_candidates": 2},
    "training": {"generations": 1, "validation_episodes": 1, "test_episodes": 0},
}
SIDE = 64


@pytest.fixture(scope="module")
def graphics():
    """Skip the test with the reason if no graphics library works."""
    try:
        RobotCamera(registry.find("Hopper-v5").robot_model, 8, 8).close()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return neuroevo.train(TABLES, out=tmp_path_factory.mktemp("runs") / "run")


GYMNASIUM_DRAWS = """
import sys, gymnasium, numpy as np
side = int(sys.argv[2])
env = gymnasium.make(sys.argv[1], render_mode="rgb_array", camera_name="track", width=side, height=side).unwrapped
env.reset(seed=0)
state = np.frombuffer(sys.stdin.buffer.read(), np.float64)
env.set_state(state[: env.model.nq], state[env.model.nq :])
np.save(sys.argv[3], env.render())
"""


@pytest.mark.parametrize("task", ["Hopper-v5", "Ant-v5"])
def test_pictures_are_gymnasiums(graphics, task, tmp_path):
    environment = registry.find(task)
    pool = EnvPool(environment.spec, 2)
    pool.reset([0, 1], [1, 2], [0, 0])
    for _ in range(15):
        pool.step([0], np.full((1, pool.num_actions), 0.7, np.float32))
    states = pool.state([0, 1])
    with RobotCamera(environment.robot_model, SIDE, SIDE) as camera:
        ours, other = (camera.picture(state).astype(int) for state in states)
        assert camera.timestep * pool.frame_skip == pytest.approx(0.008 if task == "Hopper-v5" else 0.05)
    library = {} if "MUJOCO_GL" in os.environ else {"MUJOCO_GL": camera.library}
    command = [sys.executable, "-c", GYMNASIUM_DRAWS, task, str(SIDE), str(tmp_path / "theirs.npy")]
    subprocess.run(command, input=states[0].tobytes(), env={**os.environ, **library}, check=True)
    theirs = np.load(tmp_path / "theirs.npy")
    assert np.abs(ours - theirs).mean() < 0.1 < 1 < np.abs(ours - other).mean()


def test_a_video_shows_the_states_that_are_played(graphics, trained, tmp_path):
    _, elite = trained.elite()
    agents = [Agent("elite", elite.genome), Agent("other", trained.population().genomes[1])]
    states = []
    replay = Replay(trained.config, [agent.genome for agent in agents])
    for _ in replay.play(5, 21):
        states.append(replay.pool.state([0, 1]))
    path = tmp_path / "robots.mp4"
    made = render(trained.config, agents, [5], path, max_episode_steps=21, scale=1, captions=False)
    frames = decode(path)
    # 125 steps per second, of which every third and the last are shown.
    assert made.fps == pytest.approx(125 / 3) == pytest.approx(fps_of(path), rel=0.01)
    shown = sorted({*range(0, len(states), 3), len(states) - 1})
    assert len(frames) == made.frames == len(shown)
    with RobotCamera(registry.find("Hopper-v5").robot_model, 240, 240) as camera:
        for frame, number in zip(frames, shown, strict=True):
            left = camera.picture(states[number][0]).astype(int)
            assert np.abs(frame[:, :240] - left).mean() < 3  # H.264 is not exact
        assert np.abs(frames[0][:, :240].astype(int) - left).mean() > 3
    every = render(trained.config, agents[:1], [5], tmp_path / "slow.gif", max_episode_steps=6, scale=1, fps=10)
    assert every.frames == 7 and every.fps == 10


def test_the_command(graphics, trained, tmp_path):
    command = [
        sys.executable,
        "-m",
        "neuroevo",
        "render",
        str(trained.path),
        "--max-episode-steps",
        "4",
        "--scale",
        "1",
    ]
    done = subprocess.run([*command, "--out", str(tmp_path / "a.gif")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "3 frames of 240x258" in done.stdout and len(decode(tmp_path / "a.gif")) == 3


def test_without_a_graphics_library_one_line_says_what_to_do(trained, tmp_path):
    command = [sys.executable, "-m", "neuroevo", "render", str(trained.path), "--out", str(tmp_path / "a.mp4")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MUJOCO_GL": "no_such_library"})
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "no_such_library" in done.stderr and "apt-get install" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_another_robot_and_a_process_that_ends(graphics):
    with RobotCamera(registry.find("Hopper-v5").robot_model, 8, 8) as camera:
        with pytest.raises(ValueError, match="12"):
            camera.picture(np.zeros(3))
        camera._process.kill()
        with pytest.raises(RuntimeError, match="ended"):
            camera.picture(np.zeros(12))
