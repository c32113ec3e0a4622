"""Everything random in Python, as pure functions of (run seed, generation, purpose, index): nothing to store or resume.

The numbers are the raw 64-bit outputs of Philox keyed by SeedSequence(run seed, spawn_key=(purpose, generation)), which
NumPy promises never to change (NEP 19); the index is the position in that stream, so asking for more numbers leaves
the first ones as they were.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What numbers are drawn for. A value, once used, keeps its meaning: changing one changes every run.

    Algorithms of users may pass any integer of at least 1000 instead.
    """

    INITIAL_WEIGHTS = 0  # bases of fresh genomes
    PARENTS = 1  # which parent each offspring has
    MUTATIONS = 2  # noise seeds of mutations
    PAIRS = 3  # noise seeds of antithetic pairs
    CENTERS = 4  # which member of a meta-population goes on
    ARCHIVE = 5  # who enters an archive of behaviors
    POPULATION_EPISODES = 10
    VALIDATION_EPISODES = 11
    TEST_EPISODES = 12
    HELD_OUT_EPISODES = 13
    REFERENCE = 14  # random play, for virtual batch normalization


def raw(count: int, seed: int, generation: int, purpose: int) -> np.ndarray:
    """`count` independent uniform 64-bit numbers, uint64 [count]."""
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(purpose, generation))).random_raw(count)


def draw_seeds(count: int, seed: int, generation: int, purpose: int) -> list[int]:
    """`count` seeds, uniform in [0, 2**63)."""
    return (raw(count, seed, generation, purpose) >> np.uint64(1)).tolist()


def draw_indices(count: int, bound: int, seed: int, generation: int, purpose: int) -> list[int]:
    """`count` indices, uniform in [0, bound), by multiplying the upper 32 bits; bound at most 2**32."""
    upper = raw(count, seed, generation, purpose) >> np.uint64(32)
    return ((upper * np.uint64(bound)) >> np.uint64(32)).tolist()


def draw_uniforms(count: int, seed: int, generation: int, purpose: int) -> np.ndarray:
    """`count` numbers, float64 [count], uniform in [0, 1): the upper 53 bits of each."""
    return (raw(count, seed, generation, purpose) >> np.uint64(11)) * 2.0**-53


def held_out_seeds(count: int) -> list[int]:
    """Episode seeds that no training run uses, the same for every run, for comparing networks with each other."""
    return draw_seeds(count, 0, 0, Purpose.HELD_OUT_EPISODES)
