"""What names of Atari games mean: those of Gymnasium's registry its settings, ours the protocol of 2018."""

import re

import gymnasium
import numpy as np
import pytest

from neuroevo.core.problems import ConfigError
from neuroevo.envs import atari, registry
from neuroevo.native.env_pool import EnvPool


def registered():
    """Gymnasium's Atari environments by their names."""
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
        # Without skipped frames the wrapper skips 4; the names of version 5 skip 4 themselves.
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
    """The same actions in episodes of the same seeds: sticky actions and the resize tell the names apart."""
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
