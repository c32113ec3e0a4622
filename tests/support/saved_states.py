"""States of every algorithm, and genomes of every kind, for tests that store, damage and read them."""

from dataclasses import is_dataclass

import numpy as np

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import Training
from neuroevo.core.genome import Center, Genome, LowRank, Scaled
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.training.loop import train
from neuroevo.training.state import start
from tests.support.toy import ToyEvaluator

TRAINING = Training(seed=4, generations=4, validation_episodes=2, test_episodes=3)
BOUNDS = {"low": [-3.0, -3.0], "high": [3.0, 3.0]}
SMALL = {"canonical_es": {"parents": 6}, "map_elites": BOUNDS, "me_es": BOUNDS, "ribs": {"emitters": 3, **BOUNDS}}
ALGORITHM = {name: kind(population=24, **SMALL.get(name, {})) for name, kind in ALGORITHMS.items()}
CENTERS = (Center([0.5, -1.0]), Center(np.arange(8)))
FAMILY = [
    Genome(7),
    Genome(7).child(1, 0.5),
    Genome(7).child(1, 0.5).child(2, 0.25),
    Genome(9).child(3, 0.5, LowRank(2)),
    Genome(7, 3).child(1, 0.5),
    Genome(CENTERS[0]).child(4, -0.5),
    Genome(CENTERS[1]).child(5, 1.0, Scaled(CENTERS[0])).child(6, 0.0),
]


def trained(algorithm):
    """The TrainState after three generations, with evaluations that are not over and statistics."""
    begun = start(algorithm, TRAINING, observation_statistics=ObservationStatistics())
    toy = ToyEvaluator(late=2, failed=lambda episode: "it fell" if episode.seed % 5 == 0 else "")
    states = [state for state, _ in train(algorithm, toy, TRAINING, begun)]
    state = next(each for each in states if each.generation == 3)
    assert state.pending
    return state


def same(a, b):
    """Equality with types, down to the dtypes and bits of arrays."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if is_dataclass(a):
        return all(same(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return a == b
