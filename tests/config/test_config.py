"""Configurations: accepted values, error messages, overrides and the round trip through TOML."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.algorithms.schedules import LinearSchedule
from neuroevo.config.load import load_config, make_config
from neuroevo.core import bounds
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.networks.architectures import NETWORKS
from neuroevo.system.reading import tomllib

PRESETS = Path(__file__).parents[2] / "neuroevo/config/presets"
LEAST = {"env": {"name": "frostbite"}, "training": {"generations": 3}}


def problems(tables):
    """The lines of problems that make_config reports, without the heading."""
    with pytest.raises(UserError) as caught:
        make_config(tables)
    heading, *lines = str(caught.value).splitlines()
    assert heading == f"{len(lines)} problem{'s' if len(lines) > 1 else ''} in the configuration:"
    return [line.removeprefix("  ") for line in lines]


def written(tmp_path, text):
    path = tmp_path / "some.toml"
    path.write_text(text)
    return path


def test_the_least_has_the_papers_defaults():
    config = make_config(LEAST)
    assert config.algorithm == GA(population=1000, parents=20, sigma=0.002, validation_candidates=10)
    assert config.network.name == "large_model"
    training = config.training
    assert (training.seed, training.episodes, training.max_episode_steps) == (0, 1, 5000)
    assert (training.validation_episodes, training.test_episodes) == (30, 200)
    assert (training.total_steps, training.generations, training.minutes) == (None, 3, None)
    assert (config.hardware.threads, config.hardware.lanes, config.hardware.slots) == (None, None, None)


def test_the_papers_files():
    ga = load_config(PRESETS / "frostbite_ga.toml")
    assert (ga.algorithm, ga.training.total_steps, ga.network.name) == (GA(), 250_000_000, "large_model")
    search = load_config(PRESETS / "frostbite_random_search.toml")
    assert (search.algorithm, search.training.total_steps, search.network.name) == (
        RandomSearch(),
        250_000_000,
        "model",
    )


SECTIONS = "(sections: env, network, algorithm, training, hardware, checkpoints, cluster, logging)"
KNOWN = f"{', '.join(ALGORITHMS)}, evosax:NAME"
GA_KEYS = f'(keys of [algorithm] with name = "ga": {", ".join(["name", *(each.name for each in fields(GA))])})'


def test_every_problem_at_once():
    tables = {
        "env": {"nam": "frostbite"},
        "enw": {},
        "network": 3,
        "algorithm": {"poplation": 0, "parents": "x", "sigma": float("nan")},
        "training": {"seed": -1, "max_episode_steps": -5, "total_steps": 1.5, "minutes": 0},
        "hardware": {"threads": True, "device": "gpuu"},
    }
    assert problems(tables) == [
        f"enw: there is no such section; did you mean env? {SECTIONS}",
        'env.nam = "frostbite": there is no such key; did you mean name? (keys of [env]: name, options)',
        "network = 3: expected a section [network]",
        f"algorithm.poplation = 0: there is no such key; did you mean population? {GA_KEYS}",
        "algorithm.population = 0: expected at least 1",
        'algorithm.parents = "x": expected a valid integer',
        "algorithm.sigma = nan: expected a finite number",
        "training.seed = -1: expected at least 0",
        "training.max_episode_steps = -5: expected steps of at least 1, "
        '"env_default" or "adaptive:start,fraction,ratio,max"',
        "training.total_steps = 1.5: expected a valid integer",
        "training.minutes = 0: expected more than 0",
        'hardware.device = "gpuu": expected one of auto, cpu, gpu; did you mean gpu?',
        "hardware.threads = true: expected a valid integer",
    ]


@pytest.mark.parametrize(
    ("section", "key", "hint"),
    [
        ("algorithm", "poplation_size", "; did you mean algorithm.population, the 2018 code's population_size?"),
        ("algorithm", "population_size", "; did you mean algorithm.population, the 2018 code's population_size?"),
        ("algorithm", "mutation_power", "; did you mean algorithm.sigma, the 2018 code's mutation_power?"),
        ("algorithm", "selection_treshold", "; did you mean algorithm.parents, the 2018 code's selection_threshold?"),
        ("algorithm", "sgima", "; did you mean sigma?"),
        ("algorithm", "seed", "; did you mean training.seed?"),
        ("algorithm", "zzz", ""),
        ("env", "game", "; did you mean env.name, the 2018 code's game?"),
        ("network", "model", "; did you mean network.name, the 2018 code's model?"),
        ("training", "generation", "; did you mean generations?"),
        ("training", "thread", "; did you mean hardware.threads?"),
        ("training", "num_test_episode", "; did you mean training.test_episodes, the 2018 code's num_test_episodes?"),
        ("", "population_size", "; did you mean algorithm.population, the 2018 code's population_size?"),
        ("", "sigma", "; did you mean algorithm.sigma?"),
        ("", "hardwear", "; did you mean hardware?"),
    ],
)
def test_suggestions(section, key, hint):
    tables = {name: dict(table) for name, table in LEAST.items()}
    (tables.setdefault(section, {}) if section else tables)[key] = 7
    line = problems(tables)[0]
    name, kind = (f"{section}.{key}", "key") if section else (key, "section")
    assert line.startswith(f"{name} = 7: there is no such {kind}{hint} (")


def test_a_misspelt_key_is_one_problem_also_where_it_is_wanted():
    assert [line.partition(":")[0] for line in problems({"env": {"nmae": "frostbite"}, "training": {"minute": 2}})] == [
        'env.nmae = "frostbite"',
        "training.minute = 2",
    ]
    assert len(problems({"enw": {"name": "frostbite"}, "trainin": {"minutes": 2}})) == 2


def test_an_algorithm_has_its_own_keys():
    assert problems({**LEAST, "algorithm": {"name": "random_search", "parents": 3}}) == [
        "algorithm.parents = 3: there is no such key "
        '(keys of [algorithm] with name = "random_search": name, population, validation_candidates)'
    ]


@pytest.mark.parametrize(
    ("section", "table", "expected"),
    [
        ("algorithm", {"name": "gaa"},
         f'algorithm.name = "gaa": expected one of {KNOWN}, or module:class of your own; did you mean ga?'),
        ("algorithm", {"name": 3}, f"algorithm.name = 3: expected one of {KNOWN}, or module:class of your own"),
        ("algorithm", {"population": 10}, "algorithm.parents = 20: expected at most the population, 10"),
        ("algorithm", {"validation_candidates": 1}, "algorithm.validation_candidates = 1: expected at least 2"),
        ("algorithm", {"sigma": {"type": "LinearSchedule", "final_p": 1.0, "schedule": 1}},
         "algorithm.sigma.initial_p: missing, expected a value"),
        ("algorithm", {"sigma": "big"}, 'algorithm.sigma = "big": expected a valid number'),
        ("network", {"name": "larg_model"},
         f'network.name = "larg_model": expected one of {", ".join(NETWORKS)}, or module:function of your own; '
         "did you mean large_model?"),
        ("network", {"name": 3}, "network.name = 3: expected a valid string"),
        ("algorithm", {"sigma": {"type": "LinearSchedule", "final_p": 1.0, "schedule": 1, "initial_p": 1.0, "x": 2}},
         "algorithm.sigma.x = 2: there is no such key"),
        ("env", {"name": ""}, 'env.name = "": expected at least 1 character'),
        ("training", {}, "training: no budget: expected at least one of total_steps, generations and minutes"),
        ("training", {"generations": 1, "seed": 2**63},
         "training.seed = 9223372036854775808: expected less than 9223372036854775808"),
        ("training", {"minutes": float("inf")}, "training.minutes = inf: expected a finite number"),
        ("hardware", {"lanes": 64, "slots": 1025},
         "hardware.slots = 1025: expected at most 1024 in each of 64 lanes"),
        ("training", {"generations": 1, "test_episodes": -1},
         "training.test_episodes = -1: expected at least 0"),
    ],
)  # fmt: skip
def test_single_problems(section, table, expected):
    assert problems({**LEAST, section: table}) == [expected]


HOPPER = {"env": {"name": "Hopper-v5"}, "training": {"generations": 3}}


def test_the_settings_of_mlp_are_filled_in():
    network = make_config({**HOPPER, "network": {"name": "mlp"}}).network
    assert (network.hidden, network.activation, network.action_bins) == ((256, 256), "tanh", 0)
    assert network.normalize_observations is False
    settings = {"hidden": [64, 32.0], "activation": "relu", "action_bins": 10.0, "normalize_observations": True}
    config = make_config({**HOPPER, "network": {"name": "mlp", **settings}})
    assert (config.network.hidden, config.network.activation, config.network.action_bins) == ((64, 32), "relu", 10)
    assert make_config(tomllib.loads(config.toml())) == config
    assert tomllib.loads(config.toml())["network"] == {"name": "mlp", "dtype": "float32", **settings}
    plain = make_config(LEAST)
    assert (plain.network.hidden, plain.network.activation) == (None, None)
    assert "hidden" not in plain.tables()["network"]
    pixels = make_config({**LEAST, "network": {"name": "mlp", "activation": "relu", "dtype": "int8"}})
    assert pixels.network.hidden == (256, 256)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (HOPPER,
         ['network.name = "large_model": this network requires images, but Hopper-v5 has vector '
          "observations; expected mlp"]),
        ({**HOPPER, "network": {"name": "mlp", "dtype": "int8"}},
         ['network.dtype = "int8": Hopper-v5 has vector observations, expected float32']),
        ({**HOPPER, "network": {"name": "nature_dqn", "dtype": "int8", "hidden": [3], "activation": "tanh"}},
         ['network.name = "nature_dqn": this network requires images, but Hopper-v5 has vector '
          "observations; expected mlp",
          "network.hidden = [3]: nature_dqn does not support this key: expected mlp, or the key left out",
          'network.activation = "tanh": nature_dqn does not support this key: expected mlp, or the key left out',
          'network.dtype = "int8": Hopper-v5 has vector observations, expected float32']),
        ({**LEAST, "network": {"hidden": [64], "action_bins": 5, "normalize_observations": True}},
         ["network.hidden = [64]: large_model does not support this key: expected mlp, or the key left out",
          "network.action_bins = 5: frostbite has discrete actions, not continuous actions; expected 0",
          "network.normalize_observations = true: frostbite has image observations, expected false"]),
        ({**LEAST, "network": {"name": "mlp", "hidden": [8], "dtype": "int8"}},
         ['network.dtype = "int8": mlp has tanh between its layers, expected a network with relu']),
        ({**LEAST, "env": {"name": "hard_maze"}},
         ['network.name = "large_model": this network requires images, but hard_maze has vector '
          "observations; expected mlp"]),
        ({**LEAST, "env": {"name": "hard_maze", "options": {"observation": "image"}},
          "network": {"dtype": "int8", "normalize_observations": True}},
         ['network.dtype = "int8": hard_maze has continuous actions, whose network ends in tanh; expected '
          "float32, or action_bins",
          "network.normalize_observations = true: hard_maze has image observations, expected false"]),
        ({**HOPPER, "network": {"name": "mlp", "hidden": []}},
         ["network.hidden = []: expected a list of one or more numbers in [1, 65536]"]),
        ({**HOPPER, "network": {"name": "mlp", "hidden": [64, 0]}},
         ["network.hidden = [64, 0]: expected a list of one or more numbers in [1, 65536]"]),
        ({**HOPPER, "network": {"name": "mlp", "hidden": 64}},
         ["network.hidden = 64: expected a list of one or more numbers in [1, 65536]"]),
        ({**HOPPER, "network": {"name": "mlp", "activation": "gelu"}},
         ["network.activation = \"gelu\": expected 'tanh' or 'relu'"]),
        *(({**HOPPER, "network": {"name": "mlp", "action_bins": bins}},
           [f"network.action_bins = {bins}: expected 0 (continuous actions) or a number in [2, 1024]"])
          for bins in (1, -2, 1025)),
        ({**HOPPER, "network": {"name": "mlp", "normalize_observation": True}},
         ["network.normalize_observation = true: there is no such key; did you mean normalize_observations? (keys of "
          "[network]: name, layers, dtype, hidden, activation, action_bins, normalize_observations)"]),
        ({**HOPPER, "env": {"name": "Hoper"}, "network": {"name": "large_model", "action_bins": 1}},
         ['env.name = "Hoper": there is no such environment; did you mean Hopper-v5? (`neuroevo info --games` lists '
          "the environments)", "network.action_bins = 1: expected 0 (continuous actions) or a number in [2, 1024]"]),
    ],
)  # fmt: skip
def test_networks_that_do_not_fit(tables, expected):
    assert sorted(problems(tables)) == sorted(expected)


def test_the_largest_numbers():
    """Larger values, also beyond 32 bits, are rejected: see test_mistakes."""
    count, single = 2**31 - 1, float(np.finfo(np.float32).max)
    config = make_config(
        {
            **LEAST,
            "algorithm": {"population": count, "sigma": single},
            "training": {
                "total_steps": 2**63 - 1,
                "generations": count,
                "max_episode_steps": f"adaptive:1,0,1e308,{count}",
            },
            "hardware": {"threads": 4096, "lanes": 4096, "slots": 16},
        }
    )
    assert config.algorithm.sigma == single and config.training.total_steps == 2**63 - 1
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    assert make_config({**LEAST, "algorithm": {"sigma": tiny}}).algorithm.sigma == tiny


def test_limits_are_those_of_the_ops():
    ops = Path(__file__).parents[2] / "custom_ops"
    assert f"kMaxThreads = {bounds.MAX_THREADS};" in (ops / "core" / "thread_pool.h").read_text()
    assert bounds.MAX_SLOTS == 1 << 16 and "kMaxSlots = 1 << 16;" in (ops / "envs" / "env_pool.h").read_text()


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="no configuration file .*absent.toml"):
        load_config(tmp_path / "absent.toml")
    with pytest.raises(UserError, match=f"{tmp_path} is a folder"):
        load_config(tmp_path)
    with pytest.raises(UserError, match=r"some.toml .* TOML: .*line 2"):
        load_config(written(tmp_path, "[env]\nname = \n"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="binary.toml: 'utf-8'"):
        load_config(tmp_path / "binary.toml")


def test_overrides(tmp_path):
    path = written(tmp_path, '[env]\nname = "pong"\n[training]\nseed = 1\ngenerations = 2\n')
    config = load_config(
        path,
        [
            "training.seed=7",
            "env.name=frostbite",  # no quotes needed around one word
            'network.name = "model"',
            "training.total_steps=1e6",
            "env.options.repeat_action_probability=0.25",
            "algorithm.sigma={type = 'LinearSchedule', initial_p = 0.5, final_p = 0.25, schedule = 9}",
            "training.max_episode_steps=adaptive:100,0.5,2,400",
        ],
    )
    assert config.training.seed == 7
    assert config.training.generations == 2
    assert config.training.total_steps == 1_000_000
    assert (config.env.name, config.env.options) == ("frostbite", {"repeat_action_probability": 0.25})
    assert config.network.name == "model"
    assert config.algorithm.sigma == LinearSchedule(0.5, 0.25, 9)
    assert config.training.max_episode_steps == "adaptive:100,0.5,2,400"
    assert make_config(tomllib.loads(config.toml())) == config


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("training.seed", "SECTION.KEY=VALUE"),
        ("seed=3", "SECTION.KEY=VALUE"),
        ("training..seed=3", "SECTION.KEY=VALUE"),
        ("training.seed=", "TOML"),
        ("training.seed=[1", "TOML"),
        ("training.seed=1\nlanes = 3", "one value"),
        ("env.name.x=3", 'env.name is "pong"'),
    ],
)
def test_wrong_overrides(tmp_path, override, expected):
    path = written(tmp_path, '[env]\nname = "pong"\n[training]\ngenerations = 2\n')
    with pytest.raises(UserError, match=f"^--set {re.escape(override)}: .*{expected}"):
        load_config(path, [override])


def test_an_override_of_no_key(tmp_path):
    path = written(tmp_path, '[env]\nname = "pong"\n[training]\ngenerations = 2\n')
    with pytest.raises(ConfigError) as raised:
        load_config(path, ["training.sed=3"])
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("training.sed", 3)
    assert "did you mean seed?" in problem.reason


@given(
    st.integers(0, 2**63 - 1),
    st.integers(1, 10**12),
    st.floats(1e-9, 1e9),
    st.sampled_from(["frostbite", "ALE/Pong-v5", "MsPacman"]),
    st.dictionaries(st.sampled_from(["frame_skip", "noop_max"]), st.integers(1, 9)),
    st.text(min_size=1).filter(lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text)),
    st.one_of(st.none(), st.integers(1, 64)),
)
def test_toml_round_trip(seed, total_steps, sigma, name, options, start_from, threads):
    tables = {
        "env": {"name": name, "options": options},
        "algorithm": {"sigma": sigma},
        "training": {"seed": seed, "total_steps": total_steps, "start_from": start_from},
        "hardware": {} if threads is None else {"threads": threads},
    }
    config = make_config(tables)
    assert make_config(tomllib.loads(config.toml())) == config


@pytest.mark.parametrize(
    ("env", "key", "own"), [("hard_maze", "map", "medium"), ("HalfCheetah-v5", "xml_file", "half_cheetah.xml")]
)
def test_files_are_known_by_their_absolute_paths(tmp_path, monkeypatch, env, key, own):
    """A run's configuration is valid in every folder; the files of an environment's package keep their names."""

    def options(**given):
        tables = {"env": {"name": env, "options": given}, "network": {"name": "mlp"}, "training": {"generations": 1}}
        return make_config(tables).env.options

    (tmp_path / "own").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("./own", "~/own", str(tmp_path / "own"), f"../{tmp_path.name}/own"):
        assert options(**{key: path}) == {key: str(tmp_path / "own")}
    assert options(**{key: own, "max_episode_steps": 7}) == {key: own, "max_episode_steps": 7}
    assert options() == {}
