"""Names of Atari games: Gymnasium's names imply its settings, neuroevo's the protocol of 2018."""

import re

import gymnasium
import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.envs import atari, registry
from neuroevo.envs.atari_ram import RAM_NAMES
from neuroevo.native.env_pool import EnvPool


def registered():
    """Gymnasium's Atari environments by name."""
    import ale_py

    gymnasium.register_envs(ale_py)
    return {name: spec.kwargs for name, spec in gymnasium.registry.items() if spec.entry_point == "ale_py.env:AtariEnv"}


def test_every_registered_name_has_its_settings_or_is_refused():
    names = registered()
    assert len(names) > 300 and {kwargs["game"] for kwargs in names.values()} == set(atari.AtariGame.names())
    refused = set()
    for name, settings in names.items():
        environment, problems = registry.check(name, {})
        assert environment.name == settings["game"]
        if isinstance(settings["frameskip"], tuple):
            refused.add(name)
            assert [problem.key for problem in problems] == ["env.name"], name
            continue
        assert problems == [], name
        assert environment.values["protocol"] == "gymnasium"
        assert environment.values["repeat_action_probability"] == settings["repeat_action_probability"], name
        # The wrapper skips 4 frames of NoFrameskip environments; environments of version 5 skip 4 themselves.
        assert settings["frameskip"] in (1, 4) and environment.settings()["frame_skip"] == 4
        assert environment.settings()["full_action_space"] == settings["full_action_space"]
        assert settings["max_num_frames_per_episode"] == 108_000
    assert refused == {name for name in names if re.search(r"^[^/]+(?<!NoFrameskip)-v[04]$", name)}


@pytest.mark.parametrize("name", ["ALE/Pong-v4", "Pong-v7", "PongDeterministic-v4", "ALE/PongNoFrameskip-v4"])
def test_what_gymnasium_has_not_is_refused(name):
    with pytest.raises(ConfigError) as caught:
        registry.find(name)
    assert [(problem.key, problem.value) for problem in caught.value.problems] == [("env.name", name)]


def test_names_of_ours_are_the_protocol_of_2018():
    for name in ("frostbite", "Frostbite", "FROSTBITE"):
        environment = registry.find(name)
        assert environment.given == {}
        assert environment.settings()["protocol"] == "uber"
        assert environment.settings()["repeat_action_probability"] == 0


def test_options_that_are_given_go_before():
    environment = registry.find("ALE/Pong-v5", {"repeat_action_probability": 0.1, "mode": 1})
    assert environment.values == {"protocol": "gymnasium", "repeat_action_probability": 0.1, "mode": 1}
    assert "0.1" in environment.rules and "mode = 1" in environment.rules


def test_they_play_otherwise():
    """The same actions in episodes of the same seeds: sticky actions and resizing distinguish the names."""
    played = {}
    for name in ("boxing", "BoxingNoFrameskip-v4", "ALE/Boxing-v5"):
        pool = EnvPool(registry.resolve(name), 1)
        pool.reset([0], [3], [0])
        seen = [pool.observe([0])[0]]
        for step in range(60):
            pool.step([0], [step % pool.num_actions])
            seen.append(pool.observe([0])[0])
        played[name] = np.array(seen)
    ours, exact, sticky = played.values()
    assert (ours[4:] != exact[4:]).any() and (exact != sticky).any()


RIGHT, LEFT, UP, DOWN = (3, 6, 8, 11, 14, 16), (4, 7, 9, 12, 15, 17), (2, 6, 7, 10, 14, 15), (5, 8, 9, 13, 16, 17)
# Games without free walking: a cannon at the bottom, ladders, diagonal hops, and a game that starts with an animation.
ELSEWHERE = {
    "player_x": {"berzerk", "demon_attack", "frostbite", "qbert"},
    "player_y": {"frostbite", "hero", "montezuma_revenge", "ms_pacman", "pitfall", "pong", "private_eye", "qbert"},
}


@pytest.mark.parametrize("game", RAM_NAMES)
def test_named_bytes_follow_the_joystick_and_the_lives(game):
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path(game))
    actions, random = ale.getMinimalActionSet(), np.random.default_rng(0)
    memory, lives, done = [], [], []
    for frame in range(2000):
        if ale.game_over():
            ale.reset_game()
        action = actions[random.integers(len(actions))] if frame % 8 == 0 else action  # noqa: F821
        ale.act(action)
        memory.append(ale.getRAM().astype(int))
        lives.append(ale.lives())
        done.append(action.value)
    values = {name: np.array(memory)[:, byte] for name, byte in RAM_NAMES[game].items()}
    if "lives" in values:  # the byte counts the lives that are left, or those after the current one
        assert (np.isin(np.array(lives) - values["lives"], (0, 1)) | (np.array(lives) == 0)).all()
    for name, positive, negative in (("player_x", RIGHT, LEFT), ("player_y", UP, DOWN)):
        if name in values and game not in ELSEWHERE[name]:
            moved = np.diff(values[name])
            near = np.abs(moved) < 20  # it may jump at a restart
            forward, backward = (
                np.sign(moved[near & np.isin(done[1:], codes)]).mean() for codes in (positive, negative)
            )
            assert abs(forward - backward) > 0.05 and forward * backward < 0, (forward, backward)


def test_a_behavior_may_name_bytes():
    environment = registry.find("montezuma_revenge", {"behavior": ["room", 42, "player_y"]})
    assert [(each.name, each.low, each.high) for each in environment.measures] == [
        ("room", 0, 255),
        ("RAM 42", 0, 255),
        ("player_y", 0, 255),
    ]
    named, memory = EnvPool(environment.spec, 1), EnvPool(registry.resolve("montezuma_revenge"), 1)
    for pool in (named, memory):
        pool.reset([0], [1], [0])
    assert np.array_equal(named.behavior([0])[0], memory.behavior([0])[0][[3, 42, 43]])
    for name, given, message in (
        ("montezuma_revenge", ["rooms"], r"one of inventory, level.*did you mean room\?"),
        ("skiing", ["room"], "expected RAM bytes from 0 to 127"),
        ("skiing", [128], "behavior"),
    ):
        with pytest.raises(ConfigError, match=message):
            registry.find(name, {"behavior": given})


@pytest.mark.parametrize(
    ("given", "meant"), [("ALE/Frostbitte-v5", "ALE/Frostbite-v5"), ("frostbitte", "frostbite"), ("Pongg", "pong")]
)
def test_a_hint_has_the_form_of_the_name(given, meant):
    with pytest.raises(UserError, match=rf"did you mean {meant}\?"):
        registry.find(given)
