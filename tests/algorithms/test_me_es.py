"""ME-ES: steps compared with those of ES, selection of cells, and filling of the grid."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.me_es import MEES
from neuroevo.algorithms.optimizers import Adam
from neuroevo.core.archive import Archive
from neuroevo.core.genome import Genome
from tests.support.toy import ToyWeights, theta

WEIGHTS = ToyWeights()
GRID = {"cells": [5, 1], "low": [0.0, 0.0], "high": [5.0, 1.0]}
ES_SETTINGS = {"population": 8, "sigma": 0.1, "optimizer": Adam(learning_rate=0.1)}


def played(genomes, fitness, behaviors, steps=10):
    return EvaluatedPopulation(genomes, np.array(fitness, float), steps, np.array(behaviors, float))


def generation(algorithm, state, fitness, behaviors, center_fitness, center_behavior):
    told = algorithm.tell(state, played(algorithm.ask(state, WEIGHTS), fitness, behaviors), WEIGHTS)
    (center,) = algorithm.candidates(told)
    return algorithm.tell_validation(told, played([center], [center_fitness], [center_behavior], 1))


def test_the_papers_settings():
    algorithm = MEES()
    assert (algorithm.moves, algorithm.k, algorithm.mode) == (10, 10, "alternate")
    assert (algorithm.sigma, algorithm.optimizer, algorithm.weight_decay) == (0.02, Adam(learning_rate=0.01), 0.005)


def test_steps_by_fitness_are_those_of_evolution_strategies():
    """With a single cell, the center takes the same steps as ES with an optimizer that is reset once."""
    algorithm, es = MEES(**GRID, **ES_SETTINGS, mode="exploit", moves=3), ES(**ES_SETTINGS)
    state, reference = algorithm.init(4), es.init(4)
    for number in range(4):
        fitness = np.random.default_rng(number).normal(size=8)
        behaviors = np.full((8, 2), 0.5)
        assert algorithm.ask(state, WEIGHTS) == es.ask(reference, WEIGHTS)
        state = generation(algorithm, state, fitness, behaviors, float(number), [0.5, 0.5])
        reference = es.tell(reference, played(es.ask(reference, WEIGHTS), fitness, behaviors), WEIGHTS)
        if number == 0:
            assert state.optimizer is None and state.remaining == 3
            reference = replace(reference, optimizer=None)
        assert np.array_equal(theta(state.center), theta(reference.center))
        assert (state.generation, state.steps) == (number + 1, 11 * (number + 1))
        assert state.cells.genomes == (state.center,) and algorithm.elite(state) == state.center
    assert len(state.behaviors) == 4


def test_steps_by_novelty_lead_away_from_the_behaviors_of_centers():
    algorithm = MEES(**GRID, **ES_SETTINGS, mode="explore", k=2)
    state = generation(algorithm, algorithm.init(1), np.arange(8.0), np.zeros((8, 2)), 5.0, [1.0, 0.0])
    assert state.explores and state.behaviors.behaviors.tolist() == [[1.0, 0.0]]
    behaviors = np.column_stack([[1.0, 2.0, 4.0, 0.0, np.nan, 1.5, 3.0, 2.5], np.zeros(8)])
    distances = np.array([0.0, 1.0, 3.0, 1.0, -1.0, 0.5, 2.0, 1.5])  # NaN is the least novel
    assert np.array_equal(
        np.nan_to_num(
            algorithm.novelties(state, played(algorithm.ask(state, WEIGHTS), np.zeros(8), behaviors)), nan=-1
        ),
        distances,
    )
    after = generation(algorithm, state, -distances, behaviors, 1.0, [4.5, 0.0])
    by_fitness = replace(state, explores=False)
    same = generation(algorithm, by_fitness, distances, np.zeros((8, 2)), 1.0, [4.5, 0.0])
    assert np.array_equal(theta(after.center), theta(same.center))
    assert algorithm.metrics(after, after) == {
        "sigma": np.float32(0.1),
        "explores": 1.0,
        "coverage": 0.4,
        "qd_score": 6.0,
    }


def filled(algorithm, fitness, behaviors):
    """Return a state with a genome in each cell, before the last step from the first genome."""
    genomes = tuple(Genome(number) for number in range(len(fitness)))
    places = np.array(behaviors, float)
    cells = Archive(places, genomes, np.array(fitness, float))
    return replace(algorithm.init(0), center=genomes[0], cells=cells, recent=genomes[-5:], behaviors=Archive(places))


def selected(algorithm, state, count=2000):
    """Count the selections of each center over seeds, after a center that enters no cell."""
    found = Counter()
    for seed in range(count):
        center = Genome(10**6)
        after = algorithm.tell_validation(
            replace(state, seed=seed, center=center), played([center], [-99.0], [[0.5, 0.5]])
        )
        assert after.optimizer is None and after.remaining == algorithm.moves
        found[after.center.root] += 1
    return found


def test_a_cell_to_exploit_is_one_of_the_fittest_or_of_the_fittest_among_the_latest():
    algorithm = MEES(cells=[7, 1], low=[0.0, 0.0], high=[7.0, 1.0], mode="exploit")
    state = filled(algorithm, [9, 8, 1, 5, 2, 7, 3], [(0.5 + number, 0.5) for number in range(7)])
    found = selected(algorithm, state)
    assert set(found) == {0, 1, 3, 5}  # the fittest, and those of numbers 2 to 6
    assert all(abs(count - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75) for count in found.values())


def test_a_cell_to_explore_from_is_one_of_the_most_novel_in_proportion():
    algorithm = MEES(cells=[40, 1], low=[0.0, 0.0], high=[40.0, 1.0], mode="explore", k=1)
    places = [(x, 0.5) for x in (0.5, 7.0, 9.0, 13.0, 21.0, 35.0)]
    state = filled(algorithm, np.arange(6.0), places)
    # Distances to the nearest other behavior; the first cell's is 0, to the new center at 0.5, which enters no cell.
    novel = {1: 2.0, 2: 2.0, 3: 4.0, 4: 8.0, 5: 14.0}
    found = selected(algorithm, state)
    assert set(found) == set(novel)
    for number, score in novel.items():
        share = score / 30.0
        assert abs(found[number] - 2000 * share) < 5 * np.sqrt(2000 * share * (1 - share))


def test_novelty_and_fitness_take_turns():
    algorithm = MEES(**GRID, **ES_SETTINGS, moves=2)
    state, modes = algorithm.init(0), []
    for number in range(7):
        modes.append(state.explores)
        state = generation(algorithm, state, np.arange(8.0), np.zeros((8, 2)), 1.0, [number % 5 + 0.5, 0.5])
    assert modes == [False, True, True, False, False, True, True]
    assert len(state.cells) == 5 and len(state.recent) == 5


def test_a_center_without_a_behavior_is_in_no_cell():
    algorithm = MEES(**GRID, **ES_SETTINGS)
    state = generation(algorithm, algorithm.init(0), np.arange(8.0), np.zeros((8, 2)), 1.0, [np.nan, np.nan])
    assert len(state.cells) == 0 and len(state.behaviors) == 0 and not state.explores
    assert algorithm.elite(state) == state.center
    with pytest.raises(ValueError, match="there are no behaviors"):
        algorithm.tell(state, EvaluatedPopulation(algorithm.ask(state, WEIGHTS), np.zeros(8)), WEIGHTS)
