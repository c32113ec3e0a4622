"""Regularized evolution: parents, deaths, the front, and runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.regularized_evolution import RegularizedEvolution
from neuroevo.core.genome import Genome, Graft
from neuroevo.core.problems import ConfigError
from neuroevo.core.statistics import pareto_front
from neuroevo.inspector.inspection import Inspection
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.grafting import cost
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, train
from tests.support.toy import ToyWeights

EVOLVED = {
    "env": {"name": "hard_maze"},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": {
        "name": "regularized_evolution",
        "population": 16,
        "offspring": 8,
        "tournament": 5,
        "network_mutation": 0.5,
        "max_weights": 3000,
        "max_lstm_units": 8,
        "validation_candidates": 2,
    },
}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_the_front_is_what_nothing_dominates(points):
    fitness, costs = np.array([each[0] for each in points], np.float64), [each[1] for each in points]
    front = pareto_front(fitness, costs)
    values = [points[i] for i in front]
    assert [each[1] for each in values] == sorted(each[1] for each in values)
    dominated = [any((f >= a and c < b) or (f > a and c <= b) for f, c in points) for a, b in points]
    assert set(values) == {each for each, worse in zip(points, dominated, strict=True) if not worse}
    assert len(set(values)) == len(values)


def told(algorithm, state, scores):
    genomes = algorithm.ask(state, ToyWeights())
    after = algorithm.tell(state, EvaluatedPopulation(genomes, scores(genomes)), ToyWeights())
    return genomes, algorithm.tell_validation(
        after, EvaluatedPopulation(after.candidates, np.zeros(len(after.candidates)))
    )


@pytest.mark.parametrize("aging", [True, False])
def test_who_dies(aging):
    algorithm = RegularizedEvolution(population=8, offspring=3, tournament=4, validation_candidates=2, aging=aging)
    first, state = told(algorithm, algorithm.init(1), lambda genomes: np.arange(8.0)[::-1])
    second, state = told(algorithm, state, lambda genomes: np.full(3, 5.5))
    expected = [*first[3:], *second] if aging else [first[0], first[1], *first[2:5], *second]
    assert list(state.members) == expected
    assert sorted(state.fitness) == sorted([4, 3, 2, 1, 0, *[5.5] * 3] if aging else [7, 6, 5, 4, 3, *[5.5] * 3])


@pytest.mark.parametrize("pareto", [False, True])
def test_parents_win_their_tournaments(pareto):
    algorithm = RegularizedEvolution(
        population=20, offspring=20, tournament=20, network_mutation=0.5, validation_candidates=2, pareto=pareto
    )
    fresh, state = told(algorithm, algorithm.init(3), lambda genomes: np.arange(20.0))
    parents = {each.parent for each in algorithm.ask(state, ToyWeights())}
    if not pareto:  # a sample of 20 of 20 with replacement has one of the best five
        assert parents <= set(fresh[15:]) and len(parents) < 5
    costs = [cost(each.network).multiply_adds for each in fresh]
    front = [fresh[i] for i in pareto_front(np.arange(20.0), costs)]
    assert list(state.front) == front
    if pareto:
        assert any(costs[fresh.index(each)] < costs[19] for each in parents)


def test_an_offspring_has_another_network_or_other_weights():
    algorithm = RegularizedEvolution(population=40, offspring=40, network_mutation=0.5, validation_candidates=2)
    _, state = told(algorithm, algorithm.init(2), lambda genomes: np.arange(40.0))
    kinds = [type(each.kind) for each in algorithm.ask(state, ToyWeights())]
    assert 8 < kinds.count(Graft) < 32
    for probability, count in ((0.0, 0), (1.0, 40)):
        always = dataclasses.replace(algorithm, network_mutation=probability)
        assert sum(isinstance(each.kind, Graft) for each in always.ask(state, ToyWeights())) == count


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    train(RunFolder.create(path, config(**EVOLVED, training={"generations": 5, "max_episode_steps": 60})))
    return path


def test_what_a_run_keeps(whole):
    reader = RunReader(whole)
    state = reader.state().algorithm
    members = [MembersReader(whole).read(generation) for generation in range(5)]
    assert {text for each in members for text in each.networks} >= {each.network for each in state.members[-8:]}
    played = [each for each in members[1:] for each in each.parents.tolist()]
    assert all(generation >= 0 for generation, _ in played)  # each offspring has a parent among the members
    rows = reader.rows()
    assert rows[-1]["networks"] == len({each.network for each in state.members}) > 1
    with Inspection([whole]) as inspection:
        cloud, way = inspection.answer("cloud/0"), inspection.answer("way/0")
    assert cloud["kind"] == "cost" and way["front"]["generations"]


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="expected at most the population"):
        config(**{**EVOLVED, "algorithm": {**EVOLVED["algorithm"], "offspring": 17}})
    with pytest.raises(ConfigError, match="expected a list of one or more of relu, tanh"):
        config(**{**EVOLVED, "algorithm": {**EVOLVED["algorithm"], "activations": ["sigmoid"]}})
    screen = {"env": {"name": "freeway"}, "network": {"name": "model", "dtype": "int8"}}
    with pytest.raises(ConfigError, match="layers that int8 does not support, expected float32"):
        config(**{**EVOLVED, **screen})


def test_it_starts_from_genomes_of_the_configured_network():
    """Their cost is computed like the cost of every other network."""
    algorithm = RegularizedEvolution(population=6, offspring=6, tournament=6, validation_candidates=2, pareto=True)
    start = [Genome(seed).child(1, 0.5) for seed in range(6)]
    (offspring, state) = told(algorithm, algorithm.init(1, start), lambda genomes: np.arange(6.0))
    assert {each.parent.parent for each in offspring} <= set(start)
    assert all(isinstance(each.network, str) for each in (*offspring, *state.members, *state.front))
    weights = NativeWeights(ToyWeights.networks)
    for each in offspring:
        np.testing.assert_array_equal(weights.theta(each.parent), weights.theta(each.parent.parent))
    assert algorithm.metrics(algorithm.init(1), state)["multiply_adds_mean"] > 0
