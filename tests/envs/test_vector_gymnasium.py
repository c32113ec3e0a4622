"""Vector environments in Gymnasium: the same results as SyncVectorEnv with Gymnasium's environments; its checker,
make_vec and wrappers; and the example."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

from experiments.examples.policy_gradient import policy_gradient
from neuroevo.envs.registry import find
from neuroevo.envs.vector import make_vec
from tests.support.vector_reference import TheirCartPole, TheirGame, TheirHopper, assert_alike

MODES = list(AutoresetMode)


def assert_equal_play(ours, theirs, steps, tolerance):
    """Play random actions in both; return the numbers of episodes ended by termination, truncation, and both."""
    mode = theirs.metadata["autoreset_mode"]
    assert ours.metadata["autoreset_mode"] is mode
    for space in ("single_observation_space", "observation_space", "single_action_space", "action_space"):
        assert getattr(ours, space) == getattr(theirs, space)
    ours.action_space.seed(1)
    assert_alike(ours.reset(seed=7)[0], theirs.reset()[0], tolerance)
    ends = np.zeros(3, int)
    for _ in range(steps):
        actions = ours.action_space.sample()
        found, expected = ours.step(actions), theirs.step(actions)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, tolerance)
        _, _, terminated, truncated, _ = found
        ends += [terminated.sum(), truncated.sum(), (terminated & truncated).sum()]
        over = terminated | truncated
        if mode is AutoresetMode.DISABLED and over.any():
            for one, other in zip(
                ours.reset(options={"reset_mask": over.copy()}),
                theirs.reset(options={"reset_mask": over.copy()}),
                strict=True,
            ):
                assert_alike(one, other, tolerance)
    return ends


@pytest.mark.parametrize("mode", MODES)
def test_hopper_is_gymnasiums(mode):
    ours = make_vec("Hopper-v5", 5, autoreset_mode=mode, max_episode_steps=18)
    theirs = SyncVectorEnv([lambda i=i: TheirHopper(7 + i, 18) for i in range(5)], autoreset_mode=mode)
    assert min(assert_equal_play(ours, theirs, 300, 1e-10)) > 0


@pytest.mark.parametrize("mode", MODES)
def test_breakout_is_gymnasiums(mode):
    ours = make_vec("BreakoutNoFrameskip-v4", 2, autoreset_mode=mode.value, max_episode_steps=150)
    theirs = SyncVectorEnv([lambda i=i: TheirGame("breakout", 7 + i, 150) for i in range(2)], autoreset_mode=mode)
    terminated, truncated, _ = assert_equal_play(ours, theirs, 500, 0)
    assert terminated > 0 and truncated > 0


# 400 steps of each, with the sticky actions of these names drawn by ALE's own generator.
@pytest.mark.parametrize("title", ["DemonAttack", "Freeway", "MsPacman", "SpaceInvaders"])
def test_registered_names_are_gymnasiums(title):
    ours = make_vec(f"ALE/{title}-v5", 2)
    game = find(f"ALE/{title}-v5").name
    theirs = SyncVectorEnv([lambda i=i: TheirGame(game, 7 + i, 0, sticky=0.25) for i in range(2)])
    assert_equal_play(ours, theirs, 200, 0)
    ours.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_gymnasiums_own_environments_tell_how_episodes_end(mode):
    ours = make_vec("gymnasium:CartPole-v1", 3, autoreset_mode=mode, kwargs={"max_episode_steps": 20})
    theirs = SyncVectorEnv([lambda i=i: TheirCartPole(7 + i, 20) for i in range(3)], autoreset_mode=mode)
    ours.action_space.seed(1)
    assert_alike(ours.reset(seed=7)[0], theirs.reset()[0], 0)
    ends = np.zeros(2, int)
    for _ in range(200):
        actions = ours.action_space.sample()
        found, expected = ours.step(actions), theirs.step(actions)
        for one, other in zip(found[:4], expected[:4], strict=True):
            assert_alike(one, other, 0)
        ends += [found[2].sum(), found[3].sum()]
    assert min(ends) > 0
    ours.close()


def test_a_maze_is_truncated_where_its_steps_are_over():
    env = make_vec("HardMaze-v0", 2, max_episode_steps=3)
    env.reset(seed=0)
    ends = [env.step(np.ones((2, 2), np.float32))[2:4] for _ in range(3)]
    assert [truncated.tolist() for _, truncated in ends] == [[False] * 2, [False] * 2, [True] * 2]
    assert not any(terminated.any() for terminated, _ in ends)


class Alone(gymnasium.Env):
    """Single environment of a vector of length 1, since Gymnasium's checker only supports single environments."""

    def __init__(self, name, **keywords):
        self.vector = make_vec(name, 1, autoreset_mode="Disabled", **keywords)
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space
        self.metadata, self.render_mode = self.vector.metadata, self.vector.render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observations, infos = self.vector.reset(seed=seed, options=options)
        return observations[0], {name: values[0] for name, values in infos.items()}

    def step(self, action):
        observations, rewards, terminated, truncated, infos = self.vector.step(np.array([action]))
        infos = {name: values[0] for name, values in infos.items()}
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), infos

    def render(self):
        return self.vector.render()[0]


@pytest.mark.filterwarnings(
    "error", "ignore:.*Box observation space", "ignore:.*Not able to test alternative render modes"
)
@pytest.mark.parametrize(
    ("name", "keywords"), [("seaquest", {"render_mode": "rgb_array"}), ("Hopper-v5", {}), ("Walker2d-v5", {})]
)
def test_gymnasiums_checker_is_content(name, keywords):
    check_env(Alone(name, **keywords), skip_render_check=not keywords)


@pytest.mark.parametrize("name", ["neuroevo/Frostbite-v5", "neuroevo/MsPacman-v5", "neuroevo:neuroevo/Ant-v5"])
def test_gymnasiums_make_vec_knows_it(name):
    env = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point", frame_skip=2)
    assert env.spec.id == name.split(":")[-1] and env.num_envs == 3
    assert repr(env) == f"NativeVectorEnv({env.spec.id}, num_envs=3)"
    assert gymnasium.make_vec(env.spec).observation_space == env.observation_space
    env.reset(seed=0)
    env.close()


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "pong", "Ant-v5", "HardMaze-v0", "gymnasium:CartPole-v1"])
def test_its_spec_makes_the_same_again(name):
    made = make_vec(name, 2, max_episode_steps=9)
    again = gymnasium.make_vec(EnvSpec.from_json(made.spec.to_json()))
    assert again.num_envs == 2 and repr(again) == repr(made)
    assert (made.spec.id in gymnasium.registry) == (name in ("ALE/Pong-v5", "Ant-v5", "HardMaze-v0"))
    for env in (made, again):
        env.action_space.seed(5)
    assert_alike(made.reset(seed=3)[0], again.reset(seed=3)[0], 0)
    for _ in range(30):
        for one, other in zip(
            made.step(made.action_space.sample()), again.step(again.action_space.sample()), strict=True
        ):
            assert_alike(one, other, 0)


def test_importing_the_package_registers_where_gymnasium_is_loaded():
    program = "import {}; import sys; print('neuroevo.envs.gymnasium_ids' in sys.modules, 'gymnasium' in sys.modules)"
    for names, printed in (
        ("neuroevo", "False False"),
        ("gymnasium, neuroevo", "True True"),
        ("neuroevo, gymnasium", "True True"),
        ("neuroevo, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium", "True True"),
        ("neuroevo.envs.vector", "True True"),
        ("neuroevo.envs.gymnasium.worker, gymnasium", "False True"),  # which runs only external environments
    ):
        done = subprocess.run([sys.executable, "-c", program.format(names)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == printed


# Not with same-step autoreset: Gymnasium 1.3's wrapper then leaves out the first step of every episode but the first.
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_record_episode_statistics(mode):
    plain = make_vec("Hopper", 4, autoreset_mode=mode)
    env = wrappers.RecordEpisodeStatistics(make_vec("Hopper", 4, autoreset_mode=mode))
    plain.reset(seed=3), env.reset(seed=3)
    env.action_space.seed(0)
    returns, lengths, counted, over = np.zeros(4), np.zeros(4, int), 0, np.zeros(4, bool)
    for _ in range(150):
        actions = env.action_space.sample()
        _, rewards, *_ = plain.step(actions)
        _, _, terminated, truncated, infos = env.step(actions)
        played = ~over if mode is AutoresetMode.NEXT_STEP else np.ones(4, bool)
        returns, lengths = returns + rewards * played, lengths + played
        over = terminated | truncated
        if over.any():
            assert np.array_equal(infos["_episode"], over)
            assert np.allclose(infos["episode"]["r"][over], returns[over], rtol=1e-12, atol=0)
            assert np.array_equal(infos["episode"]["l"][over], lengths[over])
            counted += over.sum()
            returns[over], lengths[over] = 0, 0
            if mode is AutoresetMode.DISABLED:
                for each in (plain, env):
                    each.reset(options={"reset_mask": over.copy()})
    assert env.episode_count == counted > 8


def test_other_wrappers():
    normalized = wrappers.NormalizeObservation(make_vec("Hopper", 8))
    normalized.reset(seed=0)
    normalized.action_space.seed(0)  # the spread of the observations depends on the actions
    seen = np.array([normalized.step(normalized.action_space.sample())[0] for _ in range(300)])
    assert seen.dtype == np.float32 and np.abs(seen[100:].mean((0, 1))).max() < 0.6
    assert np.abs(seen[100:].std((0, 1)) - 1).max() < 0.6

    plain = make_vec("pong", 2)
    halved = wrappers.TransformObservation(make_vec("pong", 2), lambda seen: seen // 2)
    assert np.array_equal(halved.reset(seed=0)[0], plain.reset(seed=0)[0] // 2)
    assert np.array_equal(halved.step(np.array([2, 3]))[0], plain.step(np.array([2, 3]))[0] // 2)

    # Gymnasium's observation wrappers reject same-step autoreset for any environment.
    listed = wrappers.DictInfoToList(make_vec("breakout", 2, autoreset_mode="SameStep", max_episode_steps=3))
    assert listed.reset(seed=0)[1][0]["lives"] == 5
    infos = [listed.step(np.array([2, 3]))[4] for _ in range(3)]
    began = [each["episode_frame_number"] for each in infos[2]]
    ended = [each["final_info"]["episode_frame_number"] for each in infos[2]]
    assert "final_info" not in infos[1][0]
    assert ended == [each["episode_frame_number"] + 4 for each in infos[1]] != began

    clipped = wrappers.ClipAction(make_vec("Hopper", 2))
    clipped.reset(seed=0)
    found = clipped.step(np.full((2, 3), 9.0))[1]
    clipped.env.reset(seed=0)
    assert np.array_equal(found, clipped.env.step(np.ones((2, 3)))[1])


def test_the_example_learns():
    means = policy_gradient(iterations=20)
    assert len(means) == 20 and means[-1] > 3 * means[0] > 0
    assert policy_gradient(iterations=2) == means[:2]
