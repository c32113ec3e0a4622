"""MAP-Elites: cells, offspring and elite by hand, bounds from the environment, and a real maze."""

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.map_elites import MAPElites
from neuroevo.config.load import make_config
from neuroevo.core.behavior import Measure
from neuroevo.core.genome import Genome
from neuroevo.core.problems import ConfigError
from neuroevo.sessions import evaluators
from neuroevo.training.loop import train

UNIT = {"low": [0.0, 0.0], "high": [1.0, 1.0]}
PLANE = (Measure("x", 0, 10), Measure("y", -1, 1))


def generation(algorithm, state, behaviors, fitness):
    genomes = algorithm.ask(state)
    state = algorithm.tell(state, EvaluatedPopulation(genomes, np.array(fitness), 10, np.array(behaviors)))
    candidates = algorithm.candidates(state)
    fitness_of = dict(zip(genomes, fitness, strict=True))
    validation = np.array([float(fitness_of.get(each, -9.0)) for each in candidates])
    return algorithm.tell_validation(state, EvaluatedPopulation(candidates, validation, 5)), genomes, candidates


def test_each_cell_keeps_its_fittest_whose_offspring_come_next():
    algorithm = MAPElites(population=5, cells=[2, 2], **UNIT, sigma=0.5, validation_candidates=3)
    behaviors = [(0.1, 0.1), (0.2, 0.3), (0.9, 0.1), (np.nan, np.nan), (5.0, 1e31)]
    first, genomes, candidates = generation(algorithm, algorithm.init(3), behaviors, [1.0, 2.0, -3.0, 99.0, 98.0])
    assert all(genome.mutation is None for genome in genomes) and len(set(genomes)) == 5
    assert first.cells.genomes == (genomes[1], genomes[2])  # unknown and endless behaviors are in no cell
    assert candidates == [genomes[1], genomes[2]] and first.elite == genomes[1]
    assert algorithm.metrics(first, first) == {"sigma": 0.5, "coverage": 0.5, "qd_score": -1.0}
    behaviors = [(0.1, 0.1), (0.9, 0.2), (0.9, 0.9), (-7.0, 0.9), (0.4, 0.4)]
    second, offspring, candidates = generation(algorithm, first, behaviors, [2.0, -2.0, 0.0, 3.0, 1.0])
    assert {child.parent for child in offspring} <= set(first.cells.genomes)
    assert all(child.mutation.scale == 0.5 for child in offspring)
    assert second.cells.genomes == (genomes[1], offspring[3], offspring[1], offspring[2])  # in the order of cells
    assert second.cells.fitness.tolist() == [2.0, 3.0, -2.0, 0.0]
    assert candidates == [genomes[1], offspring[3], offspring[2]] and second.elite == offspring[3]
    assert algorithm.metrics(second, second)["coverage"] == 1.0
    assert (second.generation, second.steps) == (2, 30)
    assert algorithm.best(second) == [offspring[3], genomes[1], offspring[1], offspring[2]]


def test_every_cell_is_as_likely_to_be_a_parent():
    algorithm = MAPElites(population=3000, cells=[3, 1], **UNIT)
    rows = np.column_stack([np.arange(3000) % 3 / 3 + 0.1, np.zeros(3000)])
    state, _, _ = generation(algorithm, algorithm.init(1), rows, np.arange(3000.0))
    parents = [child.parent for child in algorithm.ask(state)]
    counts = [parents.count(genome) for genome in state.cells.genomes]
    assert len(counts) == 3 and all(abs(count - 1000) < 5 * np.sqrt(1000 * 2 / 3) for count in counts)


def test_the_most_novel_of_a_tournament_is_the_parent():
    algorithm = MAPElites(population=3000, cells=[3, 1], low=[0.0, 0.0], high=[3.0, 1.0], tournament=2, k=1)
    rows = np.column_stack([np.tile([0.1, 1.2, 2.9], 1000), np.zeros(3000)])  # nearest distances: 1.1, 1.1, 1.7
    state, _, _ = generation(algorithm, algorithm.init(1), rows, np.arange(3000.0))
    parents = [child.parent for child in algorithm.ask(state)]
    counts = [parents.count(genome) for genome in state.cells.genomes]
    # The better of two draws with replacement; ties are resolved in the order of cells.
    for count, share in zip(counts, (3 / 9, 1 / 9, 5 / 9), strict=True):
        assert abs(count - 3000 * share) < 5 * np.sqrt(3000 * share * (1 - share))


def test_without_known_behaviors_the_population_stays_fresh():
    algorithm = MAPElites(population=4, cells=[2], **UNIT)
    state, genomes, _ = generation(algorithm, algorithm.init(1), np.full((4, 2), np.nan), np.arange(4.0))
    assert len(state.cells) == 0 and state.elite == genomes[3]
    assert not set(algorithm.ask(state)) & set(genomes)
    begun = algorithm.init(1, [Genome(5), Genome(6)])
    assert {child.parent for child in algorithm.ask(begun)} <= {Genome(5), Genome(6)}


def test_bounds_are_the_environments():
    config = make_config(
        {
            "env": {"name": "hard_maze"},
            "network": {"name": "mlp", "hidden": [8]},
            "algorithm": {"name": "map_elites", "cells": 10},
            "training": {"generations": 1, "max_episode_steps": "env_default"},
        }
    )
    x, y = config.environment.measures
    assert (config.algorithm.low, config.algorithm.high) == ((x.low, y.low), (x.high, y.high))
    assert config.algorithm.grid.shape == (10, 10)
    assert make_config(config.tables()) == config
    robot = {"name": "Ant-v5", "options": {"behavior": "contact"}}
    feet = make_config(
        {
            "env": robot,
            "network": {"name": "linear"},
            "algorithm": {"name": "map_elites", "cells": 5},
            "training": {"generations": 1},
        }
    )
    assert feet.algorithm.grid.shape == (5, 5, 5, 5) and feet.algorithm.high == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": [5, 5, 5]}, r"cells = \[5, 5, 5\]: expected 2 numbers, one for each of x, y"),
        ({"low": [0.0]}, r"low = \[0.0\]: expected 2 numbers, one for each of x, y"),
        ({"high": [10.0, -1.0]}, "high = -1.0: expected more than -1 for y, the lower bound"),
    ],
)
def test_settings_for_other_behaviors_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        MAPElites(**options).on_measures(PLANE)
    with pytest.raises(ConfigError, match="low: missing, as y has no bound: expected 2 numbers, one for each of x, y"):
        MAPElites().on_measures((Measure("x", 0, 1), Measure("y")))


def test_a_configuration_names_the_key():
    with pytest.raises(ConfigError, match=r"algorithm\.cells = \[3, 3, 3\]: expected 2 numbers"):
        make_config({"env": {"name": "hard_maze"}, "algorithm": {"name": "map_elites", "cells": [3, 3, 3]}})
    with pytest.raises(ConfigError, match=r"algorithm\.low: missing, as x has no bound"):
        make_config(
            {"env": {"name": "Walker2d-v5"}, "network": {"name": "linear"}, "algorithm": {"name": "map_elites"}}
        )


def test_more_of_a_maze_is_filled_than_by_random_search():
    def cells_of(**algorithm):
        config = make_config(
            {
                "env": {"name": "hard_maze"},
                "network": {"name": "mlp", "hidden": [8]},
                "algorithm": {"population": 100, **algorithm},
                "training": {
                    "generations": 8,
                    "max_episode_steps": "env_default",
                    "validation_episodes": 1,
                    "test_episodes": 0,
                },
                "hardware": {"device": "cpu"},
            }
        )
        with evaluators.make_evaluator(config) as evaluator:
            (*_, (state, _)) = train(config.algorithm, evaluator, config.training)
        return len(state.algorithm.cells)

    found = cells_of(name="map_elites", sigma=0.3)
    assert found > 1.3 * cells_of(name="map_elites", sigma=1e-6)  # the first population, again and again
