"""[sweep.space]: values, draws, and points that configurations accept."""

import math

import numpy as np
import pytest

from neuroevo.core.problems import ConfigError
from neuroevo.sweeps import points
from neuroevo.sweeps.space import Choice, Range, parse_space, value_text

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


def test_neighbors_stay_in_the_range():
    """Of population-based training: a fifth more or less, or the next value of a list."""
    rng = np.random.default_rng(0)
    assert {Range(1.0, 10.0).near(5.0, rng) for _ in range(50)} == {4.0, 6.0}
    assert {Range(1, 6, integer=True).near(6, rng) for _ in range(50)} == {5, 6}
    assert {Range(0.1, 1.0).near(0.1, rng) for _ in range(50)} == {0.1, 0.12}
    assert {type(Range(1, 6, integer=True).clip(value)) for value in (0.5, 4.8, 7.2)} == {int}
    assert {Choice(("a", "b", "c")).near("b", rng) for _ in range(50)} == {"a", "c"}
    assert {Choice(("a", "b", "c")).near("c", rng) for _ in range(50)} == {"b", "c"}


def test_points_are_those_of_a_trial_s_number_alone():
    space, _ = parse_space({"algorithm.sigma": {"uniform": [0.1, 1]}, "algorithm.population": [4, 6]})
    drawn = [points.draw(space, 5, number) for number in range(3)]
    assert drawn == [points.draw_accepted(space, TABLES, 5, number) for number in range(3)]
    others = [points.draw(space, 6, 0), points.draw(space, 5, 0, attempt=1), *drawn]
    assert len({point["algorithm.sigma"] for point in others}) == 5


def test_a_grid_has_every_combination():
    space, _ = parse_space({"algorithm.sigma": [0.1, 0.2], "algorithm.population": [4, 6, 8]})
    assert [tuple(point.values()) for point in points.grid(space)] == [
        (sigma, population) for sigma in (0.1, 0.2) for population in (4, 6, 8)
    ]
    assert list(points.grid({})) == [{}]


def test_points_that_are_refused_are_drawn_again():
    space, _ = parse_space({"algorithm.parents": {"integer": [1, 8]}, "algorithm.population": {"integer": [2, 8]}})
    found = [points.draw_accepted(space, TABLES, 0, number) for number in range(50)]
    assert all(point["algorithm.parents"] <= point["algorithm.population"] for point in found)
    space, _ = parse_space({"algorithm.parents": {"integer": [9, 12]}})
    with pytest.raises(ConfigError) as raised:
        points.draw_accepted(space, TABLES, 0, 1)
    assert {problem.key for problem in raised.value.problems} == {"algorithm.parents"}
    assert "points drawn for trial 1" in raised.value.source


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
    assert points.trial_seed(4, 0) not in seeds


def test_a_configuration_has_the_values_and_leaves_the_tables_as_they_are():
    made = points.config_of(TABLES, {"algorithm.sigma": 0.5, "env.options.frame_skip": 2, "training.seed": 7})
    assert (made.algorithm.sigma, made.environment.settings()["frame_skip"], made.training.seed) == (0.5, 2, 7)
    assert TABLES["algorithm"] == {"name": "ga", "population": 8, "parents": 3} and "options" not in TABLES["env"]
    (problem,) = points.refused(TABLES, {"algorithm.name.x": 1})
    assert (problem.key, problem.value) == ("algorithm.name.x", 1) and "expected SECTION.KEY" in problem.reason


def test_networks_of_trials_that_share_a_pipeline():
    configs = [points.config_of(TABLES, {"network.name": name}) for name in ("model", "large_model", "model")]
    assert points.shared_networks(configs) == [configs[0].network, configs[1].network]
    hidden = {"network": {"name": "mlp"}, "env": {"name": "hard_maze"}}
    many = [points.config_of({**TABLES, **hidden}, {"network.hidden": [units]}) for units in range(1, 18)]
    assert len(points.shared_networks(many[:16])) == 16 and points.shared_networks(many) == []


def test_values_as_text():
    assert [value_text(value) for value in (0.012345, 1e-7, 3, "model", [8, 16], True)] == [
        "0.01235", "1e-07", "3", "model", "[8, 16]", "true",
    ]  # fmt: skip
