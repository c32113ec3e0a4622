"""Evolution strategies of low rank: the paper's update in NumPy, and the limit of full-rank Gaussian noise."""

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.low_rank_es import LowRankES
from neuroevo.core.genome import GAUSSIAN, Center, Genome, LowRank
from neuroevo.core.problems import ConfigError
from neuroevo.native.noise import noise_sum
from neuroevo.native.weights import NativeWeights
from tests.support.runs import config

M, N = 5, 3  # shape of the network's only matrix, followed by its biases
NETWORK = f"input float32 {M}; dense {N} 1.0; bias"
D = M * N + N


def noise_of(seed, rank):
    """Return a seed's noise, float64 [D]: A B^T / sqrt(r) for the matrix, and Gaussian noise for the biases."""
    numbers = noise_sum([seed], [1.0], rank * (M + N) + N).astype(np.float64)
    a, b = numbers[: rank * M].reshape(rank, M).T, numbers[rank * M : rank * (M + N)].reshape(rank, N).T
    return np.concatenate([(a @ b.T).ravel() / np.sqrt(rank), numbers[rank * (M + N) :]])


@pytest.mark.parametrize("rank", [1, 2, 8])
def test_a_generation_is_the_papers_update(rank):
    """E is the noise: mu + lr * mean of (shaped fitness * E), where a pair is mu + sigma E and mu - sigma E."""
    algorithm = LowRankES(
        population=40, sigma=0.5, rank=rank, weight_decay=0.0, optimizer={"type": "sgd", "learning_rate": 0.25}
    )
    weights, center = NativeWeights([NETWORK]), np.random.default_rng(1).standard_normal(D).astype(np.float32)
    state = algorithm.init(3, [Genome(Center(center))])
    genomes = algorithm.ask(state, weights)
    assert {genome.mutation.kind for genome in genomes} == {LowRank(rank)}
    assert [genome.mutations[0][1] for genome in genomes] == [0.5, -0.5] * 20
    noise = np.array([np.sign(genome.mutations[0][1]) * noise_of(genome.mutations[0][0], rank) for genome in genomes])
    np.testing.assert_allclose([weights.theta(genome) for genome in genomes], center + 0.5 * noise, rtol=0, atol=2e-6)
    fitness = np.random.default_rng(2).standard_normal(40)
    ranks = np.argsort(np.argsort(fitness)) / 39 - 0.5
    after = algorithm.tell(state, EvaluatedPopulation(genomes, fitness, 0), weights)
    np.testing.assert_allclose(after.center.root.vector, center + 0.25 * (ranks @ noise) / 40, rtol=0, atol=1e-6)
    assert not after.center.mutations


def test_noise_approaches_that_of_all_weights_as_the_rank_grows():
    """The noise is uncorrelated with mean 0 and variance 1; its fourth moment in a matrix is 3 + 6 / r."""
    excess = {}
    for rank in (1, 16):
        noise = np.array([noise_of(seed, rank) for seed in range(40_000)])
        np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.03)
        np.testing.assert_allclose(np.cov(noise.T), np.eye(D), atol=0.07)
        matrix = noise[:, : M * N]
        # Squares of two weights in one row share A: their covariance is 2 / r, and also goes to 0.
        shared = np.mean(matrix[:, 0] ** 2 * matrix[:, 1] ** 2) - 1
        excess[rank] = np.mean(matrix**4) - 3, shared
    for rank, (fourth, shared) in excess.items():
        assert fourth == pytest.approx(6 / rank, rel=0.15, abs=0.05)
        assert shared == pytest.approx(2 / rank, rel=0.35, abs=0.08)


def test_the_member_that_weights_make_has_that_noise():
    weights = NativeWeights([NETWORK])
    base = Genome(Center(np.zeros(D)))
    for rank in (1, 3, 64):
        np.testing.assert_allclose(
            weights.theta(base.child(9, 1.0, LowRank(rank))), noise_of(9, rank), rtol=0, atol=1e-5
        )


def test_estimate_of_a_linear_fitness_points_uphill():
    """The mean of E E^T is the identity, so that over many pairs the estimate is nearly parallel to the gradient."""
    slope = np.random.default_rng(4).standard_normal(D)
    algorithm = LowRankES(population=4000, sigma=0.1, weight_decay=0.0, optimizer={"type": "sgd", "learning_rate": 1.0})
    weights = NativeWeights([NETWORK])
    state = algorithm.init(0, [Genome(Center(np.zeros(D)))])
    genomes = algorithm.ask(state, weights)
    noise = {
        genome.mutations[0]: np.sign(genome.mutations[0][1]) * noise_of(genome.mutations[0][0], 1) for genome in genomes
    }
    fitness = np.array([slope @ noise[genome.mutations[0]] for genome in genomes])
    step = algorithm.tell(state, EvaluatedPopulation(genomes, fitness, 0), weights).center.root.vector
    assert step @ slope / np.linalg.norm(step) / np.linalg.norm(slope) > 0.97


def test_ranks_of_algorithms():
    assert LowRankES().mutation_kind == LowRank(1) and LowRankES(rank=5).mutation_kind == LowRank(5)
    assert ES().mutation_kind == GA().mutation_kind == GAUSSIAN


@pytest.mark.parametrize("rank", [0, 65, 1.5, "1"])
def test_a_rank_out_of_range_is_a_problem_of_its_key(rank):
    with pytest.raises(ConfigError, match="rank"):
        config(algorithm={"name": "low_rank_es", "rank": rank})


def test_integers_are_refused():
    network = {"name": "model", "dtype": "int8"}
    assert config(network=network, algorithm={"name": "es"}).network.dtype == "int8"
    with pytest.raises(ConfigError, match="expected float32") as raised:
        config(network=network, algorithm={"name": "low_rank_es"})
    assert [problem.key for problem in raised.value.problems] == ["network.dtype"]
