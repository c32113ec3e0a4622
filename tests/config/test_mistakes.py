"""Invalid keys and values: both commands print the key, the value and what was expected."""

import json
import math

import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.problems import NO_VALUE, ConfigError
from neuroevo.native import library
from neuroevo.networks.architectures import NETWORKS
from neuroevo.system.reading import tomllib


@pytest.fixture
def problem(error_line):
    """Return the single problem of an override, which both commands print."""

    def of(override):
        with pytest.raises(ConfigError) as raised:
            load_config("some.toml", [override])
        assert error_line("some.toml", "--set", override) == str(raised.value)
        assert raised.value.source == "some.toml"
        (found,) = raised.value.problems
        return found

    return of


def parts(override):
    """Return key and value of KEY=VALUE; invalid TOML is a string."""
    key, text = override.split("=", 1)
    try:
        return key, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key, text


def same(one, other):
    """Equality in which NaN equals itself."""
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


AT_MOST = {  # reason -> overrides that are rejected for this reason
    "expected at most 4096": ["hardware.threads=4097", "hardware.threads=4294967297", "hardware.lanes=4097"],
    "expected at most 65536": ["hardware.slots=65537"],
    "expected at most 2147483647": [
        "training.test_episodes=1e19",
        "training.validation_episodes=2147483648",
        "training.episodes=1e19",
        "training.generations=1e19",
        "algorithm.population=1e19",
        "algorithm.parents=1e19",
        "algorithm.validation_candidates=1e19",
        "checkpoints.keep_every=1e19",
    ],
    f"expected at most {2**63 - 1}": ["training.total_steps=1e19"],
    f"expected less than {2**63}": [f"training.seed={2**63}"],
}
AT_LEAST = {
    "expected at least 0": ["training.seed=-1"],
    "expected at least 1": [
        "algorithm.population=0",
        "training.total_steps=0",
        "training.episodes=0",
        "hardware.threads=0",
        "checkpoints.keep_last=0",
    ],
    "expected at least 2": ["algorithm.validation_candidates=1"],
    "expected more than 0": ["algorithm.sigma=-1", "training.minutes=-1"],
}
KINDS = {
    "expected a valid integer": ["algorithm.population=many", "algorithm.population=7.5"],
    "expected a finite number": ["algorithm.sigma=nan", "algorithm.sigma=inf"],
    "expected a number that is positive and finite in 32 bits": ["algorithm.sigma=1e300", "algorithm.sigma=1e-60"],
    'expected steps of at least 1, "env_default" or "adaptive:start,fraction,ratio,max"': [
        "training.max_episode_steps=-5",
        "training.max_episode_steps=0",
    ],
}


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        (override, reason)
        for reasons in (AT_MOST, AT_LEAST, KINDS)
        for reason, overrides in reasons.items()
        for override in overrides
    ],
)
def test_a_wrong_value(problem, override, reason):
    found = problem(override)
    key, value = parts(override)
    assert (found.key, found.reason) == (key, reason)
    assert same(found.value, value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("adaptive:1,2", "2 of 4 numbers"),
        ("2147483648", "at most 2147483647"),
        ("1e19", "at most 2147483647"),
        ("adaptive:1,0.5,2,1e19", "max is 1e19, more than 2147483647"),
        ("adaptive:1e19,0.5,2,5e19", "max is 5e19, more than 2147483647"),
    ],
)
def test_wrong_steps_of_an_episode(problem, value, reason):
    found = problem(f"training.max_episode_steps={value}")
    assert (found.key, found.value) == parts(f"training.max_episode_steps={value}")
    assert "env_default" in found.reason and reason in found.reason


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("algorithm.population=19", "algorithm.parents", 20),
        ("algorithm.sigma={type='ConstantSchedule', value=1e39}", "algorithm.sigma.value", 1e39),
        (
            "algorithm.sigma={type='LinearSchedule', initial_p=1e39, final_p=1.0, schedule=9}",
            "algorithm.sigma.initial_p",
            1e39,
        ),
        (
            "algorithm.sigma={type='ExponentialSchedule', initial_p=1.0, final_p=1e-46, schedule=9}",
            "algorithm.sigma.final_p",
            1e-46,
        ),
    ],
)
def test_a_wrong_value_of_another_key(problem, override, key, value):
    found = problem(override)
    assert (found.key, found.value) == (key, value)
    assert ("at most the population, 19" if key == "algorithm.parents" else "32 bits") in found.reason


@pytest.mark.parametrize(
    ("override", "known", "meant"),
    [
        ("network.name=larg_model", f"{', '.join(NETWORKS)}, or module:function of your own", "large_model"),
        (
            "algorithm.name=random_serch",
            f"{', '.join(ALGORITHMS)}, evosax:NAME, or module:class of your own",
            "random_search",
        ),
        ("hardware.device=tpu", "auto, cpu, gpu", "gpu"),
    ],
)
def test_a_name_that_is_none(problem, override, known, meant):
    found = problem(override)
    assert (found.key, found.value) == parts(override)
    assert found.reason == f"expected one of {known}; did you mean {meant}?"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("poplation", "population"),
        ("poplation_size", "algorithm.population, the 2018 code's population_size"),
    ],
)
def test_a_key_that_is_none(problem, key, meant):
    found = problem(f"algorithm.{key}=70")
    assert (found.key, found.value) == (f"algorithm.{key}", 70)
    assert f"no such key; did you mean {meant}?" in found.reason
    assert '[algorithm] with name = "ga": name, population, parents, sigma, validation_candidates' in found.reason


def test_a_section_that_is_none(problem):
    found = problem("trainin.sed=7")
    assert (found.key, found.value) == ("trainin", NO_VALUE)
    assert "did you mean training?" in found.reason
    assert "env, network, algorithm, training, hardware, checkpoints" in found.reason


@pytest.mark.parametrize(
    ("override", "word"),
    [
        ("env.name=frostbit", "did you mean frostbite?"),
        ("env.name=joust", ""),
        ("env.name=CartPole-v1", "did you mean gymnasium:CartPole-v1?"),
        ("env.name=Pendulum-v1", "did you mean gymnasium:Pendulum-v1?"),
        ("env.options.repeat_action_probability=1.5", ""),
        ("env.options.protocol=gymnasum", "'uber' or 'gymnasium'"),
        ("env.options.noop_mx=3", "did you mean noop_max?"),
    ],
)
def test_a_wrong_environment(problem, override, word):
    found = problem(override)
    assert (found.key, found.value) == parts(override)
    assert word in found.reason and "\n" not in str(found)


def test_a_missing_rom(problem, tmp_path, monkeypatch):
    rom = tmp_path / "roms" / "frostbite.bin"
    rom.parent.mkdir()

    def reason(folder):
        monkeypatch.setenv("ALE_ROMS_DIR", str(folder))
        found = problem("training.seed=0")  # a valid value
        assert (found.key, found.value) == ("env.name", "frostbite")
        return found.reason

    assert f"no {rom} (reinstall ale-py or set ALE_ROMS_DIR)" in reason(rom.parent)
    rom.write_bytes(b"damaged")
    assert "hash of frostbite.bin" in reason(rom.parent)
    assert "absent doesn't exist (reinstall ale-py" in reason(tmp_path / "absent")


def test_no_budget(error_line, tmp_path):
    (tmp_path / "some.toml").write_text('[env]\nname = "frostbite"\n')
    with pytest.raises(ConfigError) as raised:
        load_config("some.toml")
    assert error_line("some.toml") == str(raised.value)
    (found,) = raised.value.problems
    assert (found.key, found.value) == ("training", NO_VALUE)
    assert found.reason == "no budget: expected at least one of total_steps, generations and minutes"


@pytest.mark.skipif(library.gpu().usable, reason=f"it can be used: {library.gpu().name}")
def test_a_gpu_that_cannot_be_used(error_line):
    text = error_line("some.toml", "--set", "hardware.device=gpu", commands=[["train"]])
    assert text.startswith("device 'gpu'") and text.endswith("expected cpu or auto") and "\n" not in text


def test_a_mode_that_the_game_lacks(error_line):
    text = error_line("some.toml", "--set", "env.options.mode=7", commands=[["train"]])
    assert "frostbite" in text and "mode is 7" in text and text.endswith("expected one of: 0, 2")
    checked = CliRunner().invoke(app, ["config", "check", "some.toml", "--set", "env.options.mode=7"])
    assert (checked.exit_code, checked.stderr) == (2, f"neuroevo: 1 problem in some.toml:\n  {text}\n")


def test_a_2018_file(error_line, tmp_path):
    values = {"game": "frostbit", "timesteps": 1e6, "population_size": 0, "mutation_powr": -1}
    (tmp_path / "some.json").write_text(json.dumps(values))
    with pytest.raises(ConfigError) as raised:
        load_config("some.json")
    assert error_line("some.json") == str(raised.value)
    found = {problem.key: problem for problem in raised.value.problems}
    assert {key: problem.value for key, problem in found.items()} == {
        "mutation_powr": -1, "population_size": 0, "mutation_power": -1, "game": "frostbit",
    }  # fmt: skip
    assert "did you mean mutation_power? (keys: " in found["mutation_powr"].reason
    assert found["population_size"].reason == "expected at least 1"
    assert found["mutation_power"].reason == "expected more than 0"
    assert "did you mean frostbite?" in found["game"].reason
