"""neuroevo.AskTell: external optimizers, their states in checkpoints, and error messages for invalid optimizers."""

from typing import ClassVar

import cmaes
import numpy as np
import pytest

from experiments.examples.ask_tell import CMAES
from neuroevo import AskTell
from neuroevo.algorithms import ask_tell
from neuroevo.algorithms.ask_tell import AskTellState, Sampler
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.registry import find_algorithm
from neuroevo.config.schema import Training
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import settings
from neuroevo.core.state_codec import decode, encode
from neuroevo.training.loop import train
from tests.support.toy import TARGET, ToyEvaluator, ToyWeights, theta

WEIGHTS = ToyWeights()


class Climber(Sampler):
    """Optimizer that samples around the best vector, with its own random generator."""

    def __init__(self, at, rng):
        self.at, self.rng = at, rng

    def ask(self):
        self.asked = self.at + 0.3 * self.rng.normal(size=(6, len(self.at)))
        return self.asked

    def tell(self, fitness, behaviors):
        self.at = self.asked[np.argmax(fitness)]

    def metrics(self):
        return {"length": np.linalg.norm(self.at)}


@settings
class Climbing(AskTell):
    def start(self, theta, seed):
        return Climber(theta, np.random.default_rng(seed))


@settings
class Pickled(Climbing):
    pickled: ClassVar[bool] = True


@settings
class Unseeded(AskTell):
    def start(self, theta, seed):
        return Climber(theta, np.random.default_rng())


@settings
class UnseededButPickled(Unseeded):
    pickled: ClassVar[bool] = True


def played(genomes):
    return EvaluatedPopulation(genomes, np.array([-np.sum((theta(genome) - TARGET) ** 2) for genome in genomes]))


def after(algorithm, state, generations):
    for _ in range(generations):
        state = algorithm.tell(state, played(algorithm.ask(state, WEIGHTS)), WEIGHTS)
    return state


def reread(state):
    """Return a copy of a state as decoded from a checkpoint, without a live optimizer."""
    (again,) = decode(encode(state), AskTellState)
    return again


def vectors(algorithm, state):
    return [genome.root.vector.tolist() for genome in algorithm.ask(state, WEIGHTS)]


def test_comes_near_the_optimum():
    training = Training(seed=2, generations=25, test_episodes=20)
    records = [record for _, records in train(CMAES(), ToyEvaluator(), training) for record in records]
    assert records[-1].test.mean > records[0].test.mean + 2
    assert np.linalg.norm(theta(records[-1].elite) - TARGET) < 0.5


def test_is_the_library_driven_directly():
    algorithm, seed = CMAES(population=12, sigma=0.25), 7
    state = algorithm.init(seed)
    base = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)[0]
    own = draw_seeds(1, seed, 0, 1001)[0] % 2**32
    mean = theta(Genome(base)).astype(np.float32).astype(np.float64)
    optimizer = cmaes.CMA(mean, 0.25, population_size=12, seed=own)
    for _ in range(20):
        asked = [optimizer.ask() for _ in range(12)]
        genomes = algorithm.ask(state, WEIGHTS)
        assert [genome.root.vector.tolist() for genome in genomes] == [v.astype(np.float32).tolist() for v in asked]
        results = played(genomes)
        optimizer.tell(list(zip(asked, -results.fitness, strict=True)))
        state = algorithm.tell(state, results, WEIGHTS)
        assert np.array_equal(algorithm.elite(state).root.vector, optimizer.mean.astype(np.float32))


@pytest.mark.parametrize("algorithm", [CMAES(population=8), Climbing(), Pickled()])
def test_a_resumed_run_asks_for_the_same(algorithm):
    whole = after(algorithm, algorithm.init(5), 9)
    assert len({str(vectors(algorithm, whole)) for _ in range(2)}) == 1
    parts = after(algorithm, reread(after(algorithm, algorithm.init(5), 4)), 5)
    assert vectors(algorithm, parts) == vectors(algorithm, whole)
    assert vectors(algorithm, reread(whole)) == vectors(algorithm, whole)
    assert algorithm.elite(parts).root.vector.tolist() == algorithm.elite(whole).root.vector.tolist()
    assert vectors(algorithm, algorithm.init(6)) != vectors(algorithm, algorithm.init(5))


def test_a_state_may_be_told_again_and_elite_is_the_best_of_its_generation():
    algorithm = Climbing()
    state = after(algorithm, algorithm.init(1), 3)
    results = played(algorithm.ask(state, WEIGHTS))
    first, second = (algorithm.tell(state, results, WEIGHTS) for _ in range(2))
    assert vectors(algorithm, first) == vectors(algorithm, second)
    assert algorithm.elite(first) == results.genomes[int(np.argmax(results.fitness))]
    assert algorithm.metrics(state, first)["length"] == pytest.approx(np.linalg.norm(theta(algorithm.elite(first))))
    with pytest.raises(ValueError, match="no elite before the first generation"):
        algorithm.elite(algorithm.init(1))


def test_only_who_asks_for_it_is_pickled():
    assert after(Climbing(), Climbing().init(1), 2).pickled is None
    state = after(Pickled(), Pickled().init(1), 2)
    assert state.pickled.dtype == np.uint8 and state.fitness == ()


def test_randomness_that_does_not_follow_from_the_seed_is_found():
    state = reread(after(Unseeded(), Unseeded().init(1), 3))
    with pytest.raises(
        UserError, match=r"Unseeded returns different vectors than in the original run: expected all random"
    ):
        Unseeded().ask(state, WEIGHTS)
    kept = UnseededButPickled()
    state = after(kept, kept.init(1), 3)
    assert vectors(kept, reread(state)) == vectors(kept, state)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (np.zeros((3, 1)), r"an array of shape \[3, 1\], expected \[N, "),
        (np.zeros(TARGET.size), "an array of shape"),
        (np.zeros((0, TARGET.size)), "an array of shape"),
        (np.full((2, TARGET.size), np.nan), "weights that are not finite"),
    ],
)
def test_what_is_no_population(asked, reason):
    class Wrong(Sampler):
        def ask(self):
            return asked

        def tell(self, fitness, behaviors):
            raise AssertionError

    @settings
    class Bad(AskTell):
        def start(self, theta, seed):
            return Wrong()

    with pytest.raises(UserError, match=reason):
        Bad().ask(Bad().init(1), WEIGHTS)


def test_a_class_without_start_and_a_fitness_that_is_not_finite():
    @settings
    class Nothing(AskTell):
        pass

    @settings
    class Foreign(AskTell):
        def start(self, theta, seed):
            return np.random.default_rng(seed)

    with pytest.raises(TypeError, match=r"abstract class Nothing .* start"):
        Nothing()
    with pytest.raises(UserError, match=r"start\(\) of Foreign returns a Generator, expected a .*\.Sampler"):
        Foreign().ask(Foreign().init(1), WEIGHTS)
    algorithm = Climbing()
    state = algorithm.init(1)
    genomes = algorithm.ask(state, WEIGHTS)
    with pytest.raises(ValueError, match="fitness"):
        algorithm.tell(state, EvaluatedPopulation(genomes, np.full(6, np.nan)), WEIGHTS)
    assert vectors(algorithm, state) == [genome.root.vector.tolist() for genome in genomes]


def test_it_is_found_by_name_and_its_optimizers_are_forgotten():
    assert find_algorithm("experiments.examples.ask_tell:CMAES") is CMAES
    state = after(Climbing(), Climbing().init(1), 2)
    before = len(ask_tell._live)
    del state
    assert len(ask_tell._live) < before
