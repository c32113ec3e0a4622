"""[sweep.space]: values, draws, and points that configurations accept."""

import math

import numpy as np
import pytest

from neuroevo.core.problems import ConfigError
from neuroevo.sweeps.tune import points
from neuroevo.sweeps.tune.space import Choice, Range, parse_space

TABLES = {
    "env": {"name": "frostbite"},
    "network": {"name": "model"},
    "algorithm": {"name": "ga", "population": 8, "parents": 3},
    "training": {"generations": 2},
}


def draws(values, count=2000):
    rng = np.random.default_rng(0)
    return [values.draw(rng) for _ in range(count)]


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
        "network.name": Choice(("model", "large_model")),
        "algorithm.sigma": Range(1e-3, 1e-1, log=True),
        "algorithm.optimizer.learning_rate": Range(0, 1),
        "algorithm.population": Range(50, 500, integer=True),
        "algorithm.k": Range(1, 100, log=True, integer=True),
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
        {"integer": [0, 1.5]},
        {"integer": [False, True]},
        {"log_uniform": [0, 1]},
    ],
)
def test_what_no_key_can_have(value):
    space, problems = parse_space({"algorithm.sigma": value})
    assert space == {}
    assert all(problem.key.startswith("sweep.space.algorithm.sigma") for problem in problems) and problems


def test_draws():
    numbers = draws(Range(1e-3, 1e-1, log=True))
    assert all(1e-3 <= number <= 1e-1 for number in numbers)
    assert np.median(np.log10(numbers)) == pytest.approx(-2, abs=0.1)
    assert np.mean(draws(Range(2.0, 4.0))) == pytest.approx(3, abs=0.1)
    counts = np.bincount(draws(Range(1, 4, integer=True)))
    assert counts[0] == 0 and len(counts) == 5 and counts[1:] == pytest.approx(500, rel=0.2)
    integers = draws(Range(1, 100, log=True, integer=True))
    assert set(map(type, integers)) == {int} and min(integers) == 1 and max(integers) == 100
    assert np.bincount(integers)[1] == pytest.approx(2000 * math.log(2) / math.log(101), rel=0.2)
    assert set(draws(Choice(("a", "b")))) == {"a", "b"}


def test_a_scheduler_s_factors_stay_in_the_range():
    assert Range(1, 6, integer=True).clip(7.2) == 6
    assert Range(0.1, 1.0).clip(0.08) == 0.1
    assert type(Range(1, 6, integer=True).clip(4.8)) is int


def test_points_are_those_of_a_trial_s_number_alone():
    space, _ = parse_space({"algorithm.sigma": {"uniform": [0.1, 1]}, "algorithm.population": [4, 6]})
    few = points.all_points(space, TABLES, "random", 3, seed=5)
    assert points.all_points(space, TABLES, "random", 7, seed=5)[:3] == few
    assert points.all_points(space, TABLES, "random", 3, seed=6) != few


def test_a_grid_has_every_combination():
    space, _ = parse_space({"algorithm.sigma": [0.1, 0.2], "algorithm.population": [4, 6, 8]})
    assert [tuple(point.values()) for point in points.grid(space)] == [
        (sigma, population) for sigma in (0.1, 0.2) for population in (4, 6, 8)
    ]


def test_a_grid_names_every_point_that_is_refused():
    space, _ = parse_space({"algorithm.parents": [2, 6], "algorithm.population": [4, 8]})
    with pytest.raises(ConfigError) as raised:
        points.all_points(space, TABLES, "grid", 0, seed=0)
    assert [(problem.key, problem.value) for problem in raised.value.problems] == [("algorithm.parents", 6)]


def test_points_that_are_refused_are_drawn_again():
    space, _ = parse_space({"algorithm.parents": {"integer": [1, 8]}, "algorithm.population": {"integer": [2, 8]}})
    found = points.all_points(space, TABLES, "random", 50, seed=0)
    assert all(point["algorithm.parents"] <= point["algorithm.population"] for point in found)
    space, _ = parse_space({"algorithm.parents": {"integer": [9, 12]}})
    with pytest.raises(ConfigError) as raised:
        points.all_points(space, TABLES, "random", 1, seed=0)
    assert {problem.key for problem in raised.value.problems} == {"algorithm.parents"}


def test_probing_tries_both_ends_and_every_choice():
    space, _ = parse_space(
        {
            "algorithm.sigma": {"uniform": [-1.0, 1.0]},
            "network.name": ["model", "modle"],
            "algorithm.parents": {"integer": [1, 9]},
            "algorithm.popluation": [4],
        }
    )
    found = {(problem.key, problem.value) for problem in points.probe(space, TABLES, seed=0)}
    expected = {("algorithm.sigma", -1.0), ("network.name", "modle"), ("algorithm.parents", 9)}
    assert expected < found and {key for key, _ in found - expected} == {"algorithm.popluation"}


def test_an_end_that_fits_other_values_of_the_space_is_no_problem():
    space, _ = parse_space({"algorithm.parents": {"integer": [1, 16]}, "algorithm.population": [8, 32]})
    assert points.probe(space, TABLES, seed=0) == []


def test_every_trial_has_a_seed_of_its_own():
    seeds = [points.trial_seed(3, number) for number in range(100)]
    assert len(set(seeds)) == 100 and all(0 <= seed < 2**63 for seed in seeds)
    assert points.with_seed({"a": 1}, TABLES, 3, 7) == {"a": 1, "training.seed": seeds[7]}
    assert points.with_seed({"training.seed": 5}, TABLES, 3, 7) == {"training.seed": 5}
    assert points.with_seed({}, TABLES, None, 7) == {}
