"""gymnasium.make("neuroevo/..."): a single environment that works with Gymnasium's own tools."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics

import neuroevo

gymnasium.register_envs(neuroevo)


@pytest.mark.filterwarnings("ignore:.*Box observation space (minimum|maximum) value is -?infinity")
@pytest.mark.parametrize("env_id", ["neuroevo/Pong-v5", "neuroevo/Hopper-v5", "neuroevo/HardMaze-v0"])
def test_gymnasium_s_checker_accepts_it(env_id):
    check_env(gymnasium.make(env_id).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", ["neuroevo/Hopper-v5", "neuroevo/Breakout-v5"])
def test_episodes_are_those_of_a_vector(env_id):
    env = RecordEpisodeStatistics(gymnasium.make(env_id))
    vector = gymnasium.make_vec(env_id, 1, autoreset_mode="Disabled")
    for seed in (3, None, None):
        observation, info = env.reset(seed=seed)
        expected, infos = vector.reset(seed=seed)
        np.testing.assert_array_equal(observation, expected[0])
        env.action_space.seed(0)
        over, steps, total = False, 0, 0.0
        while not over and steps < 300:
            action = env.action_space.sample()
            observation, reward, terminated, truncated, info = env.step(action)
            expected, rewards, ended, cut, infos = vector.step(np.asarray(action)[None])
            np.testing.assert_array_equal(observation, expected[0])
            assert (reward, terminated, truncated) == (rewards[0], ended[0], cut[0])
            assert all(info[name] == infos[name][0] for name in ("lives",) if name in infos)
            over, steps, total = terminated or truncated, steps + 1, total + reward
        assert not over or info["episode"]["r"] == pytest.approx(total)
    env.close()


def test_screens_and_mistakes():
    env = gymnasium.make("neuroevo/Pong-v5", render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().shape == (210, 160, 3)
    assert env.metadata["render_fps"] == 15
    with pytest.raises(ValueError, match="options is"):
        env.unwrapped.reset(options={"reset_mask": [True]})
    with pytest.raises(ValueError, match="frame_skp"):
        gymnasium.make("neuroevo/Pong-v5", frame_skp=3)
