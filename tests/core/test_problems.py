"""Problems as objects: their text, their keys, and ConfigError."""

import pickle

import pytest
from pydantic import ValidationError

from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.config.load import load_config, make_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import NO_VALUE, ConfigError, Problem, problems_in, problems_of, refuse

ONE, TWO = Problem("algorithm.sigma", "expected more than 0", -1), Problem("env.name", "missing, expected a value")


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (ONE, "algorithm.sigma = -1: expected more than 0"),
        (TWO, "env.name: missing, expected a value"),
        (Problem("a.b", "why", "text"), 'a.b = "text": why'),
        (Problem("a.b", "why", {"x": [1, True]}), "a.b = {x = [1, true]}: why"),
        (Problem("a.b", "why", None), "a.b = None: why"),  # a value too, which JSON has
        (Problem("", "pong cannot be made: it is gone"), "pong cannot be made: it is gone"),
    ],
)
def test_text(problem, text):
    assert str(problem) == text


def test_keys_are_renamed_with_what_is_below_them():
    names = {"algorithm.optimizer.learning_rate": "optimizer.stepsize", "algorithm.optimizer": "optimizer"}
    for key, renamed in (
        ("algorithm.optimizer", "optimizer"),
        ("algorithm.optimizer.type", "optimizer.type"),
        ("algorithm.optimizer.learning_rate", "optimizer.stepsize"),
        ("algorithm.optimizers", "algorithm.optimizers"),
        ("algorithm", "algorithm"),
    ):
        problem = Problem(key, "why algorithm.optimizer", "algorithm.optimizer")
        assert problem.renamed(names) == Problem(renamed, "why algorithm.optimizer", "algorithm.optimizer")


def test_errors_list_their_problems():
    assert str(ConfigError([ONE])) == str(ONE)
    assert str(ConfigError([ONE], "x.toml")) == f"1 problem in x.toml:\n  {ONE}"
    assert str(ConfigError([ONE, TWO], "x.toml")) == f"2 problems in x.toml:\n  {ONE}\n  {TWO}"
    assert str(ConfigError([ONE, TWO])) == f"2 problems:\n  {ONE}\n  {TWO}"
    error = ConfigError([ONE, TWO], "x.toml")
    again = pickle.loads(pickle.dumps(error))
    assert (again.problems, again.source, str(again)) == (error.problems, "x.toml", str(error))
    assert again.problems[1].value is NO_VALUE
    refuse([], "x.toml")
    with pytest.raises(ConfigError) as caught:
        refuse(iter([ONE]), "x.toml")
    assert caught.value.problems == (ONE,)


def test_an_error_among_others():
    nested = ConfigError([ONE, TWO], "x.toml")
    assert problems_in(ConfigError([ONE, TWO])) == (ONE, TWO)
    assert problems_in(UserError("there is no file x")) == (Problem("", "there is no file x"),)
    assert (
        str(ConfigError(problems_in(nested), "all"))
        == f"1 problem in all:\n  2 problems in x.toml:\n    {ONE}\n    {TWO}"
    )


def test_what_settings_say_of_their_own_values():
    """Settings report the key if two values do not fit each other; otherwise pydantic reports it."""
    with pytest.raises(ValidationError) as caught:
        GA(population=10)
    assert problems_of("algorithm", caught.value) == [
        Problem("algorithm.parents", "expected at most the population, 10", 20)
    ]
    with pytest.raises(ValidationError) as caught:
        ES(optimizer={"type": "sgd"}, sigma=True)
    assert [(each.key, each.value) for each in problems_of("algorithm", caught.value)] == [
        ("algorithm.sigma", True),
        ("algorithm.optimizer.learning_rate", NO_VALUE),
    ]


def test_a_configuration_has_problems_by_key():
    with pytest.raises(ConfigError) as caught:
        make_config({"env": {"name": "frostbit"}, "network": {"hidden": [3]}, "hardware": {"lanes": 64, "slots": 1025}})
    assert [problem.key for problem in caught.value.problems] == [
        "training",
        "hardware.slots",
        "env.name",
        "network.hidden",
    ]
    assert caught.value.problems[2].value == "frostbit"


def test_a_2018_file_has_its_own_keys(tmp_path):
    path = tmp_path / "some.json"
    path.write_text('{"game": "pong", "timesteps": 0, "optimizer": {"type": "sgd", "args": {"stepsize": -1}}, "zz": 1}')
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert [(problem.key, problem.value) for problem in caught.value.problems] == [
        ("zz", 1),
        ("optimizer.stepsize", -1),
        ("timesteps", 0),
    ]
    assert caught.value.source == str(path)
