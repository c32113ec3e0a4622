"""Genomes with their own networks: many architectures in one call, and new ones while episodes are running."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import OwnNetworkLimits
from neuroevo.core.genome import Center, Genome, Graft
from neuroevo.envs import registry
from neuroevo.networks.changes import ChangeLimits, changed
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from tests.support.native_rollout import run_episodes

CASES = {
    "Hopper-v5": (Network("mlp", hidden=(8,)), OwnNetworkLimits(100, 20_000, 32), ("relu", "tanh", "silu"), 60),
    "freeway": (
        Network(layers=("conv 8 8x8/4 same", "relu", "dense 16", "relu"), dtype="int8"),
        OwnNetworkLimits(100, 300_000, 0, integers=True),
        ("relu",),
        6,
    ),
}


def neighbors(text, count, limits, activations):
    """Return different networks, each a few changes from a given one."""
    draw, found = random.Random(1), [text]
    limits = ChangeLimits(limits.weights, 5, limits.units, activations)
    while len(found) < count:
        other = changed(draw.choice(found), limits, draw.randrange)
        if other not in found:
            found.append(other)
    return found


@pytest.mark.parametrize("env", CASES)
def test_a_hundred_architectures_in_one_call_are_each_as_if_alone(env):
    """The offspring of such genomes, whose networks have changed places, have the same outcomes, too."""
    network, limits, activations, steps = CASES[env]
    with LocalEvaluator(env, network, own_networks=limits) as evaluator:
        texts = neighbors(evaluator.network_texts[0], 100, limits, activations)
        first = [Genome(seed, text).child(seed + 1, 0.1) for seed, text in enumerate(texts)]
        second = [genome.child(7, 1.0, Graft(texts[place - 1])).child(8, 0.02) for place, genome in enumerate(first)]
        together = [evaluator.evaluate([Episode(each, 3, steps) for each in genomes]) for genomes in (first, second)]
        for outcomes, genomes in zip(together, (first, second), strict=True):
            for place in range(0, 100, 9):
                genome = genomes[place]
                alone = evaluator.evaluate([Episode(genome, 3, steps)])
                dense = Genome(Center(evaluator.weights.theta(genome)))
                configured = run_episodes(
                    registry.resolve(env),
                    [lambda line, outputs, text=str(genome.network): text.split("; ")],
                    [Episode(dense, 3, steps)],
                    lanes=1,
                    slots=1,
                    dtype=network.dtype,
                )
                for each in (alone, configured):
                    assert (each.returns[0], each.steps[0]) == (outcomes.returns[place], outcomes.steps[place])
    assert len(set(together[0].returns)) > (60 if env == "Hopper-v5" else 0)


def test_networks_join_while_others_play():
    """With more networks than places, later ones wait, and the earlier ones' outcomes do not change."""
    network, limits, activations, _ = CASES["Hopper-v5"]
    limits = OwnNetworkLimits(4, limits.weights, limits.units)  # 16 places
    with LocalEvaluator("Hopper-v5", network, own_networks=limits, lanes=2, slots=3) as evaluator:
        texts = neighbors(evaluator.network_texts[0], 80, limits, activations)
        genomes = [Genome(seed, text) for seed, text in enumerate(texts)]
        parts = [[Episode(each, 5, 40) for each in genomes[at : at + 4] * 2] for at in range(0, 80, 4)]
        batches = [evaluator.submit(part, priority=place % 3) for place, part in enumerate(parts)]
        found = [evaluator.wait(batch).returns for batch in batches]
        for part, returns in zip(parts, found, strict=True):
            np.testing.assert_array_equal(evaluator.evaluate(part).returns, returns)
            np.testing.assert_array_equal(returns[:4], returns[4:])


def test_what_does_not_fit_is_refused():
    network = Network("mlp", hidden=(8,))
    text = "input float32 11; dense {} 1.0; bias; tanh; dense 3 0.1; bias; tanh"
    cases = (
        (OwnNetworkLimits(1, 500), range(1, 12), "the genomes have 11 own networks, expected at most 10"),
        (OwnNetworkLimits(1, 500), [52], "has 783 weights .*expected at most"),
        (None, [4], "the genomes have 1 own networks, expected at most 0"),
    )
    for limits, sizes, words in cases:
        episodes = [Episode(Genome(1, text.format(units)), 1, 5) for units in sizes]
        with (
            LocalEvaluator("Hopper-v5", network, own_networks=limits) as evaluator,
            pytest.raises(UserError, match=words),
        ):
            evaluator.evaluate(episodes)
    with pytest.raises(UserError, match='need hardware.engine = "native"'):
        LocalEvaluator("Hopper-v5", network, own_networks=OwnNetworkLimits(1, 500), engine="tensorflow")
