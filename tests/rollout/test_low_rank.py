"""Mutations of low rank in the pipeline: outcomes are identical on every engine, layout and backend, and to NumPy's."""

import dataclasses

import numpy as np
import pytest

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, LowRank
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.submission import pack
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import unpack_weights
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from tests.support import cuda_emulated

HOPPER = Network("mlp", hidden=(16, 8))
RECURRENT = Network("layers", layers=("dense 12", "relu", "lstm 6"))


def genomes_of(dimension, rank):
    """Return two centers, a genome with a chain, and antithetic pairs around each of the three."""
    centers = [Genome(Center(0.1 * np.random.default_rng(n).standard_normal(dimension))) for n in range(2)]
    starts = [*centers, Genome(3).child(5, 0.5)]
    return [
        *starts,
        *(start.child(seed, scale, LowRank(rank)) for start in starts for seed in (1, 2) for scale in (0.25, -0.25)),
    ]


def episodes_of(evaluator, rank, steps=60):
    genomes = genomes_of(evaluator.dimension, rank)
    return [Episode(genome, seed, steps) for seed in (7, 8) for genome in genomes]


def played(network, rank, *, env="Hopper-v5", steps=60, **options):
    with LocalEvaluator(env, network, kind=LowRank(rank), device="cpu", **options) as evaluator:
        outcomes = evaluator.evaluate(episodes_of(evaluator, rank, steps))
    return outcomes.returns.tolist(), outcomes.steps.tolist()


@pytest.mark.parametrize("network", [HOPPER, RECURRENT], ids=["mlp", "recurrent"])
@pytest.mark.parametrize("rank", [1, 3])
def test_engines_layouts_and_backends_play_the_same(network, rank):
    expected = played(network, rank, threads=1, lanes=1, slots=1)
    assert len(set(expected[0])) == len(expected[0])
    assert played(network, rank, threads=2, lanes=2, slots=5) == expected
    assert played(network, rank, threads=2, lanes=1, slots=7, engine="tensorflow") == expected
    assert played(network, rank, threads=2, lanes=3, slots=2, backend="reference") == expected
    assert played(network, rank + 1, threads=2, lanes=2, slots=5) != expected


@pytest.mark.parametrize("engine", ["native", "tensorflow"])
def test_the_gpus_kernels_play_the_same(engine):
    cuda_emulated.load()
    expected = played(HOPPER, 2, steps=12, threads=1, lanes=1, slots=1)
    assert played(HOPPER, 2, steps=12, threads=2, lanes=2, slots=4, backend="cuda_emulated", engine=engine) == expected


@pytest.mark.parametrize("name", ["model", "virtual_bn"])
def test_games_are_played_the_same(name):
    expected = played(Network(name), 1, env="frostbite", steps=12, threads=1, lanes=1, slots=1)
    assert played(Network(name), 1, env="frostbite", steps=12, threads=2, lanes=2, slots=3) == expected


def test_what_numpy_makes_of_the_weights_plays_alike():
    with LocalEvaluator("Hopper-v5", HOPPER, kind=LowRank(2), device="cpu", lanes=2, slots=4) as evaluator:
        episodes = episodes_of(evaluator, 2, 20)[:9]
        returns = evaluator.evaluate(episodes).returns
        weights, text = NativeWeights(evaluator.network_texts), evaluator.network_texts[0]
    pool, slots = EnvPool(registry.resolve("Hopper-v5"), len(episodes)), np.arange(len(episodes))
    pool.reset(slots, [episode.seed for episode in episodes], [20 * pool.frame_skip] * len(slots))
    thetas = [weights.theta(episode.genome) for episode in episodes]
    found, live = np.zeros(len(slots)), np.ones(len(slots), bool)
    while live.any():
        moved = slots[live]
        seen = pool.observe_normalized(moved)
        outputs = [forward(text, thetas[slot], each) for slot, each in zip(moved, seen, strict=True)]
        rewards, dones = pool.step(moved, pool.actions(np.array(outputs, np.float32)))
        found[moved] += rewards
        live[moved] = ~dones
    np.testing.assert_allclose(found, returns, rtol=1e-3)


def forward(text, theta, values):
    """One observation through a multilayer perceptron, in float64."""
    for layer in unpack_weights(text, theta).layers:
        if layer.kernel is not None:
            values = values.astype(np.float64) @ layer.kernel
        if layer.bias is not None:
            values = values + layer.bias
        if layer.kind == "tanh":
            values = np.tanh(values)
    return values


def submitted(episodes, **options):
    with LocalEvaluator("Hopper-v5", HOPPER, device="cpu", **options) as evaluator:
        evaluator.submit(episodes)


def test_mistakes_are_told():
    member = Genome(1).child(2, 0.5, LowRank(2))
    with pytest.raises(UserError, match="is of low rank 2, expected low rank 1"):
        submitted([Episode(member, 1)], kind=LowRank(1))
    with pytest.raises(UserError, match=r"3 genomes need a parent row each, but the 2 parent rows are not enough"):
        submitted([Episode(Genome(n), 1) for n in range(3)], kind=LowRank(1), parent_rows=2)
    with pytest.raises(UserError, match="is of low rank 2, expected Gaussian"):
        submitted([Episode(member, 1)])
    with pytest.raises(UserError, match="evaluated in int8, expected float32 for mutations of low rank 1"):
        LocalEvaluator("frostbite", dataclasses.replace(Network("model"), dtype="int8"), kind=LowRank(1), device="cpu")
    with pytest.raises(UserError, match="rank 2 has no row of its parent"):
        pack([Episode(member, 1)], frame_skip=1, dimensions=[5])
