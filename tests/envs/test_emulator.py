"""neuroevo's processor and television chip against the ale-py wheel, on every game, frame by frame.

By default every game is played for a few seconds of game time; `make test-emulator` plays each for more than an hour,
see CONTRIBUTING. The error contains the first difference, which rerunning the same test reproduces.
"""

import os

import numpy as np
import pytest

from neuroevo.envs import atari
from neuroevo.envs.vector import make_vec
from tests.support.atari_play import LookingAhead, compare
from tests.support.atari_reference import emulator

pytestmark = pytest.mark.slow  # half a minute of a core in total

SEEDS = int(os.environ.get("NEUROEVO_TEST_EMULATOR", "0"))  # of 20,000 frames in each way; 0: the short tests
GAMES = atari.AtariGame.names()

NO_NOOP = ["backgammon", "video_checkers"]  # their minimal action sets lack no-op

# How frames are compared: every frame; the maximum of the last two frames of a step; the same in Gymnasium's protocol.
WAYS = {
    "every_frame": {"frame_skip": 1},
    "steps": {"frame_skip": 4},
    "gymnasium": {"frame_skip": 4, "protocol": "gymnasium"},
}
# Selected by the seed. Ending the episode on a lost life compares the lives.
OPTIONS = [
    {},
    {"terminal_on_life_loss": True},
    {"repeat_action_probability": 0.25},
    {"full_action_space": True},
    {"full_action_space": True, "repeat_action_probability": 0.25, "terminal_on_life_loss": True, "noop_max": 5},
]
FRAMES = 20_000 if SEEDS else 150
# Short tests have one way and one of the options for each game.
PLAYS = [(seed, way, game) for seed in range(SEEDS) for way in WAYS for game in GAMES] or [
    (number, list(WAYS)[number % len(WAYS)], game) for number, game in enumerate(GAMES)
]

# Games in which lookahead makes progress: levels, deaths and objects that random play never reaches.
AHEAD = [
    "breakout",
    "enduro",
    "frostbite",
    "hero",
    "kangaroo",
    "montezuma_revenge",
    "ms_pacman",
    "qbert",
    "seaquest",
    "space_invaders",
]
AHEAD_PLAYS = [
    (seed, way, game)
    for seed in range(SEEDS or 1)
    for way in WAYS
    for game in (AHEAD if SEEDS else {"steps": AHEAD[:1], "gymnasium": AHEAD[1:2]}.get(way, []))
]
MODE_FRAMES = 120
MODE_GAMES = GAMES if SEEDS else ["air_raid", "breakout", "pitfall2", "space_war"]  # the last three of several kinds


def playable(game, options):
    """Return the options without those that the reference does not support: no-ops of Gymnasium's wrapper in a game
    without that action; sticky actions in a game that begins by choosing a mode, which they disturb: the pool always
    continues from the same start, whereas a fresh emulator has another start for every seed."""
    options = dict(options)
    if game in NO_NOOP and options.get("protocol") == "gymnasium" and not options.get("full_action_space"):
        options["noop_max"] = 0
    if options.get("repeat_action_probability") and emulator(game).getEpisodeFrameNumber() > 0:
        del options["repeat_action_probability"]
    return options


def ident(value):
    return f"seed{value}" if isinstance(value, int) else value


@pytest.mark.parametrize(("seed", "way", "game"), PLAYS, ids=ident)
def test_random_play_equals_ale_py(seed, way, game, record_property):
    options = playable(game, {**WAYS[way], **OPTIONS[seed % len(OPTIONS)]})
    record_property("frames", compare(game, options, seed, FRAMES))


@pytest.mark.parametrize(("seed", "way", "game"), AHEAD_PLAYS, ids=ident)
def test_play_that_looks_ahead_equals_ale_py(seed, way, game, record_property):
    options = WAYS[way] | ({"repeat_action_probability": 0.25} if seed % 2 else {})
    player = LookingAhead(game, options["frame_skip"])
    record_property("frames", compare(game, options, seed, FRAMES, player))


@pytest.mark.parametrize("game", MODE_GAMES)
def test_modes_and_difficulties_equal_ale_py(game, record_property):
    loaded = emulator(game)
    chosen = [(mode, level) for mode in loaded.getAvailableModes() for level in loaded.getAvailableDifficulties()]
    frames = 0
    for number, (mode, level) in enumerate(chosen if SEEDS else chosen[:: max(1, len(chosen) // 4)]):
        options = {**list(WAYS.values())[number % len(WAYS)], "mode": mode, "difficulty": level}
        frames += compare(game, playable(game, options), number, MODE_FRAMES)
    record_property("frames", frames)
    record_property("modes", len(chosen))


@pytest.mark.parametrize("game", MODE_GAMES)
@pytest.mark.parametrize("protocol", ["uber", "gymnasium"])
def test_episodes_with_the_same_start_are_identical(game, protocol):
    options = {"protocol": protocol, "repeat_action_probability": 0.0, "noop_max": 3}
    env = make_vec(game, 20, **options)
    starts = env.reset(seed=range(20))[1]["episode_frame_number"]
    env.close()
    seeds = np.stack([np.flatnonzero(starts == start)[:3] for start in np.unique(starts)]).ravel().tolist()
    env = make_vec(game, len(seeds), **options)
    observations, infos = env.reset(seed=seeds)
    actions = np.random.default_rng(0).integers(env.single_action_space.n, size=(60, 3))
    for step, action in enumerate(actions):
        assert (observations.reshape(3, 3, -1) == observations.reshape(3, 3, -1)[:, :1]).all(), f"step {step}"
        observations, *ends, infos = env.step(np.repeat(action, 3))
        for values in (*ends, *infos.values()):
            assert (values.reshape(3, 3) == values.reshape(3, 3)[:, :1]).all(), f"step {step}"
        if ends[1].any():
            break
    env.close()
