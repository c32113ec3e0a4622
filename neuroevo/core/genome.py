"""A genome: the seeds that determine a network's weights, instead of the weights (Such et al. 2017, section 3).

theta = init(base), then for each (seed, scale) of the chain in order: theta += scale * noise(seed). Algorithms that
move a dense vector, such as evolution strategies, use it as the base, a Center; offspring are again seeds in the chain.
The last mutation may be one of low rank (Sarkar et al. 2025), whose noise is a product of thin matrices in each layer:
custom_ops/networks/low_rank.h.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SEED_BITS = 63  # seeds are non-negative int64, the widest integer that TensorFlow, JSON and NumPy all carry unchanged
CENTER_PREFIX = "sha256:"
MAX_RANK = 64  # of a mutation


class Center:
    """A dense vector of weights, named by a hash of its contents: centers with the same name are equal.

    Args:
        vector: D finite numbers, copied as float32 [D].

    Attributes:
        name: "sha256:" and the hash of the vector's bytes in hexadecimal.

    Raises:
        ValueError: The vector is not [D], is empty, or has a number that is not finite in 32 bits.
    """

    __slots__ = ("__weakref__", "_vector", "name")

    def __init__(self, vector: Sequence[float] | np.ndarray):
        with np.errstate(over="ignore"):
            own = np.array(vector, "<f4")
        if own.ndim != 1 or own.size == 0:
            raise ValueError(f"a center's vector has shape {list(own.shape)}, expected [D]")
        for i in np.flatnonzero(~np.isfinite(own))[:1]:
            raise ValueError(f"weight {i} of a center is {vector[i]}, expected a number that is finite in 32 bits")
        own.flags.writeable = False
        self._vector: np.ndarray | None = own
        self.name: str = CENTER_PREFIX + hashlib.sha256(own.tobytes()).hexdigest()

    @classmethod
    def named(cls, name: str) -> Center:
        """Makes a center from its name alone; reading its vector raises LookupError.

        Args:
            name: The name of another center.

        Returns:
            A center that is equal to the other one.
        """
        center = cls.__new__(cls)
        center._vector, center.name = None, name
        return center

    @property
    def vector(self) -> np.ndarray:
        """The weights, float32 [D], read-only.

        Raises:
            LookupError: Only the name is known.
        """
        if self._vector is None:
            raise LookupError(f"the weights of the center {self.name} are not loaded, only its name")
        return self._vector

    @property
    def has_weights(self) -> bool:
        """Whether the vector is known, and not only the name."""
        return self._vector is not None

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Center) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Center({self.name[: len(CENTER_PREFIX) + 12]})"


@dataclass(frozen=True)
class Genome:
    """A base and a chain of mutations.

    Attributes:
        base: Seed of the initial weights, in [0, 2**63), or a Center in their place.
        chain: Mutations in order. Each is a noise seed in [0, 2**63) and a scale that float32 represents exactly.
        network: Index of the network in the population's list of networks.
        rank: Rank of the last mutation's noise, in [1, MAX_RANK]; 0: all weights have noise of their own, as every
            other mutation has it.
    """

    base: int | Center
    chain: tuple[tuple[int, float], ...] = ()
    network: int = 0
    rank: int = 0

    def child(self, seed: int, scale: float, rank: int = 0) -> Genome:
        """Returns this genome with one more mutation.

        Args:
            seed: Noise seed, in [0, 2**63).
            scale: Factor of the noise, a value that float32 represents exactly.
            rank: Of the noise, as the attribute.

        Returns:
            The offspring.

        Raises:
            ValueError: This genome's own last mutation is of low rank: nothing can follow it.
        """
        if self.rank:
            raise ValueError(f"a genome's last mutation has rank {self.rank}, expected 0 for it to have a child")
        return Genome(self.base, (*self.chain, (seed, scale)), self.network, rank)

    @property
    def parent(self) -> Genome | None:
        """The genome without its last mutation, or None if it has no mutation."""
        return Genome(self.base, self.chain[:-1], self.network) if self.chain else None
