"""User-defined algorithms: the example experiments/examples/cma_es.py, and lookup by name in a configuration."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import cmaes
import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.examples.cma_es import CMAES, SAMPLES, CMAESState
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.registry import ALGORITHMS, find_algorithm
from neuroevo.cli import app
from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Training
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.state_codec import decode, encode
from neuroevo.runs.reader import RunReader
from neuroevo.sessions import evaluators
from neuroevo.system.reading import tomllib
from neuroevo.training.loop import train
from tests.support import runs
from tests.support.runs import read_rows
from tests.support.toy import TARGET, ToyEvaluator, ToyWeights, theta

ROOT = Path(__file__).parents[2]
NAME = "experiments.examples.cma_es:CMAES"
TABLE = {"name": NAME, "population": 8}
WEIGHTS = ToyWeights()
EXPECTED = f"expected one of {', '.join(ALGORITHMS)}, evosax:NAME, or module:class of your own"


def fitness_of(genomes):
    """Return the negated squared distances from the optimum, float64 [N]."""
    return np.array([-np.sum((theta(genome) - TARGET) ** 2) for genome in genomes])


def played(genomes):
    return EvaluatedPopulation(genomes, fitness_of(genomes))


def after(algorithm, state, generations):
    for _ in range(generations):
        state = algorithm.tell(state, played(algorithm.ask(state, WEIGHTS)), WEIGHTS)
    return state


# The example


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_comes_near_the_optimum(seed):
    training = Training(seed=seed, generations=25, test_episodes=20)
    records = [record for _, records in train(CMAES(), ToyEvaluator(), training) for record in records]
    start = np.linalg.norm(theta(CMAES().init(seed).start) - TARGET)
    first, last = (np.linalg.norm(theta(records[i].elite) - TARGET) for i in (0, -1))
    assert last < 0.3 < first < start + 0.5  # start: 3.5 to 3.9
    assert records[-1].test.mean > records[0].test.mean + 2
    assert records[-1].validation_mean is None
    assert 0 < records[-1].extra_metrics["spread"] < records[0].extra_metrics["spread"] < 0.7  # sigma is 0.5 at first


def test_is_the_library_driven_directly():
    algorithm, seed = CMAES(population=12, sigma=0.25), 7
    state = algorithm.init(seed)
    base = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)[0]
    optimizer = cmaes.CMA(theta(Genome(base)).astype(np.float32).astype(np.float64), 0.25, population_size=12)
    for generation in range(30):
        optimizer.reseed_rng(draw_seeds(1, seed, generation, SAMPLES)[0] % 2**32)
        vectors = [optimizer.ask().astype(np.float32) for _ in range(12)]
        genomes = algorithm.ask(state, WEIGHTS)
        assert [genome.root.vector.tolist() for genome in genomes] == [vector.tolist() for vector in vectors]
        assert {(genome.mutations, genome.network) for genome in genomes} == {((), 0)}
        losses = [float(np.sum((vector.astype(np.float64) - TARGET) ** 2)) for vector in vectors]
        optimizer.tell([(v.astype(np.float64), loss) for v, loss in zip(vectors, losses, strict=True)])
        state = algorithm.tell(state, played(genomes), WEIGHTS)
        assert algorithm.elite(state) == Genome(Center(optimizer.mean))
    assert optimizer.generation == 30
    assert np.linalg.norm(optimizer.mean - TARGET) < 0.2


def test_asking_and_telling_leave_a_state_as_it_was():
    algorithm = CMAES(population=6)
    state = after(algorithm, algorithm.init(3), 4)
    asked = algorithm.ask(state, WEIGHTS)
    assert len(set(asked)) == 6
    told = algorithm.tell(state, played(asked), WEIGHTS)
    assert algorithm.ask(state, WEIGHTS) == asked
    assert algorithm.elite(algorithm.tell(state, played(asked), WEIGHTS)) == algorithm.elite(told)
    assert algorithm.ask(told, WEIGHTS) != asked
    assert algorithm.ask(algorithm.init(3), WEIGHTS) != algorithm.ask(algorithm.init(4), WEIGHTS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.seed = 0


def test_a_state_that_was_stored_goes_on_the_same():
    algorithm = CMAES(population=6)
    for generations in range(4):
        state = after(algorithm, algorithm.init(3), generations)
        (stored,) = decode(encode(state), CMAESState)
        here, there = after(algorithm, state, 2), after(algorithm, stored, 2)
        assert algorithm.ask(here, WEIGHTS) == algorithm.ask(there, WEIGHTS)
        assert algorithm.best(here) == algorithm.best(there) == [algorithm.elite(there)]


def test_starts_from_another_runs_best():
    algorithm = CMAES(population=10, sigma=1e-3)
    genome = Genome(5).child(6, 0.5)
    vectors = np.stack([each.root.vector for each in algorithm.ask(algorithm.init(0, [genome, Genome(1)]), WEIGHTS)])
    np.testing.assert_allclose(vectors, np.tile(theta(genome), (10, 1)), atol=6e-3)
    assert 5e-4 < vectors.std(axis=0).mean() < 2e-3


def test_what_it_refuses():
    algorithm = CMAES(population=5)
    state = algorithm.init(0)
    with pytest.raises(ValueError, match="no elite"):
        algorithm.elite(state)
    genomes = algorithm.ask(state, WEIGHTS)
    with pytest.raises(ValueError, match="genome 3 is nan"):
        algorithm.tell(state, EvaluatedPopulation(genomes, np.array([1, 2, 3, np.nan, 5])), WEIGHTS)
    with pytest.raises(ValueError, match=r"\(4,\), expected \(5,\)"):
        algorithm.tell(state, EvaluatedPopulation(genomes, np.zeros(4)), WEIGHTS)


def test_going_on_from_any_checkpoint_equals_not_stopping(tmp_path):
    runs.new_run(tmp_path / "whole", algorithm=TABLE)
    whole = runs.results(tmp_path / "whole")
    assert len(whole["rows"]) == 5
    for call in range(1, 10):  # a population and an elite's test are a call each
        path = tmp_path / str(call)
        with pytest.raises(KeyboardInterrupt):
            runs.new_run(path, ToyEvaluator(interrupt_at=call), algorithm=TABLE)
        runs.play(runs.RunFolder.resume(path))
        assert runs.results(path) == whole


# Its name in a configuration


def test_the_file_of_the_example():
    config = load_config(ROOT / "experiments" / "examples" / "cma_es.toml")
    assert (config.algorithm, config.algorithm_name) == (CMAES(population=32, sigma=0.3), NAME)
    assert make_config(tomllib.loads(config.toml())) == config


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_commands_take_it(monkeypatch, tmp_path):
    monkeypatch.setattr(evaluators, "make_evaluator", lambda config, reference_batch=None: ToyEvaluator())
    file, out = tmp_path / "own.toml", tmp_path / "run"
    file.write_text(runs.config(algorithm=TABLE).toml())
    result = invoke("config", "check", file)
    assert result.stdout == f"{file} is fine: {NAME} on frostbite with model, population 8, ends after 5 generations\n"
    shown = invoke("config", "show", "--set", f"algorithm.name={NAME}").stdout
    assert "# Standard deviation of each weight in generation 0, around random initial weights.\nsigma = 0.5\n" in shown
    assert make_config(tomllib.loads(shown)).algorithm == CMAES()

    result = invoke("train", file, "--out", out, "--set", "training.generations=2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{NAME} on frostbite, model (8 weights")
    result = invoke("train", "--resume", out, "--set", "training.generations=4")
    assert result.exit_code == 0, result.stderr
    assert len(read_rows(out)) == 4
    result = invoke("evaluate", out, "--episodes", 3)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("elite of generation 3: ")
    generation, elite = RunReader(out).elite()
    assert generation == 3 and elite.genome.root.has_weights

    result = invoke("train", file, "--out", tmp_path / "next", "--set", f"training.start_from={out}")
    assert result.exit_code == 0, result.stderr
    assert RunReader(tmp_path / "next").state().algorithm.start == elite.genome


def test_a_module_in_the_current_folder_is_found(tmp_path):
    """The installed command's own folder comes first on the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "command.py").write_text("from neuroevo.cli import main\nmain()\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "half.py").write_text(
        "from neuroevo.algorithms.ga import GA\nfrom neuroevo.core.settings import Count, settings\n\n"
        "@settings\nclass HalfGA(GA):\n    population: Count = 50\n"
    )
    command = [sys.executable, "../bin/command.py", "config", "check", "smoke", "--set", "algorithm.name=half:HalfGA"]
    done = subprocess.run(command, cwd=tmp_path / "mine", capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("smoke is fine: half:HalfGA on ")


def test_one_that_documents_nothing_and_uses_numpys_numbers(tmp_path, monkeypatch):
    """Train, store and resume a minimal user-defined algorithm with the real evaluator."""
    (tmp_path / "own_least.py").write_text(LEAST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    try:
        shown = invoke("config", "show", "--set", "algorithm.name=own_least:Least")
        assert shown.exit_code == 0, shown.stderr
        assert "\npopulation = 3\n" in shown.stdout
        (tmp_path / "own.toml").write_text(
            '[env]\nname = "InvertedPendulum-v5"\n[network]\nname = "mlp"\nhidden = [3]\n'
            '[algorithm]\nname = "own_least:Least"\n[training]\ngenerations = 2\ntest_episodes = 1\n'
        )
        result = invoke("train", "own.toml", "--out", "run")
        assert result.exit_code == 0, result.stderr
        result = invoke("train", "--resume", "run", "--set=training.generations=3")
        assert result.exit_code == 0, result.stderr
        assert [row["highest"] for row in read_rows(tmp_path / "run")] == [0.5, 1.5, 2.5]
    finally:
        sys.modules.pop("own_least", None)


def test_a_metric_with_the_name_of_a_column_costs_no_finished_generation(tmp_path, monkeypatch):
    """The generation that first has the metric fails; with another name the run continues."""
    monkeypatch.setattr(evaluators, "make_evaluator", lambda config, reference_batch=None: ToyEvaluator())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    number = '{"highest": np.float32(before.generation + 0.5)}'
    assert number in LEAST
    try:
        table = {"name": "own_least:Least"}
        (tmp_path / "own_least.py").write_text(LEAST)
        (tmp_path / "own.toml").write_text(runs.config(algorithm=table).toml())
        assert invoke("train", "own.toml", "--out", "whole").exit_code == 0
        broken = LEAST.replace(number, f'{number} if before.generation < 2 else {{"generation": 7.0}}')
        (tmp_path / "own_least.py").write_text(broken)
        sys.modules.pop("own_least")
        result = invoke("train", "own.toml", "--out", "run")
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1] == (
            "neuroevo: metrics() of Least has 'generation', which is a column of every run's results; expected "
            "another name"
        )
        assert [row["generation"] for row in read_rows(tmp_path / "run")] == [0, 1]
        (tmp_path / "own_least.py").write_text(LEAST)
        sys.modules.pop("own_least")
        assert invoke("train", "--resume", "run").exit_code == 0
        assert runs.results(tmp_path / "run") == runs.results(tmp_path / "whole")
    finally:
        sys.modules.pop("own_least", None)


LEAST = """
from dataclasses import dataclass, replace
import numpy as np
from neuroevo.algorithms.base import Algorithm, State
from neuroevo.core.genome import Genome
from neuroevo.core.settings import settings

@dataclass(frozen=True)
class LeastState(State):
    elite: Genome

@settings
class Least(Algorithm):
    population: int = 3
    state_type = LeastState

    def init(self, seed, genomes=()):
        return LeastState(seed, Genome(np.random.default_rng(seed).integers(2**63)))

    def ask(self, state, weights):
        seeds = np.random.default_rng(state.generation).integers(2**63, size=self.population)
        return [state.elite.child(seed, np.float32(0.1)) for seed in seeds]

    def tell(self, state, played, weights):
        return replace(state, generation=state.generation + 1, elite=played.genomes[np.argmax(played.fitness)])

    def elite(self, state):
        return state.elite

    def metrics(self, before, after):
        return {"highest": np.float32(before.generation + 0.5)}
"""

HEAD = "from neuroevo.algorithms.ga import GA\nfrom neuroevo.algorithms.base import Algorithm\n"
MODULES = {
    "own_zero": "x = 1\ny = x / 0\n",
    "own_exit": "import sys\nsys.exit(3)\n",
    "own_syntax": "def f(:\n",
    "own_lines": "raise RuntimeError('one\\ntwo')\n",
    "own_needs": "x = 1\n\nimport no_such_package.thing\n",
    "own_wrong": HEAD + "number = 3\n\ndef make(): pass\n\nclass Half(Algorithm):\n    def ask(self): pass\n\n"
    "class Plain(GA): pass\n",
    "own_none": "class Other: pass\n",
    "own_state": HEAD + "from neuroevo.core.settings import settings\n\n@settings\nclass Bad(GA):\n    pass\n\n"
    "Bad.state_type = dict\n\n@settings\nclass Not(Bad):\n    state_type = Algorithm.state_type\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Current folder with MODULES; the path and imported modules are restored afterwards."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nothing_here:X", "there is no module nothing_here, expected one in {folder} or installed"),
        ("experiments.nothing:X", "there is no module experiments.nothing, expected one in {folder} or installed"),
        ("own_none.part:X", "there is no module own_none.part, expected one in {folder} or installed"),
        ("own_none:Missing", "own_none ({folder}/own_none.py) has no class Missing: "
         "expected an algorithm, but it defines no algorithms"),
        ("own_wrong:Missing", "own_wrong ({folder}/own_wrong.py) has no class Missing: expected one of GA, Plain"),
        ("own_wrong:make", "own_wrong ({folder}/own_wrong.py) has no class make: expected one of GA, Plain"),
        ("own_wrong:number", "own_wrong ({folder}/own_wrong.py) has no class number: expected one of GA, Plain"),
        ("own_wrong:Half", "Half lacks elite, init, tell: expected every abstract method of its base class"),
        ("own_wrong:Algorithm", "Algorithm lacks ask, elite, init, tell: "
         "expected every abstract method of its base class"),
        ("own_none:Other", "Other is not an algorithm: expected a subclass of neuroevo.algorithms.base.Algorithm with "
         "ask, elite, init, tell"),
        ("own_wrong:Plain", "Plain is not decorated: expected a class decorated with neuroevo.core.settings.settings"),
        ("own_state:Bad", "Bad.state_type: expected a frozen dataclass derived from neuroevo.algorithms.base.State"),
        ("own_state:Not", "Not.state_type: expected a frozen dataclass derived from neuroevo.algorithms.base.State"),
        ("own_zero:X", "importing own_zero raises ZeroDivisionError: division by zero ({folder}/own_zero.py, line 2)"),
        ("own_exit:X", "importing own_exit raises SystemExit: 3 ({folder}/own_exit.py, line 2)"),
        ("own_lines:X", "importing own_lines raises RuntimeError: one two ({folder}/own_lines.py, line 1)"),
        ("own_needs:X", "importing own_needs raises ModuleNotFoundError: No module named 'no_such_package' "
         "({folder}/own_needs.py, line 3)"),
        ("a:", "expected module:class, such as experiments.examples.cma_es:CMAES"),
        (":A", "expected module:class, such as experiments.examples.cma_es:CMAES"),
        ("a:b:c", "expected module:class, such as experiments.examples.cma_es:CMAES"),
        ("../a:B", "expected module:class, such as experiments.examples.cma_es:CMAES"),
        ("CMAES", f"{EXPECTED}; did you mean cma_es?"),
        ("gaa", EXPECTED + "; did you mean ga?"),
        ([1], EXPECTED),
    ],
)  # fmt: skip
def test_names_of_no_algorithm(folder, name, expected):
    with pytest.raises(UserError) as caught:
        find_algorithm(name)
    (problem,) = caught.value.problems
    assert (problem.key, problem.value, problem.reason) == ("algorithm.name", name, expected.format(folder=folder))


def test_a_module_that_python_cannot_read(folder):
    with pytest.raises(UserError, match=r"own_syntax raises SyntaxError: .* \(own_syntax\.py, line 1\)$"):
        find_algorithm("own_syntax:X")


def test_all_problems_are_listed_at_once(folder):
    file = folder / "own.toml"
    file.write_text(
        '[env]\nname = "pong"\n[algorithm]\nname = "own_zero:X"\nwhatever = 3\n[training]\ngenerations = 0\n'
    )
    for command in (["config", "check"], ["config", "show"], ["train"]):
        result = invoke(*command, file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines() == [
            f"neuroevo: 2 problems in {file}:",
            '  algorithm.name = "own_zero:X": importing own_zero raises ZeroDivisionError: division by zero '
            f"({folder}/own_zero.py, line 2)",
            "  training.generations = 0: expected at least 1",
        ]
    file.write_text(f'[env]\nname = "pong"\n[algorithm]\nname = "{NAME}"\nsgima = true\npopulation = 2\n[training]\n')
    result = invoke("config", "check", file)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[1:] == [
        "  algorithm.sgima = true: there is no such key; did you mean sigma? "
        f'(keys of [algorithm] with name = "{NAME}": name, population, sigma)',
        "  algorithm.population = 2: expected at least 4",
        "  algorithm.sigma = true: expected a valid number",
        "  training: no budget: expected at least one of total_steps, generations and minutes",
    ]
