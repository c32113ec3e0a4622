"""Options of the Atari family with the uber protocol, compared with ale-py; its screens and its memory."""

import numpy as np
import pytest

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError
from neuroevo.core.problems import ConfigError
from neuroevo.core.settings import documentation
from neuroevo.envs import atari, registry
from neuroevo.native.env_pool import EnvPool
from tests.support.atari_reference import ReferenceEnv, emulator, noops_of, resize, sticky_seed


def make(game, slots=1, **options):
    return EnvPool(registry.resolve(game, options), slots)


def assert_equal_play(pool, reference, seed, steps, max_frames=0):
    """Compare rewards, ends, screens and memory in an episode of random actions; return the number of steps."""
    rng, step, done = np.random.default_rng(seed), 0, False
    pool.reset([0], [seed], [max_frames])
    reference.reset(seed, max_frames)
    while step < steps and not done:
        assert np.array_equal(pool.render([0])[0], reference.ale.getScreenRGB())
        assert np.array_equal(pool.behavior([0])[0], reference.ale.getRAM())
        action = int(rng.integers(pool.num_actions))
        rewards, dones = pool.step([0], [action])
        assert (rewards[0], dones[0]) == reference.step(action)
        assert np.abs(pool.observe([0])[0, ..., 3] - np.rint(resize(reference.gray()[None])[0])).max() <= 1
        step, done = step + 1, bool(dones[0])
    assert np.array_equal(pool.render([0])[0], reference.ale.getScreenRGB())
    assert np.array_equal(pool.behavior([0])[0], reference.ale.getRAM())
    return step


def play(pool, slot, seed, actions):
    """Return the rewards, dones, observations, screens and memory of one episode, in bytes."""
    pool.reset([slot], [seed], [0])
    seen = [pool.observe([slot]).tobytes()]
    for action in actions:
        rewards, dones = pool.step([slot], [action])
        what = pool.observe([slot]), pool.render([slot]), pool.behavior([slot])
        seen.append((rewards[0], dones[0], *(each.tobytes() for each in what)))
        if dones[0]:
            break
    return seen


@pytest.mark.parametrize("sticky", [0.25, 1 / 3])
def test_sticky_actions_equal_ale(sticky):
    # The emulator's generator starts as that of a fresh emulator with random_seed = sticky_seed(seed).
    for game in ("breakout", "frostbite"):  # a paddle, a joystick
        pool, reference = make(game, repeat_action_probability=sticky), ReferenceEnv(game, sticky=sticky)
        for seed in (1, 2, 2**64 - 1, 7, 1):
            assert_equal_play(pool, reference, seed, 60)


def test_sticky_actions_depend_on_the_seed_alone():
    pool = make("seaquest", slots=2, repeat_action_probability=0.5)
    actions = np.random.default_rng(3).integers(pool.num_actions, size=60)
    first = play(pool, 0, 11, actions)
    pool.reset([0], [12], [0])
    pool.step([0], [5])  # abandoned in the middle, after an action that a sticky action would repeat
    assert play(pool, 0, 11, actions) == first
    assert play(pool, 1, 11, actions) == first
    assert play(make("seaquest", repeat_action_probability=0.5), 0, 11, actions) == first
    # With sticky actions, another seed with as many no-ops is another episode.
    other = next(seed for seed in range(12, 10**6) if noops_of(seed) == noops_of(11))
    assert sticky_seed(other) != sticky_seed(11) and play(pool, 0, other, actions) != first


def test_the_probability_of_sticky_actions():
    always, never = make("frostbite", repeat_action_probability=1), make("frostbite")
    actions = np.random.default_rng(4).integers(18, size=40)
    # The repeated action is the no-op before the episode, since Frostbite's start presses no button.
    assert play(always, 0, 5, actions) == play(never, 0, 5, [0] * 40)
    assert play(make("frostbite", repeat_action_probability=0.0), 0, 5, actions) == play(never, 0, 5, actions)


@pytest.mark.parametrize(("game", "actions"), [("pong", 18), ("freeway", 18), ("skiing", 9)])
def test_full_action_space_equals_ale(game, actions):
    # Pong's start fires by its minimal set, in which action 2 is RIGHT; in the full set that is UP.
    pool, reference = make(game, full_action_space=True), ReferenceEnv(game, full_action_space=True)
    assert pool.num_actions == len(reference.actions) == actions
    for seed in range(3):
        assert_equal_play(pool, reference, seed, 60)


def modes_of(game):
    ale = emulator(game)
    return [(mode, difficulty) for mode in ale.getAvailableModes() for difficulty in ale.getAvailableDifficulties()]


def test_every_mode_and_difficulty_equals_ale():
    game = "pong"
    combinations = modes_of(game)
    assert len(combinations) >= 8
    starts = set()
    for mode, difficulty in combinations:
        given = {"mode": mode, "difficulty": difficulty}
        pool, reference = make(game, slots=2, **given), ReferenceEnv(game, **given)
        assert_equal_play(pool, reference, 3, 40)
        actions = np.random.default_rng(6).integers(pool.num_actions, size=20)
        first = play(pool, 0, 4, actions)
        assert play(pool, 1, 4, actions) == first
        assert play(pool, 0, 4, actions) == first
        starts.add(str(first))
    assert len(starts) > len(combinations) // 2  # they are different games


def test_the_default_mode_and_difficulty_may_be_named():
    actions = np.random.default_rng(7).integers(6, size=40)
    assert play(make("pong", mode=0, difficulty=0), 0, 9, actions) == play(make("pong"), 0, 9, actions)


@pytest.mark.parametrize("frame_skip", [1, 2, 5, 50])
def test_frame_skips_equal_ale(frame_skip):
    for game in ("breakout", "seaquest"):
        pool, reference = make(game, frame_skip=frame_skip), ReferenceEnv(game, frame_skip=frame_skip)
        assert pool.frame_skip == frame_skip
        assert assert_equal_play(pool, reference, 3, 50, max_frames=7 * frame_skip + 1) <= 8


@pytest.mark.parametrize("noop_max", [0, 1, 100])
def test_noop_max_equals_ale(noop_max):
    for game in ("breakout", "seaquest"):
        pool, reference = make(game, noop_max=noop_max), ReferenceEnv(game, noop_max=noop_max)
        for seed in (3, 4, 5):
            assert_equal_play(pool, reference, seed, 10)
    assert {noops_of(seed, noop_max) for seed in range(2000)} == set(range(min(noop_max, 1), noop_max + 1))


def test_terminal_on_life_loss_equals_ale():
    for game in ("breakout", "frostbite", "freeway"):  # Freeway has no lives
        options = {"terminal_on_life_loss": True}
        pool, reference = make(game, **options), ReferenceEnv(game, **options)
        steps = [assert_equal_play(pool, reference, seed, 250) for seed in (1, 2)]
        assert (max(steps) < 250) == (game != "freeway")


def test_shapes_of_screens_and_memory():
    for game, height in (("pong", 210), ("king_kong", 250)):
        pool = make(game, slots=3)
        assert pool.render_shape == (height, 160, 3)
        assert pool.behavior_shape == (128,) and pool.behavior_dtype == np.uint8
        pool.reset([0, 1, 2], [1, 2, 3], [0, 0, 0])
        for _ in range(5):
            pool.step([1], [1])
        screens, memory = pool.render([2, 1, 0]), pool.behavior([2, 1, 0])
        assert screens.shape == (3, height, 160, 3) and screens.dtype == np.uint8
        assert memory.shape == (3, 128) and memory.dtype == np.uint8
        for k, slot in enumerate([2, 1, 0]):
            assert np.array_equal(pool.render([slot])[0], screens[k])
            assert np.array_equal(pool.behavior([slot])[0], memory[k])
        assert pool.render([]).shape == (0, height, 160, 3) and pool.behavior([]).shape == (0, 128)


BAD = [
    ("frame_skip", 0, "at least 1", "an integer in [1, 1000]"),
    ("frame_skip", 1001, "at most 1000", "an integer in [1, 1000]"),
    ("frame_skip", "4", "a valid integer", None),
    ("frame_skip", 1.5, "a valid integer", "an integer in [1, 1000]"),
    ("noop_max", -1, "at least 0", "an integer in [0, 1000]"),
    ("noop_max", True, "a valid integer", "an integer in [0, 1000]"),
    ("protocol", "Gymnasium", "'uber' or 'gymnasium'", "one of: uber, gymnasium"),
    ("protocol", "", "'uber' or 'gymnasium'", "one of: uber, gymnasium"),
    ("repeat_action_probability", 1.25, "at most 1", "a number in [0, 1]"),
    ("repeat_action_probability", -0.1, "at least 0", "a number in [0, 1]"),
    ("repeat_action_probability", float("nan"), "a finite number", "a number in [0, 1]"),
    ("repeat_action_probability", "0.25x", "a valid number", "a number in [0, 1]"),
    ("full_action_space", 1, "a valid boolean", "true or false"),
    ("terminal_on_life_loss", "yes", "a valid boolean", "true or false"),
    ("stack", 0, "at least 1", "an integer in [1, 16]"),
    ("screen_size", 161, "at most 160", "an integer in [32, 160]"),
    ("grayscale", "no", "a valid boolean", "true or false"),
    ("channels_first", 2, "a valid boolean", "true or false"),
    ("mode", -1, "at least 0", "an integer in [0, 2147483647]"),
    ("difficulty", 2**70, "at most 2147483647", "an integer in [0, 2147483647]"),
    ("difficulty", [1], "a valid integer", "an integer in [0, 2147483647]"),
]


@pytest.mark.parametrize(("key", "value", "expected", "native"), BAD)
def test_bad_values_have_one_message(key, value, expected, native):
    _, (problem,) = registry.check("pong", {key: value})
    assert (problem.key, problem.reason) == (f"env.options.{key}", f"expected {expected}")
    with pytest.raises(ConfigError) as caught:
        registry.resolve("pong", {key: value})
    assert str(caught.value) == str(problem)
    if native is not None:
        rom = registry.resolve("pong").options
        text = str(value).lower() if isinstance(value, bool) else str(value)
        with pytest.raises(NativeError) as caught:
            EnvPool(EnvSpec("pong", "atari", (*rom, f"{key}={text}")), 1)
        assert str(caught.value) == f"atari option {key} is '{text}', expected {native}"


def test_all_problems_are_reported():
    _, problems = registry.check("frostbit", {"frame_skip": 0, "frameskip": 2, "noop_max": -3})
    assert [str(problem) for problem in problems] == [
        'env.name = "frostbit": there is no such environment; did you mean frostbite? '
        "(`neuroevo info --games` lists the environments)",
        "env.options.frameskip = 2: there is no such key; did you mean frame_skip? (keys of [env.options]: protocol, "
        "repeat_action_probability, full_action_space, mode, difficulty, frame_skip, noop_max, terminal_on_life_loss, "
        "stack, screen_size, grayscale, emulator, channels_first, behavior)",
        "env.options.frame_skip = 0: expected at least 1",
        "env.options.noop_max = -3: expected at least 0",
    ]
    with pytest.raises(
        ConfigError, match=r"2 problems:\n  env.options.frameskip = 2.*\n  env.options.frame_skip"
    ) as bad:
        registry.resolve("frostbite", {"frame_skip": 0, "frameskip": 2})
    assert [problem.key for problem in bad.value.problems] == ["env.options.frameskip", "env.options.frame_skip"]
    assert registry.check("ALE/Frostbite-v5", {"frame_skip": 4.0, "repeat_action_probability": 1})[1] == []
    _, (unknown,) = registry.check("Ms. Pacmann", {})
    assert (unknown.key, unknown.value) == ("env.name", "Ms. Pacmann")
    assert unknown.reason.startswith("there is no such environment; did you mean ms_")


def test_unavailable_modes_and_difficulties_are_named_with_the_legal_ones():
    with pytest.raises(NativeError) as caught:
        make("pong", mode=2)
    assert str(caught.value) == "atari option mode is 2, which pong does not support; expected one of: 0, 1"
    with pytest.raises(NativeError) as caught:
        make("backgammon", difficulty=0)
    assert str(caught.value) == "atari option difficulty is 0, which backgammon does not support; expected one of: 3"


def test_options_reach_the_native_code_as_text():
    given = {"protocol": "gymnasium", "repeat_action_probability": 0.25, "full_action_space": True, "mode": None}
    assert registry.resolve("pong", given).options[1:] == (
        "protocol=gymnasium",
        "repeat_action_probability=0.25",
        "full_action_space=true",
    )
    assert registry.resolve("pong", {"frame_skip": 2.0, "terminal_on_life_loss": False}).options[1:] == (
        "frame_skip=2",
        "terminal_on_life_loss=false",
    )
    assert make("pong", repeat_action_probability=1e-7).num_actions == 6  # formatted with an exponent
    for field in atari.AtariOptions.__pydantic_fields__:
        assert documentation(atari.AtariOptions, field)
