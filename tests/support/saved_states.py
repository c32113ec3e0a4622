"""What runs have in their files: checkpoints of every algorithm, genomes, arrays, for tests that damage them."""

import hashlib
import io
import json

import numpy as np

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome, LowRank
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.runs.checkpoint import VERSION, Checkpoint, to_bytes
from neuroevo.training.loop import train
from neuroevo.training.state import start
from tests.support.toy import ToyEvaluator

TRAINING = Training(seed=4, generations=4, validation_episodes=2, test_episodes=3)
ALGORITHM = {name: kind(population=24) for name, kind in ALGORITHMS.items()}
FAMILY = [
    Genome(7),
    Genome(7).child(1, 0.5),
    Genome(7).child(1, 0.5).child(2, 0.25),
    Genome(9).child(3, 0.5, LowRank(2)),
]


def trained(algorithm):
    """The checkpoint of a state after three generations, with evaluations that are not over and statistics."""
    begun = start(algorithm, TRAINING, observation_statistics=ObservationStatistics())
    toy = ToyEvaluator(late=2, failed=lambda episode: "it fell" if episode.seed % 5 == 0 else "")
    states = [state for state, _ in train(algorithm, toy, TRAINING, begun)]
    state = next(each for each in states if each.generation == 3)
    assert state.pending
    lengths = {"metrics.jsonl": 30, "elites.jsonl": 40}
    return to_bytes(Checkpoint(state, {"training": {"seed": 4}}, lengths))


def with_sum(content):
    """A checkpoint of everything after its first line."""
    sum_of = hashlib.sha256(content).hexdigest()
    head = {"format": "neuroevo checkpoint", "version": VERSION, "bytes": len(content), "sha256": sum_of}
    return json.dumps(head).encode() + b"\n" + content


def npy(array):
    """An array in NumPy's format."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
