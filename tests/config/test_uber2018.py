"""JSON files of the 2018 code: translation, unsupported values, and runs started from them.

The dicts hold the keys and values of gpu_implementation/configurations in uber-research/deep-neuroevolution.
"""

import json

import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.optimizers import SGD, Adam
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.algorithms.schedules import ConstantSchedule, ExponentialSchedule, LinearSchedule
from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.system.reading import tomllib
from tests.support.runs import new_run, read_rows

EPISODES = {"num_validation_episodes": 30, "num_test_episodes": 200, "episode_cutoff_mode": 5000}
GA_JSON = {
    "game": "frostbite",
    "model": "LargeModel",
    **EPISODES,
    "population_size": 1000,
    "timesteps": 1.5e9,
    "validation_threshold": 10,
    "mutation_power": 0.002,
    "selection_threshold": 20,
}
RS_JSON = {**GA_JSON, "model": "Model", "selection_threshold": 0}
ES_JSON = {
    "game": "frostbite",
    "model": "ModelVirtualBN",
    **EPISODES,
    "population_size": 5000,
    "timesteps": 250e6,
    "return_proc_mode": "centered_rank",
    "l2coeff": 0.005,
    "mutation_power": 0.02,
    "optimizer": {"args": {"stepsize": 0.01}, "type": "adam"},
}
ES_GYM_JSON = {**ES_JSON, "game": "gym.CartPole-v1", "model": "SimpleClassifier"}
CONFIGURATIONS = {  # all keys
    "ga_atari_config": GA_JSON,
    "rs_atari_config": RS_JSON,
    "es_atari_config": ES_JSON,
    "es_gym_config": ES_GYM_JSON,
}
KEYS = (
    "game, model, population_size, selection_threshold, mutation_power, validation_threshold, num_validation_episodes, "
    "num_test_episodes, episode_cutoff_mode, timesteps, load_population, l2coeff, optimizer, load_from, "
    "return_proc_mode"
)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a value to a JSON file and returns its path."""

    def write(values):
        path = tmp_path / "some.json"
        path.write_text(json.dumps(values))
        return path

    return write


@pytest.fixture
def problems(written):
    """The lines of problems that load_config reports, without the heading."""

    def of(values, overrides=()):
        path = written(values)
        with pytest.raises(UserError) as caught:
            load_config(path, overrides)
        heading, *lines = str(caught.value).splitlines()
        assert heading == f"{len(lines)} problem{'s' if len(lines) > 1 else ''} in {path}:"
        return [line.removeprefix("  ") for line in lines]

    return of


def test_the_genetic_algorithm(written):
    config = load_config(written(GA_JSON))
    assert config.algorithm == GA(population=1000, parents=20, sigma=0.002, validation_candidates=10)
    assert (config.env.name, config.network.name) == ("frostbite", "large_model")
    training = config.training
    assert (training.total_steps, training.generations, training.minutes) == (1_500_000_000, None, None)
    assert (training.episodes, training.max_episode_steps) == (1, 5000)
    assert (training.validation_episodes, training.test_episodes) == (30, 200)
    assert load_config(written(GA_JSON), ["training.total_steps=250e6"]) == load_config("frostbite_ga")


def test_random_search_is_no_parents(written):
    config = load_config(written(RS_JSON))
    assert config.algorithm == RandomSearch(population=1000, validation_candidates=10)
    assert config.network.name == "model"
    assert load_config(written(RS_JSON), ["training.total_steps=250e6"]) == load_config("frostbite_random_search")


@pytest.mark.parametrize(
    ("power", "sigma"),
    [
        (1, 1.0),
        ({"type": "ConstantSchedule", "value": 0.5}, ConstantSchedule(0.5)),
        ({"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.25, "schedule": 9, "field": "iteration"},
         LinearSchedule(0.5, 0.25, 9)),
        ({"type": "ExponentialSchedule", "initial_p": 0.5, "final_p": 0.1, "schedule": 1e9,
          "field": "timesteps_so_far"},
         ExponentialSchedule(0.5, 0.1, 1e9, "timesteps_so_far")),
    ],
)  # fmt: skip
def test_mutation_powers(written, power, sigma):
    assert load_config(written({**GA_JSON, "mutation_power": power})).algorithm.sigma == sigma


@pytest.mark.parametrize("mode", [700, "env_default", "adaptive:1000,0.5,1.5,20000"])
def test_max_episode_steps_modes(written, mode):
    assert load_config(written({**GA_JSON, "episode_cutoff_mode": mode})).training.max_episode_steps == mode


def test_overrides_are_in_our_words(written):
    config = load_config(written(RS_JSON), ["algorithm.population=5", "env.name=pong", "training.seed=3"])
    assert (config.algorithm.population, config.env.name, config.training.seed) == (5, "pong", 3)


def test_show_prints_the_toml_that_a_file_means(written):
    result = CliRunner().invoke(app, ["config", "show", str(written(GA_JSON))])
    tables = tomllib.loads(result.stdout)
    assert tables["algorithm"] == {
        "name": "ga",
        "population": 1000,
        "parents": 20,
        "sigma": 0.002,
        "validation_candidates": 10,
        "elites": 0,
        "tournament": 1,
        "sigma_factor": 1.0,
        "output_change": 0.0,
    }
    assert tables["training"]["total_steps"] == 1_500_000_000


def test_load_population_is_a_run_to_start_from(written, tmp_path):
    run = tmp_path / "before"
    new_run(run)
    assert load_config(written({**GA_JSON, "load_population": str(run)})).training.start_from == str(run)


def test_a_2018_population_cannot_be_loaded(problems, tmp_path):
    (tmp_path / "population").write_bytes(b"\x80\x03")
    for path in ("snapshot.pkl", str(tmp_path / "population")):
        assert problems({**GA_JSON, "load_population": path}) == [
            f'load_population = "{path}": a population of the 2018 code cannot be loaded: its seeds index that code\'s '
            "noise table, so its weights cannot be restored here; expected the folder of a neuroevo run"
        ]


def test_evolution_strategies(written):
    config = load_config(written(ES_JSON))
    assert config.algorithm == ES(population=5000, sigma=0.02, optimizer=Adam(learning_rate=0.01), weight_decay=0.005)
    assert (config.env.name, config.network.name) == ("frostbite", "virtual_bn")
    training = config.training
    assert (training.total_steps, training.max_episode_steps, training.test_episodes) == (250_000_000, 5000, 200)
    assert load_config(written(ES_JSON)) == load_config("es_frostbite")


@pytest.mark.parametrize("key", ["optimizer", "l2coeff", "return_proc_mode", "load_from"])
def test_one_key_makes_a_file_one_of_evolution_strategies(written, key):
    """Missing keys have our defaults, which are the same."""
    given = {**ES_JSON, "load_from": "runs/before"}
    others = {"optimizer", "l2coeff", "return_proc_mode", "load_from"} - {key}
    config = load_config(written({name: value for name, value in given.items() if name not in others}))
    assert config.algorithm == ES()
    assert config.training.start_from == ("runs/before" if key == "load_from" else None)


def test_strategies_settings(written):
    power = {"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.25, "schedule": 9, "field": "iteration"}
    changes = {
        "mutation_power": power,
        "l2coeff": 0,
        "population_size": 40,
        "episode_cutoff_mode": "adaptive:1000,0.5,1.5,20000",
        "optimizer": {"type": "sgd", "args": {"stepsize": 0.5, "momentum": 0.25}},
    }
    config = load_config(written({**ES_JSON, **changes}))
    assert config.algorithm == ES(40, LinearSchedule(0.5, 0.25, 9), SGD(learning_rate=0.5, momentum=0.25), 0)
    assert config.training.max_episode_steps == "adaptive:1000,0.5,1.5,20000"
    args = {"stepsize": 1, "beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3}
    config = load_config(written({**ES_JSON, "optimizer": {"type": "adam", "args": args}}))
    assert config.algorithm.optimizer == Adam(1.0, 0.5, 0.75, 1e-3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"return_proc_mode": "sign"}, 'return_proc_mode = "sign": signs of rewards are not supported; expected '
         '"centered_rank"'),
        ({"return_proc_mode": "centered_sign_rank"}, 'return_proc_mode = "centered_sign_rank": signs of rewards are '
         'not supported; expected "centered_rank"'),
        ({"return_proc_mode": 3}, 'return_proc_mode = 3: expected "centered_rank"'),
        ({"population_size": 4999}, "population_size = 4999: expected a multiple of 2"),
        ({"l2coeff": -0.5}, "l2coeff = -0.5: expected at least 0"),
        ({"mutation_power": 0}, "mutation_power = 0: expected more than 0"),
        ({"optimizer": "adam"}, 'optimizer = "adam": expected a table with type "adam", "sgd" or "clipup"'),
        ({"optimizer": {"type": "rmsprop", "args": {"stepsize": 1}}},
         'optimizer = {learning_rate = 1, type = "rmsprop"}: expected a table with type "adam", "sgd" or "clipup"'),
        ({"optimizer": {"type": "sgd", "args": {}}}, "optimizer.stepsize: missing, expected a value"),
        ({"optimizer": {"type": "adam", "args": {"momentum": 1}}}, "optimizer.momentum = 1: there is no such key"),
        ({"optimizer": {"type": "adam", "args": 1}}, "optimizer.args = 1: there is no such key"),
        ({"load_from": "ga/snapshot.pkl"}, 'load_from = "ga/snapshot.pkl": a genome of the 2018 code cannot be loaded: '
         "its seeds index that code's noise table, so its weights cannot be restored here; expected the folder of a "
         "neuroevo run"),
        ({"selection_threshold": 20}, "selection_threshold = 20: a key of the genetic algorithm in a file with "
         "keys of evolution strategies (return_proc_mode, l2coeff, optimizer); expected the keys of one algorithm"),
    ],
)  # fmt: skip
def test_single_problems_of_strategies(problems, changes, expected):
    assert problems({**ES_JSON, **changes}) == [expected]


def test_gymnasiums_environments(written):
    """SimpleClassifier has two hidden layers of 16 with ReLU, and the output's std of 0.1."""
    config = load_config(written(ES_GYM_JSON))
    assert config.env.name == "gymnasium:CartPole-v1"
    assert (config.network.name, config.network.hidden, config.network.activation) == ("mlp", (16, 16), "relu")
    assert config.algorithm == load_config("es_frostbite").algorithm
    genetic = load_config(written({**GA_JSON, "game": "gym.Acrobot-v1", "model": "SimpleClassifier"}))
    assert (genetic.env.name, genetic.algorithm) == ("gymnasium:Acrobot-v1", load_config("frostbite_ga").algorithm)


def test_an_environment_that_gymnasium_has_not(problems):
    values = {**ES_GYM_JSON, "model": "LinearClassifier"}
    assert problems({**values, "game": "gym."}) == [
        'model = "LinearClassifier": this network is not supported; expected one of Model, LargeModel, '
        "ModelVirtualBN, SimpleClassifier",
        'game = "gymnasium:": expected the id of an environment, such as gymnasium:CartPole-v1',
    ]
    (old,) = problems({**ES_GYM_JSON, "game": "gym.LunarLander-v2"})
    assert old.startswith('game = "gymnasium:LunarLander-v2": ') and "LunarLander-v3" in old


def test_files_for_clusters_have_one_message(written):
    path = written({"env_id": "FrostbiteNoFrameskip-v4", "optimizer": {}, "policy": {"type": "ESAtariPolicy"}})
    with pytest.raises(UserError) as caught:
        load_config(path)
    assert str(caught.value) == (
        f"{path} is a file of the 2018 code for clusters, whose keys are not translated; expected a file of the 2018 "
        "code for GPUs, with game and model"
    )


def test_every_problem_at_once_in_the_files_own_words(problems):
    values = {
        **{key: value for key, value in GA_JSON.items() if key != "population_size"},
        "poplation_size": 0,
        "model": "LargModel",
        "mutation_power": float("nan"),
        "episode_cutoff_mode": "adaptive:1,2",
        "timesteps": "many",
        "num_test_episodes": -1,
        "zzz": None,
    }
    assert problems(values) == [
        f"poplation_size = 0: there is no such key; did you mean population_size? (keys: {KEYS})",
        f"zzz = None: there is no such key (keys: {KEYS})",
        'model = "LargModel": expected one of Model, LargeModel, ModelVirtualBN, SimpleClassifier; did you mean '
        "LargeModel?",
        "population_size = 0: expected at least 1",
        "mutation_power = nan: expected a finite number",
        'episode_cutoff_mode = "adaptive:1,2": expected steps of at least 1, "env_default" or '
        '"adaptive:start,fraction,ratio,max"; found 2 of 4 numbers after the colon',
        "num_test_episodes = -1: expected at least 0",
        'timesteps = "many": expected a valid integer',
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"selection_threshold": 2000}, "selection_threshold = 2000: expected at most the population, 1000"),
        ({"selection_threshold": -1}, "selection_threshold = -1: expected at least 1"),
        ({"selection_threshold": False}, "selection_threshold = false: expected a valid integer"),
        ({"validation_threshold": 1}, "validation_threshold = 1: expected at least 2"),
        ({"mutation_power": {"type": "Linear"}}, "mutation_power = {type = \"Linear\"}: expected a number or a table "
         "with type ConstantSchedule, LinearSchedule or ExponentialSchedule"),
        ({"mutation_power": {"type": "LinearSchedule", "final_p": 1, "schedule": 1, "field": "iteration"}},
         "mutation_power.initial_p: missing, expected a value"),
        ({"model": 3}, "model = 3: expected a valid string"),
        ({"model": ["Model"]}, 'model = ["Model"]: expected a valid string'),
        ({"game": "maze"}, 'game = "maze": expected an Atari game, or gym. and the name of an environment; in a TOML '
         'file this is env.name = "HardMaze-v0" with env.options.protocol = "uber", which interprets the '
         "network outputs differently"),
    ],
)  # fmt: skip
def test_single_problems(problems, changes, expected):
    assert problems({**GA_JSON, **changes}) == [expected]


def test_what_is_missing_has_our_default_or_is_said(problems, written):
    rest = {key: value for key, value in GA_JSON.items() if key not in ("game", "timesteps", "population_size")}
    assert problems(rest) == [
        "game: missing, expected a value",
        "training: no budget: expected at least one of total_steps, generations and minutes",
    ]
    assert load_config(written({**rest, "game": "pong"}), ["training.minutes=1.0"]).algorithm.population == 1000


def test_a_wrong_override_is_said_in_our_words(problems):
    assert problems(GA_JSON, ["algorithm.population=0"]) == ["algorithm.population = 0: expected at least 1"]
    assert problems({**GA_JSON, "population_size": 0}, ["algorithm.parents=0"]) == [
        "population_size = 0: expected at least 1",
        "algorithm.parents = 0: expected at least 1",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"game": ', "not valid JSON: .* column 10"),
        ("", "not valid JSON: .* column 1"),
        ("[1, 2]", r"holds a list: .* \(game, model, population_si"),
        ("null", "holds null"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_files_that_hold_something_else(tmp_path, text, expected):
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"{path.name} .*{expected}"):
        load_config(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_2018_file_starts_a_run(written, tmp_path, name):
    values, max_episode_steps = CONFIGURATIONS[name], 5
    changes = [
        "algorithm.population=4",
        "hardware.threads=2",
        "training.generations=1",
        f"training.max_episode_steps={max_episode_steps}",
    ]
    changes += ["training.validation_episodes=1", "training.test_episodes=0"]
    validation_candidates = 2 if "validation_threshold" in values else 0
    changes += ["algorithm.validation_candidates=2"] if validation_candidates else []
    changes += ["algorithm.parents=2"] if values.get("selection_threshold") else []
    sets = [word for change in changes for word in ("--set", change)]
    result = CliRunner().invoke(app, ["train", str(written(values)), *sets, "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.stderr
    assert "finished after 1 generations" in result.stdout
    (row,) = read_rows(tmp_path / "run")  # no game and no pole ends within 5 steps
    assert (row["steps_population"], row["steps_validation"]) == (
        4 * max_episode_steps,
        validation_candidates * max_episode_steps,
    )
