"""A user's mistakes, through the real command: exit code 2, one message with the value and what was expected."""

import json

import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.cli import app
from neuroevo.native import library

TABLES = '[env]\nname = "frostbite"\n[network]\nname = "model"\n[training]\ngenerations = 1\n'


@pytest.fixture
def message(tmp_path, monkeypatch):
    """Runs `train` and `config check`, which must say the same, and returns that without the prefix."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.toml").write_text(TABLES)

    def of(*arguments, train_only=False):
        said = []
        for command in ["train"], *([] if train_only else [["config", "check"]]):
            result = CliRunner().invoke(app, [*command, *map(str, arguments)])
            assert result.exit_code == 2, result.output
            assert result.stdout == ""
            assert "Traceback" not in result.stderr
            prefix, _, text = result.stderr.partition(": ")
            assert prefix == "neuroevo" and text.endswith("\n")
            said.append(text.removesuffix("\n"))
        assert len(set(said)) == 1
        assert not (tmp_path / "runs").exists()
        return said[0]

    return of


STEPS = 'expected steps of at least 1, "env_default" or "adaptive:start,fraction,ratio,max"'

AT_MOST = "expected at most 2147483647"
IN_32_BITS = "expected a number that is positive and finite in 32 bits"
SCHEDULE = "algorithm.sigma={{type='{}Schedule', initial_p={}, final_p={}, schedule=9}}"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("network.name=larg_model",
         'network.name = "larg_model": expected one of model, large_model, nature_dqn, virtual_bn, mlp; '
         "did you mean large_model?"),
        ("algorithm.name=random_serch",
         f'algorithm.name = "random_serch": expected one of {", ".join(ALGORITHMS)}, or module:class of your own; '
         "did you mean random_search?"),
        ("algorithm.poplation=70", "algorithm.poplation = 70: there is no such key; did you mean population? "
         '(keys of [algorithm] with name = "ga": name, population, parents, sigma, validation_candidates)'),
        ("algorithm.poplation_size=70",
         "algorithm.poplation_size = 70: there is no such key; did you mean algorithm.population, the 2018 code's "
         'population_size? (keys of [algorithm] with name = "ga": name, population, parents, sigma, '
         "validation_candidates)"),
        ("trainin.sed=7", "trainin: there is no such section; did you mean training? "
         "(sections: env, network, algorithm, training, hardware, checkpoints)"),
        ("algorithm.population=0", "algorithm.population = 0: expected at least 1"),
        ("algorithm.population=many", 'algorithm.population = "many": expected a valid integer'),
        ("algorithm.population=7.5", "algorithm.population = 7.5: expected a valid integer"),
        ("algorithm.population=19", "algorithm.parents = 20: expected at most the population, 19"),
        ("algorithm.sigma=nan", "algorithm.sigma = nan: expected a finite number"),
        ("algorithm.sigma=inf", "algorithm.sigma = inf: expected a finite number"),
        ("algorithm.sigma=-1", "algorithm.sigma = -1: expected more than 0"),
        ("algorithm.validation_candidates=1", "algorithm.validation_candidates = 1: expected at least 2"),
        ("training.max_episode_steps=-5", f"training.max_episode_steps = -5: {STEPS}"),
        ("training.max_episode_steps=0", f"training.max_episode_steps = 0: {STEPS}"),
        ("training.max_episode_steps=adaptive:1,2",
         f'training.max_episode_steps = "adaptive:1,2": {STEPS}; there are 2 of 4 numbers after the colon'),
        ("training.max_episode_steps=2147483648",
         f"training.max_episode_steps = 2147483648: {STEPS}; steps are at most 2147483647"),
        ("training.max_episode_steps=1e19",
         f"training.max_episode_steps = 1e+19: {STEPS}; steps are at most 2147483647"),
        ("training.max_episode_steps=adaptive:1,0.5,2,1e19",
         f'training.max_episode_steps = "adaptive:1,0.5,2,1e19": {STEPS}; max is 1e19, more than 2147483647'),
        ("training.max_episode_steps=adaptive:1e19,0.5,2,5e19",
         f'training.max_episode_steps = "adaptive:1e19,0.5,2,5e19": {STEPS}; max is 5e19, more than 2147483647'),
        ("training.test_episodes=1e19", f"training.test_episodes = 1e+19: {AT_MOST}"),
        ("training.validation_episodes=2147483648", f"training.validation_episodes = 2147483648: {AT_MOST}"),
        ("training.episodes=1e19", f"training.episodes = 1e+19: {AT_MOST}"),
        ("training.generations=1e19", f"training.generations = 1e+19: {AT_MOST}"),
        ("training.total_steps=1e19", "training.total_steps = 1e+19: expected at most 9223372036854775807"),
        ("algorithm.population=1e19", f"algorithm.population = 1e+19: {AT_MOST}"),
        ("algorithm.parents=1e19", f"algorithm.parents = 1e+19: {AT_MOST}"),
        ("algorithm.validation_candidates=1e19", f"algorithm.validation_candidates = 1e+19: {AT_MOST}"),
        ("algorithm.sigma=1e300", f"algorithm.sigma = 1e+300: {IN_32_BITS}"),
        ("algorithm.sigma=1e-60", f"algorithm.sigma = 1e-60: {IN_32_BITS}"),
        (SCHEDULE.format("Linear", 1e39, 1.0), f"algorithm.sigma.initial_p = 1e+39: {IN_32_BITS}"),
        (SCHEDULE.format("Exponential", 1.0, 1e-46), f"algorithm.sigma.final_p = 1e-46: {IN_32_BITS}"),
        ("algorithm.sigma={type='ConstantSchedule', value=1e39}", f"algorithm.sigma.value = 1e+39: {IN_32_BITS}"),
        ("training.seed=-1", "training.seed = -1: expected at least 0"),
        (f"training.seed={2**63}", f"training.seed = {2**63}: expected less than {2**63}"),
        ("training.total_steps=0", "training.total_steps = 0: expected at least 1"),
        ("training.episodes=0", "training.episodes = 0: expected at least 1"),
        ("training.minutes=-1", "training.minutes = -1: expected more than 0"),
        ("hardware.device=tpu", 'hardware.device = "tpu": expected one of auto, cpu, gpu; did you mean gpu?'),
        ("hardware.threads=0", "hardware.threads = 0: expected at least 1"),
        ("hardware.threads=4097", "hardware.threads = 4097: expected at most 4096"),
        ("hardware.threads=4294967297", "hardware.threads = 4294967297: expected at most 4096"),
        ("hardware.lanes=4097", "hardware.lanes = 4097: expected at most 4096"),
        ("hardware.slots=65537", "hardware.slots = 65537: expected at most 65536"),
        ("checkpoints.keep_every=1e19", f"checkpoints.keep_every = 1e+19: {AT_MOST}"),
        ("checkpoints.keep_last=0", "checkpoints.keep_last = 0: expected at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value(message, change, problem):
    assert message("some.toml", "--set", change) == f"1 problem in some.toml:\n  {problem}"


@pytest.mark.parametrize(
    ("change", "beginning", "end"),
    [
        ("env.name=frostbit", 'env.name = "frostbit": ', "did you mean frostbite?"),
        ("env.name=joust", 'env.name = "joust": ', ""),
        ("env.name=CartPole-v1", 'env.name = "CartPole-v1": ', "did you mean gymnasium:CartPole-v1?"),
        ("env.name=Pendulum-v1", 'env.name = "Pendulum-v1": ', "did you mean gymnasium:Pendulum-v1?"),
        ("env.options.repeat_action_probability=1.5", "env.options.repeat_action_probability = 1.5: ", ""),
        ("env.options.protocol=gymnasum", 'env.options.protocol = "gymnasum": ', "expected 'uber' or 'gymnasium'"),
        ("env.options.noop_mx=3", "env.options.noop_mx = 3: ", "did you mean noop_max?"),
    ],
)
def test_a_wrong_environment(message, change, beginning, end):
    heading, problem = message("some.toml", "--set", change).splitlines()
    assert heading == "1 problem in some.toml:"
    assert problem.startswith(f"  {beginning}") and end in problem


def test_a_missing_rom(message, tmp_path, monkeypatch):
    (tmp_path / "roms").mkdir()
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "roms"))
    heading, problem = message("some.toml").splitlines()
    assert heading == "1 problem in some.toml:"
    assert problem.startswith('  env.name = "frostbite": ')
    assert f"there is no {tmp_path / 'roms' / 'frostbite.bin'} (reinstall ale-py or set ALE_ROMS_DIR)" in problem
    (tmp_path / "roms" / "frostbite.bin").write_bytes(b"damaged")
    assert "The hash of frostbite.bin does not match" in message("some.toml").splitlines()[1]
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path / "absent"))
    assert "absent doesn't exist (reinstall ale-py" in message("some.toml").splitlines()[1]


def test_no_budget(message, tmp_path):
    (tmp_path / "some.toml").write_text('[env]\nname = "frostbite"\n')
    assert message("some.toml") == (
        "1 problem in some.toml:\n  training: no budget: expected at least one of total_steps, generations and minutes"
    )


@pytest.mark.skipif(library.gpu().usable, reason=f"it can be used: {library.gpu().name}")
def test_a_gpu_that_cannot_be_used(message):
    said = message("some.toml", "--set", "hardware.device=gpu", train_only=True)
    assert said.startswith("device 'gpu' cannot be used: ") and said.endswith("; expected cpu or auto")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.toml", None, "there is no configuration file absent.toml"),
        ("frostbite_gaa", None, "there is no configuration file or preset frostbite_gaa; did you mean the preset "
         "frostbite_ga? (presets: "),
        ("wrong.toml", b"[env]\nname = \n", "wrong.toml is not valid TOML: Invalid value (at line 2, column 8)"),
        ("binary.toml", b"\x89PNG\r\n\xff\xfe", "cannot read binary.toml: 'utf-8' codec can't decode byte 0x89"),
        ("zeros.toml", b"\0\0", "zeros.toml is not valid TOML: "),
        ("empty.toml", b"", "2 problems in empty.toml:\n  env.name: missing, expected a value\n  training: no budg"),
        ("flat.toml", b"sigma = 1\n", "3 problems in flat.toml:\n  sigma = 1: there is no such section; did you mean "
         "algorithm.sigma? (sections: "),
        ("table.toml", b"env = 3\n", "2 problems in table.toml:\n  env = 3: expected a section [env]\n  training: no "),
        (".", None, ". is a folder, expected a TOML file, a preset's name, or a JSON file of the 2018 code"),
        ("wrong.json", b'{"game": "frostbite",}', "wrong.json is not valid JSON: "),
        ("list.json", b"[1]", "list.json holds a list: expected an object with the 2018 code's keys (game, "),
        ("empty.json", b"{}", "2 problems in empty.json:\n  game: missing, expected a value\n  training: no budget: "),
        ("binary.json", b"\xff\xfe", "cannot read binary.json: 'utf-8' codec can't decode"),
    ],
)  # fmt: skip
def test_files(message, tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert message(name).startswith(said)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.seed", "--set training.seed: expected SECTION.KEY=VALUE, such as training.seed=3"),
        ("seed=3", "--set seed=3: expected SECTION.KEY=VALUE, such as training.seed=3"),
        ("training.seed=", "--set training.seed=: the value is not valid TOML: "),
        ("training.seed.x=1", "1 problem in some.toml:\n  training.seed = {x = 1}: expected a valid integer"),
        ("env.name.x=1", '--set env.name.x=1: env.name is "frostbite", not a table'),
    ],
)
def test_overrides(message, override, said):
    assert message("some.toml", "--set", override).startswith(said)


def test_a_2018_file(message, tmp_path):
    values = {"game": "frostbit", "timesteps": 1e6, "population_size": 0, "mutation_powr": -1}
    (tmp_path / "some.json").write_text(json.dumps(values))
    heading, *problems = message("some.json").splitlines()
    assert heading == "4 problems in some.json:"
    assert problems[0].startswith("  mutation_powr = -1: there is no such key; did you mean mutation_power? (keys: ")
    assert problems[1:3] == [
        "  population_size = 0: expected at least 1",
        "  mutation_power = -1: expected more than 0",
    ]
    assert problems[3].startswith('  game = "frostbit": ') and "did you mean frostbite?" in problems[3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["config"], "Usage: "),
        (["config", "chek"], "No such command 'chek'"),
        (["config", "check"], "Missing argument 'FILE'"),
        (["config", "show", "--sett", "x"], "No such option: --sett"),
        (["train", "smoke", "--out", ""], "Invalid value for '--out': it is empty, expected the path of a folder"),
        (["train", "smoke", "--resume="], "Invalid value for '--resume': it is empty, expected the path of a folder"),
        (["suite", "suite.toml", "--out="], "Invalid value for '--out': it is empty, expected the path of a folder"),
        (["evaluate", ".", "--max-episode-steps", "9999999999999999999"], "Invalid value for '--max-episode-steps'"),
        (["evaluate", ".", "--episodes", "2147483648"], "Invalid value for '--episodes'"),
        (["evaluate", ".", "--threads", "4294967297"], "Invalid value for '--threads'"),
        (
            ["render", ".", "--out", "x.mp4", "--max-episode-steps", "2147483648"],
            "Invalid value for '--max-episode-steps'",
        ),
        (["render", ".", "--out", "x.mp4", "--episodes", "2147483648"], "Invalid value for '--episodes'"),
        (["bench", "env", "--threads", "4294967297"], "Invalid value for '--threads'"),
        (["bench", "rollout", "--threads", "4294967297"], "Invalid value for '--threads'"),
    ],
)
def test_wrong_command_lines(arguments, said):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in result.output and "Traceback" not in result.output


def test_a_mode_that_the_game_lacks(message):
    said = message("some.toml", "--set", "env.options.mode=7", train_only=True)
    expected = "frostbite cannot be made: atari option mode is 7, which frostbite does not have; expected one of: 0, 2"
    assert said == expected
    checked = CliRunner().invoke(app, ["config", "check", "some.toml", "--set", "env.options.mode=7"])
    assert (checked.exit_code, checked.stderr) == (2, f"neuroevo: 1 problem in some.toml:\n  {expected}\n")
