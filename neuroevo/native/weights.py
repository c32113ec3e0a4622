"""The weights of genomes and sums of noise, made by the native core: what algorithms that move vectors need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.native.noise import low_rank_noise_sum, noise_sum
from neuroevo.native.population import Population


class NativeWeights:
    """The weights of genomes; satisfies the Weights protocol of neuroevo/core/evaluator.py.

    Attributes:
        dimensions: D of each network.
    """

    def __init__(self, networks: Sequence[str], device: str = "cpu"):
        """Makes one row.

        Args:
            networks: Layer lists in text form.
            device: Where noise is added up, "cpu" or "gpu", with the same bits; that of low rank always on the CPU.
        """
        self._population = Population(networks, rows=1)
        self._networks, self._device = networks, device
        self.dimensions: Sequence[int] = self._population.dimensions

    def theta(self, genome: Genome) -> np.ndarray:
        """A genome's weights, the bits that a population plays; rounded where its last mutation is of low rank.

        Args:
            genome: Of one of the networks.

        Returns:
            float32 [D].

        Raises:
            UserError: Its center has another size.
        """
        if genome.rank:
            return self._theta_of_member(genome)
        population, network = self._population, genome.network
        if isinstance(genome.base, Center):
            _, thetas = thetas_of([genome], self.dimensions)
            population.assign([0], [network], thetas)
        else:
            population.init([0], [network], [genome.base])
        seeds, scales = zip(*genome.chain, strict=True) if genome.chain else ((), ())
        population.perturb([0] * len(seeds), [0] * len(seeds), seeds, scales)
        return population.read([0])[0, : self.dimensions[network]]

    def _theta_of_member(self, genome: Genome) -> np.ndarray:
        parent = genome.parent
        assert parent is not None  # a genome with a rank has a mutation
        population, network = Population(self._networks, rows=2, float_rows=1, rank=genome.rank), genome.network
        theta = np.zeros((1, max(self.dimensions)), np.float32)
        theta[0, : self.dimensions[network]] = self.theta(parent)
        population.assign([0], [network], theta)
        (seed, scale) = genome.chain[-1]
        population.perturb([1], [0], [seed], [scale])
        return population.read([1])[0, : self.dimensions[network]]

    def noise_sum(self, seeds: Sequence[int], weights: Sequence[float], dimension: int) -> np.ndarray:
        """The sum of weights[i] * noise(seeds[i]).

        Args:
            seeds: [N].
            weights: [N].
            dimension: D.

        Returns:
            float32 [D].
        """
        return noise_sum(seeds, weights, dimension, device=self._device)

    def low_rank_noise_sum(self, seeds: Sequence[int], weights: Sequence[float], network: int, rank: int) -> np.ndarray:
        """The same sum of the noise of mutations of a rank.

        Args:
            seeds: [N].
            weights: [N].
            network: Which is mutated.
            rank: In [1, 64].

        Returns:
            float32 [D].
        """
        return low_rank_noise_sum(self._networks[network], rank, seeds, weights, self.dimensions[network])


def base_seed(genome: Genome) -> int:
    """The seed of the initial weights; 0 for a genome that has a dense vector instead.

    Args:
        genome: Any.
    """
    return 0 if isinstance(genome.base, Center) else genome.base


def vector_of(center: Center, network: int, dimensions: Sequence[int]) -> np.ndarray:
    """The weights of a center.

    Args:
        center: Where a genome starts.
        network: The genome's.
        dimensions: D of each network.

    Returns:
        float32 [D].

    Raises:
        UserError: There is no such network or the vector does not fit it.
    """
    vector = center.vector
    if not 0 <= network < len(dimensions):
        raise UserError(f"network {network} of a genome is out of range [0, {len(dimensions)})")
    if len(vector) != dimensions[network]:
        raise UserError(
            f"a genome starts from {len(vector):,} weights, expected {dimensions[network]:,} as network {network} has"
        )
    return vector


def thetas_of(genomes: Sequence[Genome | None], dimensions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The dense vectors that genomes start from, each once.

    Args:
        genomes: [G]; None stands for one that needs none.
        dimensions: D of each network.

    Returns:
        For each genome the index of its vector, or -1 without one, int64 [G]; and the vectors, float32 [V, max D],
        zeros after the D of a smaller network.

    Raises:
        UserError: As vector_of().
    """
    theta_of = np.full(len(genomes), -1, np.int64)
    numbers: dict[Center, int] = {}
    vectors: list[np.ndarray] = []
    for i, genome in enumerate(genomes):
        if genome is not None and isinstance(genome.base, Center):
            vector = vector_of(genome.base, genome.network, dimensions)
            theta_of[i] = numbers.setdefault(genome.base, len(vectors))
            if theta_of[i] == len(vectors):
                vectors.append(vector)
    thetas = np.zeros((len(vectors), max(dimensions)), np.float32)
    for theta, vector in zip(thetas, vectors, strict=True):
        theta[: len(vector)] = vector
    return theta_of, thetas
