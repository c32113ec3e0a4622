"""Classes of environment families, and the environment object of a configuration."""

import hashlib
from collections import Counter
from dataclasses import replace

import pytest

from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Env
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.core.settings import settings
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.sessions import preflight

NAMES = {
    "atari": "pong",
    "mujoco": "Hopper-v5",
    "hard_maze": "HardMaze-v0",
    "gymnasium": "gymnasium:CartPole-v1",
    "brax": "brax:ant",
    "mjx": f"mjx:{__file__}",  # any existing file
    "playground": "playground:CheetahRun",
}


@settings
class CoinOptions:
    """Options of the toy family."""

    sides: int = 2
    """Number of toys."""


class Coin(Environment):
    """Minimal environment family."""

    family = "coin"
    options_type = CoinOptions

    @classmethod
    def names(cls):
        return ["Coin-v0"]


@pytest.fixture
def coin(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, Coin))


@pytest.mark.usefixtures("coin")
def test_a_family_is_one_class_and_one_line():
    environment = registry.find("Coin", {"sides": 3})
    assert type(environment) is Coin and environment.options == CoinOptions(sides=3)
    assert (environment.given_name, environment.name, environment.given) == ("Coin", "Coin-v0", {"sides": 3})
    assert environment.spec == EnvSpec("Coin-v0", "coin", ("sides=3",))
    assert (environment.image_observations, environment.continuous_actions) == (None, None)
    assert environment.file is None and environment.result_options() == {"options": {"sides": 3}}
    assert environment.rendered() is environment and environment.frames_per_s is None
    assert Coin.listing() == "environments (1): Coin-v0"
    assert Coin.find("coin-v0") == "Coin-v0" and Coin.find("coin-v1") is None
    config = make_config({"env": {"name": "coin"}, "network": {"name": "mlp"}, "training": {"generations": 1}})
    assert config.environment.spec == EnvSpec("Coin-v0", "coin", ())
    with pytest.raises(ConfigError) as caught:
        make_config({"env": {"name": "coin", "options": {"side": 2}}, "training": {"generations": 1}})
    assert [problem.key for problem in caught.value.problems] == ["env.options.side"]


@pytest.mark.parametrize("family", registry.FAMILIES, ids=lambda family: family.family)
def test_every_family(family):
    name = NAMES[family.family]
    if family.family == "playground":
        pytest.importorskip("mujoco_playground")
    environment, problems = registry.check(f" {name} ", {})
    assert problems == []
    assert (type(environment), environment.name) == (family, name)
    if environment.accelerated:
        with pytest.raises(UserError, match="the native core"):
            registry.resolve(name)
    else:
        assert environment.spec.family == family.family
        assert registry.resolve(name) == environment.spec
    assert environment.options == environment.options_type(**family.named_options(name))
    assert name in family.listing() or family.family in ("gymnasium", "mjx")
    assert {family.find(known) for known in family.gymnasium_ids().values()} >= (set() if family.prefix else {name})
    assert set(family.free_options) <= set(environment.options_type.__pydantic_fields__)
    assert {family.file_option} - {None} <= set(environment.options_type.__pydantic_fields__)


@pytest.mark.parametrize(
    ("name", "options", "image_observations", "continuous_actions"),
    [
        ("pong", {}, True, False),
        ("Hopper-v5", {}, False, True),
        ("hard_maze", {}, False, True),
        ("hard_maze", {"observation": "image"}, True, True),
        ("gymnasium:CartPole-v1", {}, None, None),
    ],
)
def test_what_is_known_before_one_is_made(name, options, image_observations, continuous_actions):
    environment = registry.find(name, options)
    assert (environment.image_observations, environment.continuous_actions) == (image_observations, continuous_actions)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("CartPole-v1", "gymnasium:CartPole-v1"),  # only the prefix is missing
        ("Hopper-v4", "Hopper-v5"),  # Gymnasium has this name as well, but only the version differs
        ("hard_maz", "HardMaze-v0"),
        ("frostbit", "frostbite"),
        ("brx:halfcheetah", "brax:halfcheetah"),
    ],
)
def test_the_nearest_name_of_all_families(name, near):
    environment, (problem,) = registry.check(name, {})
    assert environment is None
    assert (problem.key, problem.value) == ("env.name", name)
    assert problem.reason.startswith(f"there is no such environment; did you mean {near}? (")


def test_options_of_an_unknown_name_are_those_of_the_nearest():
    environment, problems = registry.check("HalfCheetha", {"ctrl_cost_weight": "high", "sticky": 0.1})
    assert environment is None
    assert [problem.key for problem in problems] == [
        "env.name",
        "env.options.sticky",
        "env.options.ctrl_cost_weight",
    ]
    assert "HalfCheetah-v5" in problems[0].reason and "reset_noise_scale" in problems[1].reason
    assert [each.key for each in registry.check("nothing of the kind", {"sticky": 0.1})[1]] == ["env.name"]


def test_an_invalid_option_leaves_the_others():
    environment, problems = registry.check("hard_maze", {"observation": "image", "max_episode_steps": 0})
    assert [problem.key for problem in problems] == ["env.options.max_episode_steps"]
    assert environment.image_observations and environment.options.max_episode_steps == 400


def test_a_configurations_environment_is_looked_for_once(monkeypatch):
    asked = Counter()

    def counted(name, call):
        def wrapper(*given):
            asked[name] += 1
            return call(*given)

        return wrapper

    for name in ("family_of", "check", "find"):
        monkeypatch.setattr(registry, name, counted(name, getattr(registry, name)))
    config = load_config("smoke")
    environment = config.environment
    assert preflight.problems(config) == []
    config.origin()
    faster = replace(config, hardware=replace(config.hardware, threads=1))
    assert faster.environment is config.env.environment is environment
    assert asked == {"check": 1, "family_of": 1}
    other = replace(config, env=Env("pong"))
    assert other.environment.name == other.environment.name == "pong"
    assert asked == {"check": 1, "family_of": 2, "find": 1}
    assert Env.of(environment) == config.env and Env.of(environment).environment is environment


@pytest.mark.parametrize(("name", "option"), [("hard_maze", "map"), ("Hopper-v5", "xml_file")])
def test_a_file_of_the_users_own(tmp_path, monkeypatch, name, option):
    file = tmp_path / "some.txt"
    file.write_text("one")
    monkeypatch.chdir(tmp_path)
    environment = registry.find(name, {option: "./some.txt", "max_episode_steps": 9})
    assert environment.given == {option: str(file), "max_episode_steps": 9}
    assert (environment.file.option, environment.file.path) == (option, file)
    before = hashlib.sha256(b"one").hexdigest()
    assert environment.result_options() == {"options": {"max_episode_steps": 9}, "file": before}
    environment.check_file(before, tmp_path)
    file.write_text("two")
    now = hashlib.sha256(b"two").hexdigest()
    with pytest.raises(ConfigError) as caught:
        environment.check_file(before, tmp_path / "run")
    assert caught.value.problems[0].key == f"env.options.{option}"
    assert str(caught.value) == (
        f"env.options.{option}: {file} has changed since the run in {tmp_path / 'run'} began: "
        f"its SHA-256 sum is {now}, expected {before}"
    )
    file.unlink()
    for ask in (environment.result_options, lambda: environment.check_file(before, tmp_path)):
        with pytest.raises(ConfigError, match=f"env.options.{option}: .*{file}: No such file or directory"):
            ask()
    plain = registry.find(name)
    assert plain.file is None
    plain.check_file("whatever", tmp_path)
