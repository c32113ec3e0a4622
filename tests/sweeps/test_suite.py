"""What a suite's file says: which runs it is, and every mistake at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from neuroevo.config.load import load_config
from neuroevo.config.sources import presets
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.sweeps.runner import shares
from neuroevo.sweeps.suite import load_suite
from tests.support.suites import GA, RANDOM_SEARCH, write

EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "suites").glob("*.toml"))


def load(tmp_path, text, **options):
    return load_suite(write(tmp_path, text), **options)


def problems(tmp_path, text, **options):
    """The lines of the message about a suite's file."""
    with pytest.raises(UserError) as caught:
        load(tmp_path, text, **options)
    return str(caught.value).splitlines()


def test_runs_are_seeds_times_games_times_configurations(tmp_path):
    text = """
        configs = ["ga.toml", "rs.toml"]
        games = ["ALE/Frostbite-v5", "Kangaroo"]
        seeds = [7, 3]
        set = ["training.generations=4", "algorithm.population=5"]
        parallel = 3
    """
    suite = load(tmp_path, text, overrides=["algorithm.population=6"], out=tmp_path / "out")
    assert [run.name for run in suite.runs] == [
        f"{label}/{game}/seed-{seed}"
        for seed in (7, 3)
        for game in ("ALE-Frostbite-v5", "kangaroo")
        for label in ("ga", "rs")
    ]
    assert (suite.parallel, suite.out) == (3, tmp_path / "out")
    for run in suite.runs:
        assert run.folder == tmp_path / "out" / run.name
        name = {"ALE-Frostbite-v5": "ALE/Frostbite-v5", "kangaroo": "kangaroo"}[run.game]
        own = [f"env.name={name}", f"training.seed={run.seed}"]
        changes = ["training.generations=4", "algorithm.population=6", *own]
        assert run.config == load_config(tmp_path / f"{run.label}.toml", changes)


def test_a_game_under_two_names_is_two_games(tmp_path):
    """With sticky actions as Gymnasium registers it, and without as in 2018: it used to be the latter for both."""
    suite = load(tmp_path, 'configs = ["ga.toml"]\ngames = ["ALE/Frostbite-v5", "frostbite"]')
    sticky = [run.config.environment.settings()["repeat_action_probability"] for run in suite.runs]
    assert sticky == [0.25, 0.0]
    assert len({run.folder for run in suite.runs}) == 2
    own = load(tmp_path, 'configs = ["ga.toml"]', overrides=["env.name=ALE/Frostbite-v5"]).runs
    assert [run.game for run in own] == ["ALE-Frostbite-v5"]


def test_scales_are_of_games_that_are_played(tmp_path):
    text = (
        'configs = ["ga.toml"]\ngames = ["frostbite", "pong"]\nnormalize = {Frostbite = [65, 4335.0], pong = [-20, 15]}'
    )
    assert load(tmp_path, text).scales == {"frostbite": (65.0, 4335.0), "pong": (-20.0, 15.0)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{pong = [0, 1]}", "suite.normalize.pong: no run plays it, expected one of frostbite"),
        ("{frostbyte = [0, 1]}", "did you mean frostbite"),
        ("{frostbite = [1, 1]}", r"suite.normalize.frostbite = \[1.0, 1.0\]: expected two finite numbers that differ"),
        ("{frostbite = [1]}", "suite.normalize.frostbite"),
        ("{frostbite = [0, inf]}", "finite"),
        ("3", "suite.normalize = 3"),
    ],
)
def test_scales_that_are_none(tmp_path, given, expected):
    with pytest.raises(UserError, match=expected):
        load(tmp_path, f'configs = ["ga.toml"]\nnormalize = {given}')


def test_what_may_be_left_out(tmp_path):
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    (run,) = suite.runs
    assert (run.seed, run.game, suite.parallel) == (0, "frostbite", 1)
    assert suite.out == Path("runs/suite")
    assert load(tmp_path, 'configs = ["ga.toml"]\nout = "there"').out == Path("there")
    assert load(tmp_path, 'configs = ["ga.toml"]\nparallel = 2', parallel=5).parallel == 5
    (run,) = load(tmp_path, 'configs = ["ga.toml"]', overrides=["env.name=pong"]).runs
    assert (run.game, run.config.env.name) == ("pong", "pong")


@pytest.mark.parametrize(("given", "seeds"), [("3", [0, 1, 2]), ("2.0", [0, 1]), ("[5]", [5]), ("[9, 0]", [9, 0])])
def test_seeds(tmp_path, given, seeds):
    assert [run.seed for run in load(tmp_path, f'configs = ["ga.toml"]\nseeds = {given}').runs] == seeds


@pytest.mark.parametrize(
    "given", ["0", "-1", "2.5", "[]", "[1, 1]", "[-1]", "[2.0]", "true", '"3"', "10001", "1e19", f"[{2**63}]"]
)
def test_seeds_that_are_none(tmp_path, given):
    (_, line) = problems(tmp_path, f'configs = ["ga.toml"]\nseeds = {given}')
    assert line.startswith("  suite.seeds = ")
    assert line.endswith(": expected how many, 1 to 10000, or a list of different seeds in [0, 2**63)")


def test_configurations_are_files_beside_the_suite_other_files_and_presets(tmp_path, monkeypatch):
    name = next(iter(presets()))
    (run,) = load(tmp_path, f'configs = ["{name}"]').runs
    assert (run.label, run.config) == (name, load_config(name))
    (tmp_path / name).write_text(GA)  # called like the preset, without a suffix
    (run,) = load(tmp_path, f'configs = ["{name}"]').runs
    assert (run.label, run.config) == (name, load_config(tmp_path / "ga.toml"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.v2.toml").write_text(RANDOM_SEARCH)
    monkeypatch.chdir(elsewhere)  # the suite is not here
    (run,) = load(tmp_path, 'configs = ["other.v2.toml"]').runs
    assert (run.label, run.config.algorithm_name) == ("other.v2", "random_search")


def test_every_problem_is_listed_at_once(tmp_path):
    text = """
        configs = ["ga.toml", "frostbite_gaa", "rs.toml", "./rs.toml"]
        games = ["frostbyte", "pong", "Pong"]
        seeds = 2
        set = ["training.seed=4", "env.name=pong", "algorithm.validation_candidates=1"]
    """
    lines = problems(tmp_path, text)
    path = tmp_path / "suite.toml"
    assert lines[0] == f"8 problems in {path}:"
    expected = [
        "  set training.seed=4: suite.seeds says that",
        "  set env.name=pong: suite.games says that",
        "  environment 'frostbyte' is unknown; did you mean frostbite?",
        "  suite.games: there are 2 called pong",
        "  suite.configs: there are 2 called rs",
        f"  1 problem in {tmp_path / 'ga.toml'}:",
        "    algorithm.validation_candidates = 1: expected at least 2",
        "  there is no configuration file or preset frostbite_gaa; did you mean the preset frostbite_ga?",
        f"  1 problem in {tmp_path / 'rs.toml'}:",
        "    algorithm.validation_candidates = 1: expected at least 2",
    ]
    assert len(lines) == 1 + len(expected)
    for line, start in zip(lines[1:], expected, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "suite.configs: missing, expected a value"),
        ("configs = []", "suite.configs = []: "),
        ('configs = "ga.toml"', 'suite.configs = "ga.toml": '),
        ('configs = ["ga.toml"]\ngame = ["pong"]', 'suite.game = ["pong"]: there is no such key; did you mean games?'),
        ('configs = ["ga.toml"]\nparallel = 0', "suite.parallel = 0: expected "),
        ('configs = ["ga.toml"]\nset = ["training.epochs"]', "--set training.epochs: expected SECTION.KEY=VALUE"),
        ('configs = ["absent.toml"]', "there is no configuration file absent.toml"),
        ('configs = ["ga.toml"]\nset = ["network.name=modell"]', 'network.name = "modell": expected one of model,'),
        ('configs = ["ga.toml"]\n[sweet]', "sweet: there is no such section; expected [suite] alone"),
    ],
)
def test_mistakes(tmp_path, text, message):
    lines = problems(tmp_path, text)
    assert lines[0] == f"1 problem in {tmp_path / 'suite.toml'}:"
    assert any(line.strip().startswith(message) for line in lines[1:])


def test_files_that_are_no_suites(tmp_path):
    with pytest.raises(UserError, match=r"no suite file .*absent\.toml"):
        load_suite(tmp_path / "absent.toml")
    with pytest.raises(UserError, match="Is a directory"):
        load_suite(tmp_path)
    (tmp_path / "a.toml").write_text("configs = [")
    with pytest.raises(UserError, match="a.toml .* TOML"):
        load_suite(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text("suite = 3")
    with pytest.raises(ConfigError) as raised:
        load_suite(tmp_path / "b.toml")
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("suite", 3) and "[suite]" in problem.reason


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_suites(path):
    assert len(load_suite(path).runs) > 1


def test_suites_need_no_tensorflow():
    program = (
        "import sys; from neuroevo.cli import child, suite_progress\n"
        "from neuroevo.sweeps import report, runner, suite\n"
        "assert not {'tensorflow', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_hardware_threads_are_shared_out():
    assert shares(1, cores=8) == [None]
    assert shares(2, cores=8) == [4, 4]
    assert shares(3, cores=8) == [3, 3, 2]
    assert shares(4, cores=2) == [1, 1, 1, 1]
