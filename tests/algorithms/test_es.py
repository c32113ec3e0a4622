"""Evolution strategies: pairs, estimate and step by hand and in float64, and a quadratic with a known optimum."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.algorithms.ascent import antithetic_pairs, ascend, estimate
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.es import ES, ESState
from neuroevo.algorithms.fitness_shaping import centered_ranks
from neuroevo.algorithms.optimizers import SGD, Adam
from neuroevo.algorithms.schedules import ExponentialSchedule, LinearSchedule, shortest
from neuroevo.config.load import make_config
from neuroevo.core.arrays import norm
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Mutation
from neuroevo.core.problems import NO_VALUE, ConfigError
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.state_codec import decode, encode
from neuroevo.native.weights import NativeWeights

D = 3001
CENTER = Genome(12).child(5, 0.5)


def weights_of(dimension: int) -> NativeWeights:
    """Return the weights of a network of `dimension` weights, initialized with a standard deviation of 0.1."""
    return NativeWeights([f"input float32 1; dense {dimension} 0.1"])


class NotedNoise:
    """Weights with given noise for each seed, summed in float64."""

    def __init__(self, **noise):
        self.noise = {int(seed[1:]): np.array(vector, np.float64) for seed, vector in noise.items()}

    def theta(self, genome):
        assert not genome.mutations
        return genome.root.vector

    def noise_sum(self, seeds, weights, network=0, kind=GAUSSIAN):
        total = sum((w * self.noise[seed] for seed, w in zip(seeds, weights, strict=True)), np.zeros(2))
        return total.astype(np.float32)


def told(algorithm, state, weights, fitness_of, steps=0):
    """Return the state after a generation with fitness fitness_of(theta)."""
    genomes = algorithm.ask(state, weights)
    fitness = np.array([fitness_of(weights.theta(genome)) for genome in genomes])
    return algorithm.tell(state, EvaluatedPopulation(genomes, fitness, steps), weights)


# By hand. Returns 2, 1 and 2, 5: ranks 0 for the 1, 1.5 for both 2s, 3 for the 5, so 0, -0.5 and 0, 0.5 once centered.
# The pairs' differences are 0.5 and -0.5; (0.5 * [1, -2] - 0.5 * [3, 4]) / 4 = [-0.25, -0.75].
HAND = NotedNoise(s7=[1, -2], s8=[3, 4])
HAND_FITNESS = np.array([2.0, 1.0, 2.0, 5.0])
HAND_CENTER = Genome(Center([2.0, 4.0]))


def test_ranks_with_ties_and_the_estimate_by_hand():
    genomes = antithetic_pairs(HAND_CENTER, [7, 8], 0.5)
    assert [genome.mutations for genome in genomes] == [
        (Mutation(seed, scale),) for seed in (7, 8) for scale in (0.5, -0.5)
    ]
    shaped = centered_ranks(HAND_FITNESS)
    assert shaped.tolist() == [0, -0.5, 0, 0.5]
    found = estimate(shaped, genomes, HAND)
    assert found.dtype == np.float32 and found.tolist() == [-0.25, -0.75]


def hand_generation(algorithm, state, fitness):
    genomes = antithetic_pairs(state.center, [7, 8], 0.5)
    return algorithm.tell(state, EvaluatedPopulation(genomes, fitness, steps=30), HAND)


def test_sgd_by_hand():
    """Two generations; equal returns in the second still apply velocity and WeightDecay."""
    algorithm = ES(4, 0.5, SGD(learning_rate=0.5, momentum=0.5), weight_decay=0.25)
    first = hand_generation(algorithm, ESState(3, HAND_CENTER), HAND_FITNESS)
    # The gradient is 0.25 * [2, 4] + [0.25, 0.75] = [0.75, 1.75], the step half of it.
    assert first.center == Genome(Center([1.625, 3.125]))
    assert (first.seed, first.generation, first.steps) == (3, 1, 30)
    assert first.gradient_norm == pytest.approx(np.sqrt(0.0625 + 0.5625), rel=1e-7)
    assert first.update_ratio == pytest.approx(np.sqrt((0.140625 + 0.765625) / 20), rel=1e-7)
    metrics = algorithm.metrics(ESState(3, HAND_CENTER), first)
    assert metrics == {
        "sigma": 0.5,
        "theta_norm": pytest.approx(np.sqrt(2.640625 + 9.765625), rel=1e-7),
        "gradient_norm": first.gradient_norm,
        "update_ratio": first.update_ratio,
    }
    second = hand_generation(algorithm, first, np.full(4, 9.0))
    # 0.5 * [0.75, 1.75] + 0.25 * [1.625, 3.125] = [0.78125, 1.65625]
    assert second.center == Genome(Center([1.625 - 0.390625, 3.125 - 0.828125]))
    assert (second.generation, second.steps, second.gradient_norm) == (2, 60, 0.0)


def test_adam_by_hand():
    algorithm = ES(4, 0.5, Adam(learning_rate=0.1), weight_decay=0.25)
    first = hand_generation(algorithm, ESState(3, HAND_CENTER), HAND_FITNESS)
    # Adam's first step is its learning_rate against the gradient's sign, [0.75, 1.75].
    assert first.center.root.vector == pytest.approx([1.9, 3.9], rel=1e-6)
    second = hand_generation(algorithm, first, np.full(4, 9.0))
    # The gradient is 0.25 * [1.9, 3.9] = [0.475, 0.975]; m = [0.0675 + 0.0475, 0.1575 + 0.0975] = [0.115, 0.255];
    # v = [7.875625e-4, 4.0100625e-3], their roots [0.02806355, 0.06332506]; a = 0.1 sqrt(0.001999) / 0.19 = 0.02353155.
    assert second.center.root.vector == pytest.approx([1.9 - 0.0964283, 3.9 - 0.0947577], rel=1e-6)
    assert second.optimizer.steps == 2


def test_the_estimate_is_float64s_to_1e_5():
    """2,500 pairs with ties among their returns and the noise of the op perturb."""
    weights = weights_of(D)
    seeds = draw_seeds(2500, 4, 0, Purpose.PAIRS)
    shaped = centered_ranks(np.random.default_rng(3).integers(0, 300, 5000) * 10.0)
    found = estimate(shaped, antithetic_pairs(CENTER, seeds, 0.02), weights)
    expected, zeros = np.zeros(D), Genome(Center(np.zeros(D)))
    for pair, seed in enumerate(seeds):
        expected += (shaped[2 * pair] - shaped[2 * pair + 1]) * weights.theta(zeros.child(seed, 1.0)).astype(np.float64)
    expected /= 5000
    assert found.dtype == np.float32
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)
    assert np.max(np.abs(found - expected)) < 1e-5 * np.median(np.abs(expected))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**63 - 1), st.floats(2**-10, 2, width=32), st.integers(0, 2**63 - 1))
def test_pairs_are_mirror_images(base, sigma, seed):
    weights = weights_of(50)
    plus, minus = (weights.theta(g).astype(np.float64) for g in antithetic_pairs(Genome(base), [seed], sigma))
    middle = weights.theta(Genome(base)).astype(np.float64)
    largest = np.maximum(np.abs(plus), np.abs(minus))
    assert np.all(np.abs(plus + minus - 2 * middle) <= 2**-23 * largest)  # each is rounded once, by at most half a unit
    assert np.mean(plus != minus) > 0.9


def test_a_generation_is_pairs_around_the_center():
    algorithm, weights = ES(population=8, sigma=0.1), weights_of(3)
    state = algorithm.init(5)
    assert state.center == Genome(draw_seeds(1, 5, 0, Purpose.INITIAL_WEIGHTS)[0])
    genomes = algorithm.ask(state, weights)
    seeds, sigma = draw_seeds(4, 5, 0, Purpose.PAIRS), float(np.float32(0.1))
    assert genomes == [state.center.child(seed, scale) for seed in seeds for scale in (sigma, -sigma)]
    assert algorithm.ask(state, weights) == genomes
    after = algorithm.tell(state, EvaluatedPopulation(genomes, np.arange(8.0)), weights)
    assert (after.generation, after.center.mutations) == (1, ())
    assert {genome.parent for genome in algorithm.ask(after, weights)} == {after.center}
    assert not {g.mutations for g in algorithm.ask(after, weights)} & {g.mutations for g in genomes}
    assert algorithm.elite(after) == after.center and algorithm.best(after) == [after.center]
    assert algorithm.candidates(after) == []


def test_another_runs_elite_is_where_it_starts_and_the_network_stays():
    layers = ["input float32 1; dense 2 1.0", "input float32 1; dense 3 1.0; dense 2 1.0"]
    algorithm, weights = ES(population=2, sigma=0.5, weight_decay=0), NativeWeights(layers)
    elite = Genome(3, network=1).child(4, 0.25).child(6, 0.5)
    state = algorithm.init(0, [elite, Genome(9)])
    assert algorithm.elite(state) == elite
    (plus, minus) = algorithm.ask(state, weights)
    assert plus.parent == minus.parent == elite
    after = algorithm.tell(state, EvaluatedPopulation([plus, minus], np.array([1.0, 0.0])), weights)
    assert (after.center.network, after.center.root.vector.shape) == (1, (9,))
    moved = after.center.root.vector - weights.theta(elite)
    assert np.all(moved * (weights.theta(plus) - weights.theta(minus)) > 0)  # towards the better of the two


@pytest.mark.parametrize("optimizer", [Adam(), SGD(learning_rate=10.0)])
def test_equal_returns_move_nothing(optimizer):
    weights = weights_of(50)
    algorithm = ES(population=6, optimizer=optimizer, weight_decay=0)
    state = algorithm.init(1)
    for _ in range(3):
        after = told(algorithm, state, weights, lambda theta: -7.5)
        assert np.array_equal(weights.theta(after.center), weights.theta(state.center))
        assert (after.gradient_norm, after.update_ratio) == (0.0, 0.0)
        state = after


def test_with_equal_returns_only_l2_is_left():
    weights, algorithm = (
        weights_of(50),
        ES(population=6, optimizer=SGD(learning_rate=0.5, momentum=0), weight_decay=0.25),
    )
    state = algorithm.init(1)
    after = told(algorithm, state, weights, lambda theta: 0.0)
    assert np.array_equal(after.center.root.vector, weights.theta(state.center) * np.float32(0.875))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_fitness_that_is_not_finite_names_its_genome(wrong):
    weights, algorithm = weights_of(3), ES(population=6)
    state, fitness = algorithm.init(1), np.zeros(6)
    fitness[4] = wrong
    with pytest.raises(ValueError, match=f"genome 4 is {wrong}"):
        algorithm.tell(state, EvaluatedPopulation(algorithm.ask(state, weights), fitness), weights)


def test_a_step_beyond_float32_is_an_error():
    theta, gradient = np.array([1, 2, -3e38], np.float32), np.array([0, 0, -1], np.float32)
    with pytest.raises(ValueError, match=r"sgd .* weight 2 from -3e\+38 to -inf"):
        ascend(theta, gradient, SGD(learning_rate=1e38), None, 0.0)
    with pytest.raises(ValueError, match="gradient 2 is -inf"):
        ascend(theta, gradient, Adam(), None, 10.0)


@pytest.mark.parametrize(
    ("algorithm", "generations", "distance"),
    [
        (ES(population=40, sigma=0.02, optimizer=Adam(learning_rate=0.05), weight_decay=0), 150, 0.15),
        (ES(population=40, sigma=0.02, optimizer=SGD(learning_rate=0.3, momentum=0.5), weight_decay=0), 150, 0.15),
        (
            ES(
                population=40, sigma=LinearSchedule(0.1, 0.001, 100), optimizer=Adam(learning_rate=0.05), weight_decay=0
            ),
            150,
            0.15,
        ),
    ],
    ids=["adam", "sgd", "schedule"],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_quadratic(algorithm, generations, distance, seed):
    """The optimum is 3.4 from the start; a single step of Adam is 0.05 in each of 12 weights."""
    weights, optimum = weights_of(12), np.linspace(-1.5, 1.5, 12)

    def far(theta):
        return float(np.linalg.norm(theta - optimum))

    state = algorithm.init(seed)
    assert far(weights.theta(state.center)) > 3
    for _ in range(generations):
        state = told(algorithm, state, weights, lambda theta: -far(theta))
    assert far(state.center.root.vector) < distance


def test_l2_keeps_weights_smaller():
    weights = weights_of(12)
    norms = []
    for weight_decay in (0.0, 0.05):
        algorithm = ES(population=20, optimizer=SGD(learning_rate=0.2), weight_decay=weight_decay)
        state = algorithm.init(0)
        for _ in range(40):
            state = told(algorithm, state, weights, lambda theta: theta.sum())
        norms.append(norm(state.center.root.vector))
    assert norms[1] < 0.7 * norms[0]


@pytest.mark.parametrize(
    ("sigma", "generation", "steps", "value"),
    [
        (LinearSchedule(0.5, 0.25, 10), 4, 0, 0.4),
        (ExponentialSchedule(0.5, 0.125, 1000, "timesteps_so_far"), 7, 500, 0.25),
    ],
)
def test_sigma_follows_its_schedule(sigma, generation, steps, value):
    algorithm = ES(population=2, sigma=sigma)
    before = replace(algorithm.init(0), generation=generation, steps=steps)
    assert [scale for genome in algorithm.ask(before, weights_of(3)) for _, scale, _ in genome.mutations] == [
        pytest.approx(value, rel=1e-6),
        pytest.approx(-value, rel=1e-6),
    ]
    after = told(algorithm, before, weights_of(3), np.sum, steps=90)
    assert algorithm.metrics(before, after)["sigma"] == shortest(algorithm.ask(before, None)[0].mutations[0][1])
    assert after.steps == steps + 90


@pytest.mark.parametrize("optimizer", [Adam(), SGD(learning_rate=0.1)])
@pytest.mark.parametrize("generations", [0, 3])
def test_a_state_survives_a_checkpoint(optimizer, generations):
    weights, algorithm = weights_of(20), ES(population=6, optimizer=optimizer)
    state = algorithm.init(8)
    for _ in range(generations):
        state = told(algorithm, state, weights, np.sum, steps=11)
    (again,) = decode(encode(state), ESState)
    assert (again.seed, again.center, again.generation, again.steps) == (8, state.center, generations, 11 * generations)
    assert (again.gradient_norm, again.update_ratio) == (state.gradient_norm, state.update_ratio)
    for _ in range(2):
        assert algorithm.ask(again, weights) == algorithm.ask(state, weights)
        state, again = (told(algorithm, each, weights, np.sum, steps=11) for each in (state, again))
        assert again.center == state.center


def test_an_update_needs_a_few_vectors_only():
    """A vector has D float32 numbers; the new state keeps three of them."""
    d = 1_000_000
    noise = np.ones(d, np.float32)
    weights = SimpleNamespace(
        theta=lambda genome: genome.root.vector, noise_sum=lambda seeds, w, network, kind: noise * np.float32(w.sum())
    )
    algorithm, state = ES(population=200), ESState(0, Genome(Center(noise)))
    for _ in range(2):
        played = EvaluatedPopulation(algorithm.ask(state, weights), np.arange(200.0))
        tracemalloc.start()
        try:
            state = algorithm.tell(state, played, weights)
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert 3 * 4 * d <= kept < 3.1 * 4 * d
        assert peak < 8.5 * 4 * d


@pytest.mark.parametrize(
    ("settings", "key", "value", "expected"),
    [
        ({"population": 5}, "population", 5, "multiple of 2"),
        ({"population": 0}, "population", 0, "at least 1"),
        ({"weight_decay": -0.1}, "weight_decay", -0.1, "at least 0"),
        ({"sigma": 0}, "sigma", 0, "more than 0"),
        ({"optimizer": {"type": "lion"}}, "optimizer", {"type": "lion"}, '"adam", "sgd" or "clipup"'),
        ({"optimizer": "adam"}, "optimizer", "adam", '"adam", "sgd" or "clipup"'),
        ({"optimizer": {"learning_rate": -1}}, "optimizer.learning_rate", -1, "more than 0"),
        (
            {"optimizer": {"type": "sgd", "learning_rate": 1, "momentum": 1}},
            "optimizer.momentum",
            1,
            "less than 1",
        ),
        ({"optimizer": {"type": "sgd"}}, "optimizer.learning_rate", NO_VALUE, "missing"),
        ({"optimizer": {"type": "adam", "momentum": 0.5}}, "optimizer.momentum", 0.5, "no such key"),
    ],
)
def test_wrong_settings(settings, key, value, expected):
    tables = {"env": {"name": "pong"}, "training": {"generations": 1}, "algorithm": {"name": "es", **settings}}
    with pytest.raises(ConfigError) as raised:
        make_config(tables)
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == (f"algorithm.{key}", value)
    assert expected in problem.reason


def test_settings_as_a_configuration_has_them():
    tables = {"env": {"name": "pong"}, "training": {"generations": 1}, "algorithm": {"name": "es"}}
    config = make_config(tables)
    assert config.algorithm == ES(5000, 0.02, Adam(learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8), 0.005)
    assert make_config(config.tables()) == config
    tables["algorithm"] |= {"optimizer": {"learning_rate": 1}, "weight_decay": 0, "population": 1e3}
    assert make_config(tables).algorithm == ES(1000, 0.02, Adam(learning_rate=1.0), 0.0)
