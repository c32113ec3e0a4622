"""Episodes as arrays: the result of pack(), and rejection of invalid values by the ops and the C interface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.episode import Episode
from neuroevo.core.errors import NativeError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.rollout import Rollout
from neuroevo.native.submission import Submission, pack
from neuroevo.networks.architectures import mlp, network_text
from neuroevo.rollout.tensorflow.ops import load_ops

NORMALIZER = Normalizer(5, np.zeros(11), np.ones(11))
CENTER = Center(np.arange(7.0))
GENOMES = [Genome(20).child(30, 0.5).child(31, 0.25), Genome(CENTER), Genome(21, network=1).child(32, 1.0), Genome(22)]


def packed() -> Submission:
    """6 episodes of 4 genomes; the third genome starts from row 1 and applies its chain."""
    episodes = [Episode(GENOMES[i % 4], 100 + i, i, NORMALIZER if i % 2 else None) for i in range(6)]
    sources = {genome: (1 if genome is GENOMES[2] else None, genome.mutations) for genome in GENOMES}
    return pack(
        episodes,
        frame_skip=4,
        dimensions=[7, 9],
        first_id=50,
        source=sources.__getitem__,
        normalizers={NORMALIZER: 3},
    )


def test_what_is_packed() -> None:
    expected = {
        "episode_ids": [50, 51, 52, 53, 54, 55],
        "episode_genomes": [0, 1, 2, 3, 0, 1],
        "episode_seeds": [100, 101, 102, 103, 104, 105],
        "episode_max_frames": [0, 4, 8, 12, 16, 20],
        "episode_normalizers": [-1, 3, -1, 3, -1, 3],
        "genome_ids": [56, 57, 58, 59],
        "genome_networks": [0, 0, 1, 0],
        "genome_sources": [-1, -1, 1, -1],
        "genome_seeds": [20, 0, 21, 22],
        "genome_thetas": [-1, 0, -1, -1],
        "chain_splits": [0, 2, 2, 3, 3],
        "chain_seeds": [30, 31, 32],
        "chain_scales": [0.5, 0.25, 1.0],
        "chain_spreads": [-1, -1, -1],
        "thetas": [[0, 1, 2, 3, 4, 5, 6, 0, 0]],
    }
    arrays = packed().arrays()
    assert {name: array.tolist() for name, array in arrays.items()} == expected
    dtypes = {"genome_networks": np.int32, "chain_scales": np.float32, "thetas": np.float32}
    assert {name: array.dtype for name, array in arrays.items()} == {
        name: np.dtype(dtypes.get(name, np.int64)) for name in expected
    }
    nothing = pack([], frame_skip=1, dimensions=[3])
    assert nothing.chain_splits.tolist() == [0] and nothing.thetas.shape == (0, 3)


def changed(array: np.ndarray, index: int, value: int) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


BAD = {
    "splits that begin late": ("chain_splits", 0, 1, "chain_splits begin at 1, expected 0"),
    "splits below 0": ("chain_splits", 0, -2, "chain_splits begin at -2, expected 0"),
    "splits that descend": ("chain_splits", 2, 1, r"chain_splits of genome 1 are 2, 1, expected ascending in \[0, 3\]"),
    "splits past the end": ("chain_splits", 1, 10**12, "chain_splits of genome 0 are 0, 1000000000000, expected asc"),
    "splits that end early": ("chain_splits", 4, 2, "chain_splits of genome 3 are 3, 2, expected ascending"),
    "a genome that is not there": ("episode_genomes", 2, 4, r"genome of an episode 4 is out of range \[0, 4\)"),
    "a genome below 0": ("episode_genomes", 2, -1, r"genome of an episode -1 is out of range \[0, 4\)"),
    "a theta that is not there": ("genome_thetas", 0, 1, r"theta of a genome 1 is out of range \[0, 1\)"),
    "a theta below -1": ("genome_thetas", 0, -2, r"theta of a genome -2 is out of range \[0, 1\)"),
    "a theta and a row": ("genome_thetas", 2, 0, "genome (2|58) has a theta and source row 1, expected one of them"),
    "a row of the lanes": ("genome_sources", 0, 2, r"source row 2 of genome (0|56) is out of range \[-1, 2\)"),
    "a row below -1": ("genome_sources", 0, -5, r"source row -5 of genome (0|56) is out of range \[-1, 2\)"),
    "a spread of the lanes": ("chain_spreads", 1, 2, r"spread row 2 of genome (0|56) is out of range \[-1, 2\)"),
    "a spread below -1": ("chain_spreads", 2, -2, r"spread row -2 of genome (2|58) is out of range \[-1, 2\)"),
    "a network below 0": ("genome_networks", 1, -1, "network of genome 1 is -1, expected 0 or more"),
    "a cut-off below 0": ("episode_max_frames", 3, -4, "max_frames of episode (3|53) is -4, expected 0 or more"),
    "a normalizer below -1": ("episode_normalizers", 3, -2, "normalizer of episode (3|53) is -2, expected -1"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_values(bad: str) -> None:
    name, index, value, message = BAD[bad]
    submission = replace(packed(), **{name: changed(getattr(packed(), name), index, value)})
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=2, first_row=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        load_ops().episode_queue_submit(queue, **submission.arrays(), priority=0)
    pool = EnvPool(registry.resolve("hard_maze"), 2)
    text = network_text(mlp, pool.observation_dtype.name, pool.observation_shape, pool.num_actions)
    rollout = Rollout(pool, Population([text], 4), lanes=1, slots=2, first_row=2)
    with pytest.raises(NativeError, match=message):
        rollout.submit(submission)
    rollout.close()


@pytest.mark.parametrize(
    ("name", "array", "of_op", "of_ours"),
    [
        ("chain_splits", [0, 2, 3], r"input 'chain_splits' has shape \[3\], expected \[5\]", r"has shape \[3\]"),
        ("episode_seeds", [1], r"input 'episode_seeds' has shape \[1\], expected \[6\]", r"has shape \[1\], expected"),
        ("genome_sources", [[-1]] * 4, "input 'genome_sources' has shape", r"genome_sources has shape \[4, 1\]"),
    ],
)
def test_bad_shapes(name: str, array: list, of_op: str, of_ours: str) -> None:
    submission = replace(packed(), **{name: np.array(array, np.int64)})
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=2, first_row=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=of_op):
        load_ops().episode_queue_submit(queue, **submission.arrays(), priority=0)
    with pytest.raises(ValueError, match=of_ours):
        submission.for_c()


def test_bad_dtypes_for_c() -> None:
    with pytest.raises(ValueError, match="episode_seeds .*int32.* int64"):
        replace(packed(), episode_seeds=np.zeros(6, np.int32)).for_c()
    with pytest.raises(ValueError, match="episode_seeds .*contiguous"):
        replace(packed(), episode_seeds=np.zeros(12, np.int64)[::2]).for_c()
