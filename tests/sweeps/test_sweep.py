"""Sweep files: their trials, and all problems that are reported before the first trial starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from neuroevo.config.load import load_config
from neuroevo.config.sources import presets
from neuroevo.core.errors import UserError
from neuroevo.core.problems import NO_VALUE, ConfigError
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.settings import MAX_TRIALS
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import load_sweep
from neuroevo.system.processes import usable_cores
from tests.support.sweeps import GA, RANDOM_SEARCH, load, write

EXAMPLES = sorted((Path(__file__).parents[2] / "experiments" / "sweeps").glob("*.toml"))
ONE = 'configs = "ga.toml"\n'
TWO = "trials = 2\n"


def problems(folder, text, space=None, **options):
    """Return the problems of a sweep as (key, value)."""
    with pytest.raises(ConfigError) as raised:
        load(folder, text, space, **options)
    return [(problem.key, problem.value) for problem in raised.value.problems]


def lines(folder, text, space=None, **options):
    """Return the lines of the error message."""
    with pytest.raises(UserError) as raised:
        load(folder, text, space, **options)
    return str(raised.value).splitlines()


def test_a_grid_is_seeds_times_games_times_configurations(tmp_path):
    text = """
        configs = ["ga.toml", "rs.toml"]
        games = ["ALE/Frostbite-v5", "Kangaroo"]
        seeds = [7, 3]
        set = ["training.generations=4", "algorithm.population=5"]
        parallel = 3
    """
    sweep = load(tmp_path, text, overrides=["algorithm.population=6", "hardware.threads=1"])
    names = {"ALE-Frostbite-v5": "ALE/Frostbite-v5", "kangaroo": "kangaroo"}
    assert [trial.folder for trial in sweep.points] == [
        f"{label}/{game}/seed-{seed}" for seed in (7, 3) for game in names for label in ("ga", "rs")
    ]
    assert [trial.number for trial in sweep.points] == list(range(8)) and sweep.trials == 8
    assert (sweep.settings.parallel, sweep.out) == (3, tmp_path / "out")
    for trial in sweep.points:
        own = [f"env.name={names[trial.game]}", f"training.seed={trial.seed}", "hardware.threads=1"]
        changes = ["training.generations=4", "algorithm.population=6", *own]
        assert sweep.config(trial) == load_config(tmp_path / f"{trial.label}.toml", changes)
        assert trial.name == trial.folder and trial.status == "waiting"


def test_a_grid_of_values_has_every_combination_with_every_seed(tmp_path):
    space = '"algorithm.population" = [4, 6]\nnetwork.hidden = [[4], [4, 4]]'
    sweep = load(tmp_path, "seeds = 2", space)
    points = [(population, hidden) for population in (4, 6) for hidden in ([4], [4, 4])]
    assert [tuple(trial.values.values()) for trial in sweep.points] == points * 2
    game = sweep.base.environment.title
    assert [trial.folder for trial in sweep.points] == [
        f"pendulum/{game}/point-{place:05d}/seed-{seed}" for seed in (0, 1) for place in range(4)
    ]
    config = sweep.config(sweep.points[5])
    assert (config.algorithm.population, config.network.hidden, config.training.seed) == (4, (4, 4), 1)


@pytest.mark.parametrize("search", ["random", "tpe", "cmaes", "qmc", "pbt"])
def test_a_search_has_trials_with_seeds_of_their_own(tmp_path, search):
    text = f'trials = 100\nsearch = "{search}"'
    sweep, other = load(tmp_path, text), load(tmp_path, text + "\nseed = 1")
    assert sweep.metric == "validation_mean" and (sweep.points, sweep.trials) == ((), 100)
    trials = [sweep.trial(number, {"algorithm.sigma": 0.5}) for number in range(100)]
    assert len({trial.seed for trial in trials}) == 100 and all(0 <= trial.seed < 2**63 for trial in trials)
    assert other.trial(0, {}).seed not in {trial.seed for trial in trials}
    config = sweep.config(trials[3])
    assert (trials[3].folder, config.algorithm.sigma, config.training.seed) == ("trial-00003", 0.5, trials[3].seed)


def test_a_seed_that_the_sweep_itself_sets_is_that_of_all_trials(tmp_path):
    for text in ('trials = 2\nsearch = "random"\n', ""):
        sweep = load(tmp_path, text + 'set = ["training.seed=3"]')
        trials = sweep.points or [sweep.trial(number, {}) for number in range(2)]
        assert {trial.seed for trial in trials} == {3}
        assert sweep.config(trials[0]).training.seed == 3
    sweep = load(tmp_path, "", '"training.seed" = [3, 4]')
    assert [trial.seed for trial in sweep.points] == [3, 4]
    assert all(not trial.values for trial in sweep.points)


def test_hardware_threads_are_shared_out(tmp_path):
    def threads(text):
        sweep = load(tmp_path, text)
        return sweep.config(sweep.points[0]).hardware.threads

    assert threads(ONE + "seeds = 2\nparallel = 2") == max(usable_cores() // 2, 1)
    assert threads(ONE + "seeds = 2\nparallel = 1") is None
    assert threads(ONE + "parallel = 2") is None  # of one trial
    assert threads(ONE + 'seeds = 2\nparallel = 2\nset = ["hardware.threads=3"]') == 3


def test_a_game_under_two_names_is_two_games(tmp_path):
    """With sticky actions as registered by Gymnasium, and without as in 2018; formerly both were without."""
    sweep = load(tmp_path, ONE + 'games = ["ALE/Frostbite-v5", "frostbite"]')
    sticky = [config.environment.settings()["repeat_action_probability"] for config in sweep.configs.values()]
    assert sticky == [0.25, 0.0]
    assert len({trial.folder for trial in sweep.points}) == 2
    own = load(tmp_path, ONE, overrides=["env.name=ALE/Frostbite-v5"]).points
    assert [trial.game for trial in own] == ["ALE-Frostbite-v5"]


def test_scales_are_of_games_that_are_played(tmp_path):
    text = ONE + 'games = ["frostbite", "pong"]\nnormalize = {Frostbite = [65, 4335.0], pong = [-20, 15]}'
    assert load(tmp_path, text).scales == {"frostbite": (65.0, 4335.0), "pong": (-20.0, 15.0)}


def test_what_may_be_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, ONE)
    sweep = load_sweep(file)
    (trial,) = sweep.points
    assert (trial.seed, trial.game, trial.values, sweep.settings.parallel) == (0, "frostbite", {}, 1)
    assert sweep.out == tmp_path / "runs" / "sweep"
    assert load_sweep(write(tmp_path, ONE + 'out = "there"')).out == tmp_path / "there"
    assert load(tmp_path, ONE + "seeds = 6\nparallel = 2", parallel=5).settings.parallel == 5
    assert load(tmp_path, ONE, overrides=["env.name=pong"]).points[0].game == "pong"
    assert load(tmp_path, 'configs = "es_inverted_pendulum"').metric == "fitness_mean"


@pytest.mark.parametrize(("given", "seeds"), [("3", [0, 1, 2]), ("2.0", [0, 1]), ("[5]", [5]), ("[9, 0]", [9, 0])])
def test_seeds(tmp_path, given, seeds):
    assert [trial.seed for trial in load(tmp_path, f"{ONE}seeds = {given}").points] == seeds


@pytest.mark.parametrize(
    "given", ["0", "-1", "2.5", "[]", "[1, 1]", "[-1]", "[2.0]", "true", '"3"', "10001", "1e19", f"[{2**63}]"]
)
def test_invalid_seeds(tmp_path, given):
    (_, line) = lines(tmp_path, f"{ONE}seeds = {given}")
    assert line.startswith("  sweep.seeds = ")
    assert line.endswith(": expected their number, 1 to 10000, or a list of different seeds in [0, 2**63)")


def test_configurations_are_files_beside_the_sweep_other_files_and_presets(tmp_path, monkeypatch):
    def only(name):
        sweep = load(tmp_path, f'configs = ["{name}"]')
        (trial,) = sweep.points
        return trial.label, sweep.base

    name = next(iter(presets()))
    assert only(name) == (name, load_config(name))
    (tmp_path / name).write_text(GA)  # called like the preset, without a suffix
    assert only(name) == (name, load_config(tmp_path / "ga.toml"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.v2.toml").write_text(RANDOM_SEARCH)
    monkeypatch.chdir(elsewhere)  # the sweep is not here
    label, config = only("other.v2.toml")
    assert (label, config.algorithm_name) == ("other.v2", "random_search")


def test_every_problem_of_a_grid_is_listed_at_once(tmp_path):
    text = """
        configs = ["ga.toml", "frostbite_gaa", "rs.toml", "./rs.toml"]
        games = ["frostbyte", "pong", "Pong"]
        seeds = 2
        set = ["training.seed=4", "env.name=pong", "algorithm.validation_candidates=1"]
    """
    first, *found = lines(tmp_path, text, '"network.name" = {uniform = [0, 1]}\n"training.seed" = [1, 2]')
    assert first == f"11 problems in {tmp_path / 'sweep.toml'}:"
    expected = [
        "  set env.name: already set by sweep.games",
        "  set training.seed: already set by sweep.seeds",
        '  sweep.space.network.name: expected a list of values with search = "grid"',
        "  sweep.space.training.seed: already set by sweep.set or --set",
        "  sweep.space.training.seed: already set by sweep.seeds",
        "  environment 'frostbyte' is unknown; did you mean frostbite?",
        "  sweep.configs: 2 entries have the name rs, expected different names",
        "  sweep.games: 2 entries have the name pong, expected different names",
        f"  1 problem in {tmp_path / 'ga.toml'}:",
        "    algorithm.validation_candidates = 1: expected at least 2",
        "  there is no configuration file or preset frostbite_gaa; did you mean the preset frostbite_ga?",
        f"  1 problem in {tmp_path / 'rs.toml'}:",
        "    algorithm.validation_candidates = 1: expected at least 2",
    ]
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


def test_every_problem_of_a_search_is_listed_at_once(tmp_path):
    text = """
        configs = ["pendulum.toml"]
        metric = "x"
        search = "pbt"
        search_options = {quantile = 0.7}
        pruner = "asha"
        pruner_options = {grace = 1}
        seeds = 3
        set = ["cluster.address=auto"]
    """
    space = '"algorithm.sigma" = [-1]\n"network.name" = ["modle"]\n"network.hidden" = [[4], [8]]'
    found = {key for key, _ in problems(tmp_path, text, space)}
    names = ("trials", "seeds", "metric", "pruner", "pruner_options", "search_options.quantile", "space.network.hidden")
    assert found >= {*(f"sweep.{name}" for name in names), "algorithm.sigma", "network.name", "cluster.address"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("configs = []", "sweep.configs = []: "),
        (ONE + 'game = ["pong"]', 'sweep.game = ["pong"]: there is no such key; did you mean games?'),
        (ONE + "parallel = 0", "sweep.parallel = 0: expected "),
        (ONE + "normalize = 3", "sweep.normalize = 3"),
        (ONE + "normalize = {pong = [0, 1]}", "sweep.normalize.pong: no trial plays it, expected one of frostbite"),
        (ONE + "normalize = {frostbyte = [0, 1]}", "environment 'frostbyte' is unknown; did you mean frostbite?"),
        (ONE + "normalize = {frostbite = [1]}", "sweep.normalize.frostbite"),
        (
            ONE + "normalize = {frostbite = [1, 1]}",
            "sweep.normalize.frostbite = [1.0, 1.0]: expected two numbers that differ",
        ),
        (ONE + "normalize = {frostbite = [0, inf]}", "sweep.normalize.frostbite.1 = inf: expected a finite number"),
        (ONE + 'set = ["training.epochs"]', "--set training.epochs: expected SECTION.KEY=VALUE"),
        ('configs = ["absent.toml"]', "there is no configuration file absent.toml"),
        (ONE + 'set = ["network.name=modell"]', 'network.name = "modell": expected one of model,'),
        (ONE + "[sweet]", "sweet: unknown section, expected only [sweep]"),
        (ONE + 'search = "bayes"', 'sweep.search = "bayes": expected one of grid, random, tpe, cmaes, qmc, pbt'),
        (ONE + 'pruner = "ash"', 'sweep.pruner = "ash": expected one of none, asha, hyperband, median'),
        (ONE + 'cluster = "somewhere"', 'sweep.cluster = "somewhere"'),
        (ONE + "trials = 9", "sweep.trials = 9: a grid has one trial per combination"),
        (ONE + "search_options = {a = 1}", 'sweep.search_options = {a = 1}: search = "grid" has no options'),
        (ONE + "pruner_options = {a = 1}", 'sweep.pruner_options = {a = 1}: pruner = "none" has no options'),
        (TWO + 'search = "tpe"\nsearch_options = {n = 1}', "sweep.search_options = {n = 1}: TPESampler has no n, "),
        (TWO + 'search = "random"\nsearch_options = {n = 1}', "sweep.search_options = {n = 1}: RandomSampler has no n"),
        (TWO + 'search = "tpe"\nsearch_options = {seed = 1}', "sweep.search_options = {seed = 1}: TPESampler has no"),
        (TWO + 'search = "random"\npruner = "median"\npruner_options = {n_warmup_steps = -1}', "sweep.pruner_options"),
        (
            TWO + 'search = "pbt"\nsearch_options = {interval = 0}',
            "sweep.search_options.interval = 0: expected at least 1",
        ),
        (TWO + 'search = "pbt"\nsearch_options = {i = 1}', "sweep.search_options.i = 1: there is no such key"),
        (TWO + 'search = "pbt"\npruner = "asha"', 'sweep.pruner = "asha": not supported with pbt'),
        ('trials = 0\nsearch = "tpe"', "sweep.trials = 0: "),
        ('search = "tpe"', 'sweep.trials: missing, expected the number of trials with search = "tpe"'),
        (TWO + 'search = "tpe"\nseeds = 2', "sweep.seeds = [0, 1]: "),
        (TWO + 'search = "tpe"\nmetric = "validation_men"', 'sweep.metric = "validation_men": not a valid metric; did'),
        (TWO + 'search = "tpe"\nmetric = "test_mean"', 'sweep.metric = "test_mean": available only generations later'),
        (TWO + 'search = "tpe"\nmetric = "fitness"', 'sweep.metric = "fitness": not a valid metric'),
        (TWO + 'search = "tpe"\nset = ["cluster.address=auto"]', 'cluster.address = "auto": '),
        (
            'configs = "es_inverted_pendulum"\nmetric = "validation_mean"\npruner = "median"',
            'sweep.metric = "validation_mean": es plays no validation episodes',
        ),
    ],
)
def test_problems(tmp_path, text, message):
    first, *found = lines(tmp_path, text)
    assert first == f"1 problem in {tmp_path / 'sweep.toml'}:"
    assert any(line.strip().startswith(message) for line in found)


def test_problems_of_what_a_search_searches(tmp_path):
    search = TWO + 'search = "tpe"\n'
    assert "sweep.space" in dict(problems(tmp_path, search, ""))
    assert ("sweep.configs", ["ga.toml", "rs.toml"]) in problems(
        tmp_path, f'configs = ["ga.toml", "rs.toml"]\n{search}'
    )
    games = f'{ONE}games = ["frostbite", "pong"]\n'
    assert problems(tmp_path, games + search) == [("sweep.games", ["frostbite", "pong"])]
    both = search + 'set = ["algorithm.sigma=1"]'
    assert ("sweep.space.algorithm.sigma", NO_VALUE) in problems(tmp_path, both)
    file = write(tmp_path, f'configs = "minutes.toml"\n{TWO}search = "pbt"')
    (tmp_path / "minutes.toml").write_text(GA.replace("generations = 3", "minutes = 1.0"))
    with pytest.raises(ConfigError, match='training.generations: missing, expected a number with search = "pbt"'):
        load_sweep(file)


@pytest.mark.parametrize(
    ("space", "key", "value"),
    [
        ('"algorithm.sgima" = [0.1]', "algorithm.sgima", 0.1),
        ('"algoritm.sigma" = [0.1]', "algoritm", NO_VALUE),
        ('"sigma" = [0.1]', "sweep.space.sigma", [0.1]),
        ('"algorithm.sigma" = {uniform = [-1, 1]}', "algorithm.sigma", -1.0),
        ('"algorithm.sigma" = 0.1', "sweep.space.algorithm.sigma", 0.1),
        ('"network.hidden" = [[4], "large"]', "network.hidden", "large"),
        ('"env.name" = ["frostbite", "pong"]', "sweep.space.env.name", NO_VALUE),
    ],
)
def test_problems_of_the_space(tmp_path, space, key, value):
    assert (key, value) in problems(tmp_path, TWO + 'search = "random"', space)


@pytest.mark.parametrize(
    ("config", "key", "values"),
    [
        ("pendulum", "network.hidden", "[[4], [8]]"),
        ("frostbite", "env.options.frame_skip", "[4, 2]"),
        ("pendulum", "training.seed", "[1, 2]"),
    ],
)
def test_what_pbt_cannot_change(tmp_path, config, key, values):
    text = f'configs = "{config}.toml"\n{TWO}search = "pbt"'
    assert f"sweep.space.{key}" in dict(problems(tmp_path, text, f'"{key}" = {values}'))


def test_a_grid_names_every_point_that_is_refused(tmp_path):
    space = '"algorithm.parents" = [2, 6]\n"algorithm.population" = [4, 8]'
    assert problems(tmp_path, ONE, space) == [("algorithm.parents", 6)]


def test_there_are_not_too_many_trials(tmp_path):
    space = f'"training.validation_episodes" = {list(range(1, 101))}\n"algorithm.population" = {list(range(2, 103))}'
    (_, line) = lines(tmp_path, ONE, space)
    axes = "configs, games, implementations, seeds and space"
    assert line == f"  sweep: {axes} make 10,100 trials, expected at most {MAX_TRIALS:,}"
    assert problems(tmp_path, f'trials = {MAX_TRIALS + 1}\nsearch = "tpe"') == [("sweep.trials", MAX_TRIALS + 1)]


def test_files_that_are_no_sweeps(tmp_path):
    with pytest.raises(UserError, match=r"no sweep file .*absent\.toml"):
        load_sweep(tmp_path / "absent.toml")
    with pytest.raises(UserError, match="Is a directory"):
        load_sweep(tmp_path)
    (tmp_path / "a.toml").write_text("configs = [")
    with pytest.raises(UserError, match="a.toml .* TOML"):
        load_sweep(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_text("sweep = 3")
    with pytest.raises(ConfigError) as raised:
        load_sweep(tmp_path / "b.toml")
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("sweep", 3) and "[sweep]" in problem.reason
    (tmp_path / "c.toml").write_text("")
    with pytest.raises(ConfigError, match="sweep.configs: missing, expected a value"):
        load_sweep(tmp_path / "c.toml")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_can_be_begun(path, tmp_path):
    assert load_sweep(path, out=tmp_path).trials > 1


def test_a_folder_is_of_one_sweep(tmp_path):
    def begin(text):
        sweep = load(tmp_path, text)
        sweep.out.mkdir(exist_ok=True)
        study = Study(sweep.out, new=True)
        study.begin(sweep, lambda trial: True)
        while len(study.trials()) < sweep.trials:
            study.ask(sweep)
        return len(Study(sweep.out).trials())

    search = 'search = "random"\n'
    assert [begin(search + each) for each in ("trials = 3", "trials = 3\nparallel = 2", "trials = 4")] == [3, 3, 4]
    changed = search + 'trials = 4\nset = ["{}=6"]'
    for text, key in (
        (f"{search}trials = 4\nseed = 1", "seed"),
        (changed.format("algorithm.population"), "configs"),
        (changed.format("training.generations"), "budgets"),
        ('trials = 4\nsearch = "pbt"', "search"),
    ):
        with pytest.raises(ConfigError) as raised:
            begin(text)
        assert f"sweep.{key}" in [problem.key for problem in raised.value.problems]


def test_without_optuna_one_line_names_the_extra(tmp_path, monkeypatch):
    grid = load(tmp_path, ONE)
    monkeypatch.setitem(sys.modules, "optuna", None)
    for call in (lambda: run_sweep(grid), lambda: load(tmp_path, TWO + 'search = "tpe"')):
        with pytest.raises(UserError, match="optuna is not installed") as raised:
            call()
        assert "neuroevo[sweep]" in str(raised.value) and "\n" not in str(raised.value)
    assert not grid.out.exists()


def test_reading_and_running_sweeps_imports_no_large_library():
    program = (
        "import sys; from neuroevo.cli import child, sweep_progress\n"
        "from neuroevo.sweeps import driver, report, status, sweep\n"
        "assert not {'tensorflow', 'matplotlib', 'optuna', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
