"""Requirements for every registered algorithm, on the toy evaluator."""

import dataclasses

import numpy as np
import pytest

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import Training
from neuroevo.core.genome import GAUSSIAN, Genome
from neuroevo.core.state_codec import decode, encode
from neuroevo.training.loop import train
from tests.support import runs
from tests.support.toy import TARGET, ToyEvaluator, ToyWeights, theta

# Settings with which an algorithm comes within NEAR of TARGET in 25 generations of 30; it starts at about 3.9.
SMALL = {
    "ga": {"population": 30, "parents": 5, "sigma": 0.2, "validation_candidates": 4},
    "random_search": {"population": 30},
    "es": {"population": 30, "sigma": 0.1, "optimizer": {"learning_rate": 0.2}},
    "low_rank_es": {"population": 30, "sigma": 0.1, "optimizer": {"learning_rate": 0.2}, "rank": 2},
    "ga_ns": {
        "population": 30,
        "parents": 5,
        "sigma": 0.2,
        "validation_candidates": 4,
        "k": 5,
        "archive_probability": 0.1,
    },
    "ns_es": {"population": 30, "sigma": 0.1, "optimizer": {"learning_rate": 0.3}, "centers": 5, "k": 3},
    "nsr_es": {"population": 30, "sigma": 0.1, "optimizer": {"learning_rate": 0.2}, "centers": 3, "k": 3},
    "nsra_es": {
        "population": 30,
        "sigma": 0.1,
        "optimizer": {"learning_rate": 0.2},
        "centers": 3,
        "k": 3,
        "patience": 2,
    },
    "ars": {"population": 30, "sigma": 0.1, "learning_rate": 0.3, "top_directions": 8},
    "canonical_es": {"population": 30, "parents": 8, "sigma": 0.3},
    "cma_es": {"population": 30, "sigma": 0.3},
    "ribs": {"population": 30, "emitters": 3, "cells": [6, 8], "low": [-3.0, -3.0], "high": [3.0, 3.0], "sigma": 0.3},
    "map_elites": {
        "population": 30,
        "cells": [6, 8],
        "low": [-3.0, -3.0],
        "high": [3.0, 3.0],
        "sigma": 0.2,
        "validation_candidates": 4,
    },
    "me_es": {
        "population": 30,
        "cells": [6, 8],
        "low": [-3.0, -3.0],
        "high": [3.0, 3.0],
        "sigma": 0.1,
        "optimizer": {"learning_rate": 0.3},
        "moves": 5,
        "k": 3,
    },
    "neat": {"population": 30, "sigma": 0.3, "initial_sigma": 0.5, "validation_candidates": 4},
    "pgpe": {"population": 30, "sigma": 0.1, "optimizer": {"type": "clipup", "learning_rate": 0.15}},
    "regularized_evolution": {
        "population": 30,
        "offspring": 15,
        "tournament": 8,
        "sigma": 0.2,
        "validation_candidates": 4,
    },
    "sep_cma_es": {"population": 30, "sigma": 0.3},
    "snes": {"population": 30, "sigma": 0.3},
}
# Required final distance where it is not 1.
NEAR = {
    "random_search": 3.8,
    "regularized_evolution": 2.5,
    "ga_ns": 3.3,
    "ns_es": 3.0,
    "map_elites": 3.0,
    "me_es": 2.5,
    "nsr_es": 1.5,
    "nsra_es": 1.5,
}
IN_A_MAZE = {
    "env": {"name": "hard_maze"},
    "network": {"name": "mlp", "hidden": [4]},
}  # where behaviors have two numbers


def small(name):
    return ALGORITHMS[name](**SMALL[name])


def records_of(algorithm, evaluator=None, **changes):
    training = {"seed": 1, "generations": 4, "validation_episodes": 2, "test_episodes": 1, **changes}
    runs_of = train(algorithm, evaluator or ToyEvaluator(), Training(**training))
    return [record for _, records in runs_of for record in records]


every = pytest.mark.parametrize("name", ALGORITHMS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@every
def test_fitness_must_be_finite(name, value):
    algorithm, weights = small(name), ToyWeights()
    state = algorithm.init(0)
    genomes = algorithm.ask(state, weights)
    n = len(genomes)
    behaviors = np.zeros((n, 2))

    def told(fitness):
        return algorithm.tell(state, EvaluatedPopulation(genomes, fitness, 1, behaviors), weights)

    candidates = algorithm.candidates(told(np.arange(float(n))))
    if candidates:
        wrong = np.zeros(len(candidates))
        wrong[-1] = value
        last = len(candidates) - 1
        with pytest.raises(ValueError, match=f"candidate {last} is {value}"):
            played = EvaluatedPopulation(candidates, wrong, 1, np.zeros((len(candidates), 2)))
            algorithm.tell_validation(told(np.arange(float(n))), played)
    fitness = np.zeros(n)
    fitness[n - 3] = value
    with pytest.raises(ValueError, match=f"genome {n - 3} is {value}"):
        told(fitness)
    with pytest.raises(ValueError, match=rf"shape \({n - 1},\), expected \({n},\)"):
        told(np.zeros(n - 1))


@every
def test_improves_a_toy_with_a_known_optimum(name):
    records = records_of(small(name), seed=1, generations=25, validation_episodes=3, test_episodes=20)
    first, last = (np.linalg.norm(theta(records[i].elite) - TARGET) for i in (0, -1))
    assert last < first
    assert last < NEAR.get(name, 1.0)
    assert records[-1].test.mean > records[0].test.mean


@every
def test_follows_from_its_seed(name):
    def elites(seed):
        return [record.elite for record in records_of(small(name), seed=seed)]

    assert elites(5) == elites(5)
    assert elites(5) != elites(6)


@every
def test_asks_for_the_same_whenever_it_is_asked(name):
    algorithm, weights = small(name), ToyWeights()
    for state, _ in train(algorithm, ToyEvaluator(), Training(generations=2, validation_episodes=2, test_episodes=0)):
        asked = algorithm.ask(state.algorithm, weights)
        assert asked == algorithm.ask(state.algorithm, weights)
        assert len(asked) == len(set(asked))


@every
def test_states_are_frozen_and_survive_a_checkpoint(name):
    algorithm = small(name)
    training = Training(generations=2, validation_episodes=2, test_episodes=0)
    state = list(train(algorithm, ToyEvaluator(), training))[-1][0].algorithm
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.generation = 0
    encoded = encode(state)
    (again,) = decode(encoded, algorithm.state_type)
    assert encode(again).values == encoded.values and encode(again).genomes == encoded.genomes
    for before, after in zip(encoded.arrays, encode(again).arrays, strict=True):
        np.testing.assert_array_equal(before, after, strict=True)


@every
def test_going_on_from_any_checkpoint_equals_not_stopping(name, tmp_path):
    changes = {"algorithm": {"name": name, **SMALL[name]}, "training": {"generations": 4}}
    changes |= IN_A_MAZE if "cells" in SMALL[name] else {}
    toy = ToyEvaluator()
    runs.new_run(tmp_path / "whole", toy, **changes)
    whole = runs.results(tmp_path / "whole")
    for call in range(1, len(toy.calls), 5):  # covers every phase of a generation, with two or three phases
        path = tmp_path / str(call)
        with pytest.raises(KeyboardInterrupt):
            runs.new_run(path, ToyEvaluator(interrupt_at=call), **changes)
        runs.play(runs.RunFolder.resume(path))
        assert runs.results(path) == whole


@every
def test_the_best_begin_with_the_elite(name):
    algorithm = small(name)
    training = Training(generations=3, validation_episodes=2, test_episodes=0)
    state = list(train(algorithm, ToyEvaluator(), training))[-1][0].algorithm
    best = algorithm.best(state)
    assert best[0] == algorithm.elite(state)
    assert len(set(best)) == len(best)
    others = algorithm.init(8, best)  # another run starts from the best genomes
    assert algorithm.ask(others, ToyWeights())


def test_what_a_subclass_has_without_writing_it():
    class Fixed(Algorithm):
        def init(self, seed, genomes=()):
            return State(seed)

        def ask(self, state, weights):
            return [Genome(state.seed)]

        def tell(self, state, population, weights):
            return dataclasses.replace(state, generation=state.generation + 1)

        def elite(self, state):
            return Genome(state.seed)

    fixed, played = Fixed(), EvaluatedPopulation([Genome(5)], np.zeros(1))
    state = fixed.init(5)
    assert fixed.candidates(state) == [] and fixed.tell_validation(state, played) is state and not fixed.validates
    assert fixed.best(state) == [Genome(5)] and fixed.metrics(state, state) == {}
    assert (fixed.behavior, fixed.novelties(state, played), fixed.archive(state), state.pickle()) == (None,) * 4
    assert fixed.mutation_kind == GAUSSIAN and fixed.check_state(state) is None
    state.check_state()
    with pytest.raises(ValueError, match=r"steps is -1, expected a number in"):
        State(5, steps=-1).check_state()


def test_who_validates():
    assert {name for name in ALGORITHMS if small(name).validates} == {
        "ga",
        "ga_ns",
        "map_elites",
        "me_es",
        "neat",
        "ns_es",
        "nsr_es",
        "nsra_es",
        "random_search",
        "regularized_evolution",
    }
