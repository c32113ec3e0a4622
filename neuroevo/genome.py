"""A genome: the seeds from which a network's weights are made, never the weights (Such et al. 2017, section 3).

theta = init(base), then for each (seed, scale) of the chain in order: theta += scale * noise(seed).
"""

from __future__ import annotations

from dataclasses import dataclass

SEED_BITS = 63  # seeds are non-negative int64, the widest integer that TensorFlow, JSON and NumPy all carry unchanged


@dataclass(frozen=True)
class Genome:
    """Base plus chain of (seed, scale).

    base: seed of the initial weights, in [0, 2**63).
    chain: mutations in order, each (noise seed in [0, 2**63), scale, a float32 value).
    network: index of the network in the population's list of networks.
    """

    base: int
    chain: tuple[tuple[int, float], ...] = ()
    network: int = 0

    def child(self, seed: int, scale: float) -> Genome:
        """The genome with one more mutation."""
        return Genome(self.base, (*self.chain, (seed, scale)), self.network)

    @property
    def parent(self) -> Genome | None:
        """The genome without its last mutation, or None for an unmutated one."""
        return Genome(self.base, self.chain[:-1], self.network) if self.chain else None
