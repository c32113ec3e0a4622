"""[sweep.space]: values, draws, and validation against configurations."""

import math

import numpy as np
import pytest

from neuroevo.sweeps.checks import attempt, probe
from neuroevo.sweeps.searches import draw
from neuroevo.sweeps.space import Domain, parse_space, value_text

TABLES = {
    "env": {"name": "frostbite"},
    "network": {"name": "model"},
    "algorithm": {"name": "ga", "population": 8, "parents": 3},
    "training": {"generations": 2},
}


def draws(domain, count=1000):
    return [draw({"algorithm.x": domain}, seed)["algorithm.x"] for seed in range(count)]


def near(domain, value):
    rng = np.random.default_rng(0)
    return {domain.near(value, rng) for _ in range(50)}


def test_what_the_file_says():
    space, problems = parse_space(
        {
            "network.name": ["model", "large_model"],
            "algorithm": {"sigma": {"log_uniform": [1e-3, 1e-1]}, "optimizer": {"learning_rate": {"uniform": [0, 1]}}},
            "algorithm.population": {"integer": [50, 500]},
            "algorithm.k": {"log_integer": [1, 100]},
        }
    )
    assert problems == []
    assert space == {
        "network.name": Domain(("model", "large_model")),
        "algorithm.sigma": Domain((1e-3, 1e-1), "log_uniform"),
        "algorithm.optimizer.learning_rate": Domain((0.0, 1.0), "uniform"),
        "algorithm.population": Domain((50, 500), "integer"),
        "algorithm.k": Domain((1, 100), "log_integer"),
    }


@pytest.mark.parametrize(
    "value",
    [
        3,
        "model",
        [],
        [1, 1],
        {},
        {"normal": [0, 1]},
        {"log_unifrom": [1, 2]},
        {"uniform": [0, 1], "log_uniform": [1, 2]},
        {"uniform": 3},
        {"uniform": [1]},
        {"uniform": [2, 1]},
        {"uniform": [0, "1"]},
        {"uniform": [0, math.inf]},
        {"uniform": [-1e308, 1.7e308]},
        {"uniform": [0, 10**400]},
        {"uniform": [math.nan, 1]},
        {"integer": [0, 1.5]},
        {"integer": [0, 10**30]},
        {"integer": [False, True]},
        {"log_uniform": [0, 1]},
    ],
)
def test_what_no_key_can_have(value):
    space, problems = parse_space({"algorithm.sigma": value})
    assert space == {}
    assert all(problem.key.startswith("sweep.space.algorithm.sigma") for problem in problems) and problems


@pytest.mark.parametrize("key", ["sigma", "algorithm.", ".sigma", "algorithm..sigma"])
def test_what_is_no_key(key):
    space, (problem,) = parse_space({key: [1, 2]})
    assert space == {} and (problem.key, problem.value) == (f"sweep.space.{key}", [1, 2])
    assert "expected SECTION.KEY" in problem.reason


def test_draws():
    numbers = draws(Domain((1e-3, 1e-1), "log_uniform"))
    assert all(1e-3 <= number <= 1e-1 for number in numbers)
    assert np.median(np.log10(numbers)) == pytest.approx(-2, abs=0.15)
    assert np.mean(draws(Domain((2.0, 4.0), "uniform"))) == pytest.approx(3, abs=0.1)
    counts = np.bincount(draws(Domain((1, 4), "integer")))
    assert counts[0] == 0 and len(counts) == 5 and counts[1:] == pytest.approx(250, rel=0.3)
    integers = draws(Domain((1, 100), "log_integer"))
    assert set(map(type, integers)) == {int} and min(integers) >= 1 and max(integers) <= 100
    assert np.bincount(integers)[1] == pytest.approx(1000 * math.log(3) / math.log(201), rel=0.3)  # 0.5 to 1.5
    assert set(draws(Domain(("a", "b")), 50)) == {"a", "b"}
    nested = Domain(([8], [16, 16], {"a": 1}))
    assert [value for value in nested.values if value in draws(nested, 50)] == list(nested.values)


def test_draws_depend_on_the_seed_alone():
    space, _ = parse_space({"algorithm.sigma": {"uniform": [0.1, 1]}, "algorithm.population": [4, 6]})
    assert draw(space, 5) == draw(space, 5)
    assert len({draw(space, seed)["algorithm.sigma"] for seed in range(10)}) == 10


def test_neighbors_stay_in_the_range():
    """Perturbation in population-based training: 20% more or less, or a neighbor in a list."""
    assert near(Domain((1.0, 10.0), "uniform"), 5.0) == {4.0, 6.0}
    assert near(Domain((1, 6), "integer"), 6) == {5, 6}
    assert set(map(type, near(Domain((1, 6), "log_integer"), 4))) == {int}
    assert near(Domain((0.1, 1.0), "log_uniform"), 0.1) == {0.1, 0.12}
    assert near(Domain(("a", "b", "c")), "b") == {"a", "c"}
    assert near(Domain(("a", "b", "c")), "c") == {"b", "c"}


def test_probing_tries_both_ends_and_every_choice():
    space, _ = parse_space(
        {
            "algorithm.sigma": {"uniform": [-1.0, 1.0]},
            "network.name": ["model", "modle"],
            "algorithm.parents": {"integer": [1, 9]},
            "algorithm.popluation": [4],
        }
    )
    accepted, problems = probe(space, TABLES)
    found = {(problem.key, problem.value) for problem in problems}
    expected = {("algorithm.sigma", -1.0), ("network.name", "modle"), ("algorithm.parents", 9)}
    assert expected < found and {key for key, _ in found - expected} == {"algorithm.popluation"}
    assert [(key, value) for key, value, _ in accepted] == [
        ("algorithm.sigma", 1.0), ("network.name", "model"), ("algorithm.parents", 1)
    ]  # fmt: skip


def test_an_end_that_fits_other_values_of_the_space_is_no_problem():
    space, _ = parse_space({"algorithm.parents": {"integer": [1, 16]}, "algorithm.population": [8, 32]})
    accepted, problems = probe(space, TABLES)
    assert problems == [] and len(accepted) == 4
    (config,) = [config for key, value, config in accepted if (key, value) == ("algorithm.parents", 16)]
    assert (config.algorithm.parents, config.algorithm.population) == (16, 32)


def test_a_configuration_has_the_values_and_leaves_the_tables_as_they_are():
    made, problems = attempt(TABLES, {"algorithm.sigma": 0.5, "env.options.frame_skip": 2, "training.seed": 7})
    assert (made.algorithm.sigma, made.environment.settings()["frame_skip"], made.training.seed) == (0.5, 2, 7)
    assert TABLES["algorithm"] == {"name": "ga", "population": 8, "parents": 3} and "options" not in TABLES["env"]
    assert problems == []
    none, (problem,) = attempt(TABLES, {"algorithm.name.x": 1})
    assert none is None and "algorithm.name.x" in problem.reason and "not a table" in problem.reason


def test_values_as_text():
    assert [value_text(value) for value in (0.012345, 1e-7, 3, "model", [8, 16], True)] == [
        "0.01235", "1e-07", "3", "model", "[8, 16]", "true",
    ]  # fmt: skip
