"""All random numbers in Python, as pure functions of (run seed, generation, purpose, index): no state is stored.

The numbers are the raw 64-bit outputs of Philox keyed by SeedSequence(run seed, spawn_key=(purpose, generation)), which
NumPy promises never to change (NEP 19). The index is the position in that stream, so drawing more numbers does not
change the first ones.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """Purpose for which random numbers are drawn.

    The values must not change, since that would change every run. User-defined algorithms may pass any integer of at
    least 1000 instead.
    """

    INITIAL_WEIGHTS = 0  # bases of fresh genomes
    PARENTS = 1  # selection of parents
    MUTATIONS = 2  # noise seeds of mutations
    PAIRS = 3  # noise seeds of antithetic pairs
    CENTERS = 4  # selection of the center that moves
    ARCHIVE = 5  # selection of behaviors for the archive
    SIGMAS = 6  # changes of self-adaptive mutation powers
    NETWORKS = 7  # changes of genomes' networks
    POPULATION_EPISODES = 10
    VALIDATION_EPISODES = 11
    TEST_EPISODES = 12
    HELD_OUT_EPISODES = 13
    REFERENCE = 14  # random play, for virtual batch normalization


def raw(count: int, seed: int, generation: int, purpose: int) -> np.ndarray:
    """Draw independent uniform 64-bit numbers.

    Args:
        count: Number of draws.
        seed: The run's seed.
        generation: Number of the generation.
        purpose: A Purpose, or an integer of at least 1000.

    Returns:
        uint64 [count].
    """
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(purpose, generation))).random_raw(count)


def draw_seeds(count: int, seed: int, generation: int, purpose: int) -> list[int]:
    """Draw `count` seeds, uniform in [0, 2**63); the other arguments are those of raw()."""
    return (raw(count, seed, generation, purpose) >> np.uint64(1)).tolist()


def draw_indices(count: int, bound: int, seed: int, generation: int, purpose: int) -> list[int]:
    """Draw `count` indices, uniform in [0, bound), by multiplying the upper 32 bits of each number by the bound.

    Args:
        count: Number of draws.
        bound: The number of possible values, at most 2**32.
        seed: The run's seed.
        generation: Number of the generation.
        purpose: A Purpose, or an integer of at least 1000.

    Returns:
        The indices.
    """
    upper = raw(count, seed, generation, purpose) >> np.uint64(32)
    return ((upper * np.uint64(bound)) >> np.uint64(32)).tolist()


def draw_uniforms(count: int, seed: int, generation: int, purpose: int) -> np.ndarray:
    """Draw float64 [count], uniform in [0, 1), from the upper 53 bits; the other arguments are those of raw()."""
    return (raw(count, seed, generation, purpose) >> np.uint64(11)) * 2.0**-53


class Draws:
    """Stream of random numbers of one purpose, for algorithms that do not know their number in advance.

    Args:
        seed: The run's seed.
        generation: Number of the generation.
        purpose: A Purpose, or an integer of at least 1000.
    """

    def __init__(self, seed: int, generation: int, purpose: int):
        self._key, self._used, self._drawn = (seed, generation, purpose), 0, np.zeros(0)

    def uniforms(self, count: int) -> np.ndarray:
        """Return float64 [count] in [0, 1)."""
        end = self._used + count
        if end > len(self._drawn):
            self._drawn = draw_uniforms(2 * end + 1024, *self._key)
        self._used = end
        return self._drawn[end - count : end]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.uniforms(1)[0] < probability)

    def index(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return int(self.uniforms(1)[0] * bound)

    def noise(self, count: int) -> np.ndarray:
        """Return float64 [count] with mean 0 and variance 1: sums of four uniforms, bit-identical on every machine."""
        a, b, c, d = self.uniforms(4 * count).reshape(4, count)
        return np.sqrt(3.0) * ((a + b) + (c + d) - 2)


def held_out_seeds(count: int) -> list[int]:
    """Return `count` episode seeds for comparing networks, equal for every run and never used for training."""
    return draw_seeds(count, 0, 0, Purpose.HELD_OUT_EPISODES)
