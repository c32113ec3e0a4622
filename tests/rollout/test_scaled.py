"""Scaled mutations, whose noise is multiplied weight by weight: all engines and layouts agree with NumPy."""

import numpy as np
import pytest

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.native.noise import noise_sum
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator

MLP = Network("mlp", hidden=(16, 8))


def spread_of(dimension, number):
    return Center(np.abs(np.random.default_rng(number).standard_normal(dimension)) * 0.3)


def family(dimension):
    """Pairs around a center and around a seed, a grandchild, and children of scaled parents of two spreads."""
    one, two = (Scaled(spread_of(dimension, number)) for number in (1, 2))
    center, seed = Genome(Center(np.linspace(-1, 1, dimension))), Genome(5)
    pairs = [root.child(n, scale, one) for root in (center, seed) for n in (1, 2) for scale in (0.5, -0.5)]
    parents = [seed.child(3, 0.25), seed.child(4, 1.0, two)]
    return [*pairs, *(parent.child(n, 0.5, kind) for parent in parents for n, kind in ((6, one), (7, two)))]


def played(genomes_of=family, **options):
    with LocalEvaluator("Hopper-v5", MLP, device="cpu", **options) as evaluator:
        episodes = [Episode(genome, seed, 60) for seed in (7, 8) for genome in genomes_of(evaluator.dimension)]
        outcomes = evaluator.evaluate(episodes)
    return outcomes.returns.tolist(), outcomes.steps.tolist()


def as_centers(dimension):
    """The same family, each genome as a center with the weights computed by NumPy."""
    weights = {}

    def theta(genome):
        if genome.digest not in weights:
            if genome.parent is None:
                with LocalEvaluator("Hopper-v5", MLP, device="cpu", lanes=1, slots=1) as evaluator:
                    weights[genome.digest] = evaluator.weights.theta(genome)
            else:
                seed, scale, kind = genome.mutation
                spread = kind.spread.vector if isinstance(kind, Scaled) else np.ones(dimension, np.float32)
                step = np.float32(scale) * spread  # rounded once; the rest in one rounding, as fused operations do
                drawn = noise_sum([seed], [1.0], dimension).astype(np.float64)
                exact = theta(genome.parent).astype(np.float64) + step.astype(np.float64) * drawn
                weights[genome.digest] = exact.astype(np.float32)
        return weights[genome.digest]

    return [Genome(Center(theta(genome))) for genome in family(dimension)]


def test_engines_and_layouts_play_what_numpy_makes():
    expected = played(as_centers, lanes=1, slots=1)
    assert len(set(expected[0])) > 10
    assert played(threads=1, lanes=1, slots=1) == expected
    assert played(threads=2, lanes=2, slots=3) == expected
    assert played(threads=2, lanes=2, slots=3, engine="tensorflow") == expected
    assert played(threads=1, lanes=1, slots=2, parent_rows=5) == expected


def test_integer_networks_play_the_same_whatever_the_layout():
    network = Network("model", dtype="int8")

    def play(**options):
        with LocalEvaluator("frostbite", network, device="cpu", **options) as evaluator:
            kind = Scaled(spread_of(evaluator.dimension, 1))
            genomes = [Genome(3).child(seed, scale, kind) for seed in (1, 2) for scale in (0.05, -0.05)]
            return evaluator.evaluate([Episode(genome, 4, 60) for genome in genomes]).returns.tolist()

    assert play(lanes=1, slots=1) == play(lanes=2, slots=2, engine="tensorflow")


def test_weights_and_sums():
    weights = NativeWeights(["input float32 4; dense 3 1.0"])
    spread = Center([0.5, 2.0, 0.0, 1.0] * 3)
    genome = Genome(1).child(9, 0.5, Scaled(spread)).child(10, 0.25)
    drawn = noise_sum([9], [1.0], 12).astype(np.float64)
    expected = weights.theta(Genome(1)) + 0.5 * spread.vector * drawn + 0.25 * noise_sum([10], [1.0], 12)
    np.testing.assert_allclose(weights.theta(genome), expected, rtol=0, atol=1e-6)
    sums = weights.noise_sums([9], [0.5], [2.0])
    np.testing.assert_array_equal(sums[0], weights.noise_sum([9], [0.5]))
    np.testing.assert_allclose(sums[1], 2 * (drawn**2 - 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(weights.noise_sum([9], [2.0], 0, Scaled(spread)), weights.noise_sum([9], [2.0]))


def test_more_spreads_than_rows_are_refused():
    with LocalEvaluator("Hopper-v5", MLP, device="cpu", lanes=1, slots=1, parent_rows=2) as evaluator:
        kinds = [Scaled(spread_of(evaluator.dimension, number)) for number in range(3)]
        with pytest.raises(UserError, match="scaled by 3 centers, which do not fit into the 2 parent rows"):
            evaluator.evaluate([Episode(Genome(1).child(2, 0.5, kind), 3, 10) for kind in kinds])
