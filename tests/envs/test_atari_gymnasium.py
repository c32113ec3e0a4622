"""protocol = "gymnasium" compared with Gymnasium's wrappers of ale-py: equal observations, rewards and episode ends."""

import ale_py
import gymnasium
import numpy as np
import pytest

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError
from neuroevo.core.problems import ConfigError
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from tests.support.atari_reference import GymnasiumEnv, noops_of

# A ball to start, flicker, lives that come and go, a start in the middle of a frame (Q*bert), 250 rows (King Kong), and
# 250 rows of PAL that lose their color now and then (Air Raid).
GAMES = ["breakout", "pong", "seaquest", "frostbite", "ms_pacman", "qbert", "king_kong", "air_raid"]
gymnasium.register_envs(ale_py)
CUTOFFS = [403, 2, 1, 601, 5, 0, 1198]  # frames, episode by episode; most are no multiple of the frame skip


def make(game, slots=1, **options):
    return EnvPool(registry.resolve(game, {"protocol": "gymnasium", **options}), slots)


def assert_equal_play(pool, reference, steps, rng, cutoffs=CUTOFFS):
    """Play random actions in slot 0 and in the reference, episode after episode; return the number of episodes."""
    assert pool.num_actions == len(reference.actions)
    episodes, done = 0, True
    for _ in range(steps):
        if done:
            seed, max_frames = int(rng.integers(2**63)), cutoffs[episodes % len(cutoffs)]
            pool.reset([0], [seed], [max_frames])
            expected = reference.reset(seed, max_frames)
            assert np.array_equal(pool.observe([0])[0], expected)
            episodes += 1
        action = int(rng.integers(pool.num_actions))
        rewards, dones = pool.step([0], [action])
        expected, reward, done = reference.step(action)
        assert (rewards[0], dones[0]) == (reward, done)
        assert np.array_equal(pool.observe([0])[0], expected)
    return episodes


@pytest.mark.parametrize("game", GAMES)
def test_300_steps_equal_gymnasium(game):
    assert assert_equal_play(make(game), GymnasiumEnv(game), 300, np.random.default_rng(GAMES.index(game))) >= 4


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("game", ["breakout", "pong", "skiing", "frostbite", "backgammon"])
def test_actions_are_named_as_gymnasium_has_it(game, full):
    env = gymnasium.make(f"ALE/{game.capitalize()}-v5", full_action_space=full)
    meanings = env.unwrapped.get_action_meanings()
    env.close()
    assert list(make(game, full_action_space=full).action_names) == meanings


@pytest.mark.parametrize("frame_skip", [1, 2, 3, 7])
def test_frame_skips_equal_gymnasium(frame_skip):
    pool, reference = make("seaquest", frame_skip=frame_skip), GymnasiumEnv("seaquest", frame_skip=frame_skip)
    assert pool.frame_skip == frame_skip
    assert_equal_play(pool, reference, 300, np.random.default_rng(frame_skip), [403, 101, 1, 0])


@pytest.mark.parametrize("noop_max", [0, 1, 5])
def test_noop_max_equals_gymnasium(noop_max):
    for game in ("qbert", "breakout"):
        pool, reference = make(game, noop_max=noop_max), GymnasiumEnv(game, noop_max=noop_max)
        assert_equal_play(pool, reference, 30, np.random.default_rng(noop_max), [40, 17])


def test_terminal_on_life_loss_equals_gymnasium():
    for game in ("breakout", "frostbite"):
        pool, reference = make(game, terminal_on_life_loss=True), GymnasiumEnv(game, terminal_on_life_loss=True)
        assert assert_equal_play(pool, reference, 500, np.random.default_rng(1), [0]) >= 3


def test_all_options_together_equal_gymnasium():
    options = {"frame_skip": 3, "noop_max": 9, "terminal_on_life_loss": True, "full_action_space": True}
    pool = make("space_invaders", **options, repeat_action_probability=0.25, mode=9, difficulty=1)
    reference = GymnasiumEnv("space_invaders", **options, loaded={"sticky": 0.25, "mode": 9, "difficulty": 1})
    assert assert_equal_play(pool, reference, 600, np.random.default_rng(2)) >= 4


OTHERS = ["asteroids", "ms_pacman", "video_pinball"]


@pytest.mark.parametrize(
    "game", ["space_invaders", *(pytest.param(each, marks=pytest.mark.thorough) for each in OTHERS)]
)
def test_a_slot_that_begins_again_shows_nothing_of_before(game):
    # The same start and actions, so that most rows of the screens are those of the previous episode, which ended with a
    # step that used both of its screens, one of them, or no screen.
    pool, reference = make(game), GymnasiumEnv(game)
    rng = np.random.default_rng(6)
    for seed in rng.integers(2**63, size=2).tolist():
        actions = rng.integers(pool.num_actions, size=60).tolist()
        for max_frames in (4, 4, 8, 4, 3, 8, 200, 204, 1, 202, 203, 200):
            pool.reset([0], [seed], [max_frames])
            assert np.array_equal(pool.observe([0])[0], reference.reset(seed, max_frames)), max_frames
            for action in actions:
                _, dones = pool.step([0], [action])
                expected, _, done = reference.step(action)
                assert np.array_equal(pool.observe([0])[0], expected), max_frames
                assert dones[0] == done
                if done:
                    break


SCREENS = [
    {"stack": 1},
    {"stack": 2, "screen_size": 64},
    {"stack": 7, "screen_size": 120},
    {"grayscale": False},
    {"grayscale": False, "stack": 1, "screen_size": 96},
    {"grayscale": False, "stack": 3, "screen_size": 160, "frame_skip": 1},
    {"screen_size": 32},
    {"screen_size": 80},
]


# Air Raid's screens have other sizes and colors.
@pytest.mark.parametrize(
    ("options", "game"),
    [*((each, "seaquest") for each in SCREENS), *((each, "air_raid") for each in SCREENS[2:4])],
    ids=str,
)
def test_screens_of_other_kinds_equal_gymnasium(options, game):
    pool, reference = make(game, **options), GymnasiumEnv(game, **options)
    side, channels = (
        options.get("screen_size", 84),
        options.get("stack", 4) * (1 if options.get("grayscale", True) else 3),
    )
    assert pool.observation_shape == (side, side, channels)
    assert_equal_play(pool, reference, 120, np.random.default_rng(5), [101, 403, 1])


@pytest.mark.parametrize("options", [{}, *SCREENS[:5]], ids=str)
def test_channels_first_are_the_same_pixels(options):
    last, first = make("seaquest", 3, **options), make("seaquest", 3, **options, channels_first=True)
    rng = np.random.default_rng(6)
    for pool in (last, first):
        pool.reset(range(3), [1, 2, 3], [0] * 3)
    for _ in range(40):
        assert np.array_equal(first.observe([2, 0]), np.moveaxis(last.observe([2, 0]), -1, 1))
        actions = rng.integers(last.num_actions, size=3)
        for pool in (last, first):
            pool.step(range(3), actions)


def test_make_vec_takes_them():
    import neuroevo

    envs = neuroevo.make_vec("ALE/Pong-v5", 2, channels_first=True, screen_size=96, stack=3)
    observations, _ = envs.reset(seed=1)
    assert observations.shape == envs.observation_space.shape == (2, 3, 96, 96)
    envs.close()


@pytest.mark.parametrize(
    ("key", "value", "own"), [("stack", 1, "4"), ("screen_size", 64, "84"), ("grayscale", False, "true")]
)
def test_the_protocol_of_2018_has_one_kind_of_screen(key, value, own):
    with pytest.raises(ConfigError) as raised:
        registry.resolve("pong", {key: value})
    (problem,) = raised.value.problems
    assert problem.key == f"env.options.{key}"
    assert problem.reason == f'expected {own} with protocol = "uber", or protocol = "gymnasium"'
    rom = registry.resolve("pong").options
    text = str(value).lower()
    with pytest.raises(
        NativeError, match="the protocol uber shows 4 gray frames of 84x84, expected protocol=gymnasium"
    ):
        EnvPool(EnvSpec("pong", "atari", (*rom, f"{key}={text}")), 1)
    assert make("pong", **{key: 4 if key == "stack" else 84 if key == "screen_size" else True}).num_actions == 6


def test_there_is_no_fire_at_reset():
    # Breakout waits for FIRE: without, nothing but the paddle ever moves.
    pool = make("breakout")
    pool.reset([0], [3], [0])
    first = pool.observe([0])
    for _ in range(20):
        pool.step([0], [0])
    assert np.array_equal(pool.observe([0]), first)


@pytest.mark.thorough
@pytest.mark.slow
def test_an_episode_is_at_most_108000_frames_long():
    # As for ALE/*-v5, frames count from the end of the emulator's reset; Name This Game has 134 more to choose a mode.
    pool, seed = make("name_this_game", frame_skip=67), 5
    start = GymnasiumEnv("name_this_game").ale.getEpisodeFrameNumber()
    assert start == 134
    for max_frames in (0, 2**63 - 1):
        pool.reset([0], [seed], [max_frames])
        steps, done = 0, False
        while not done:
            steps, done = steps + 1, pool.step([0], [0])[1][0]
        assert steps == -(-(108_000 - start - noops_of(seed)) // 67)
