"""The weights of genomes and sums of noise, made by the native core: what algorithms that move vectors need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.native.noise import noise_sum
from neuroevo.native.population import Population


class NativeWeights:
    """Of networks, layer lists in text form; satisfies the Weights protocol of neuroevo/core/evaluator.py.

    device: where noise is added up, "cpu" or "gpu", with the same bits. dimensions: D of each network.
    """

    def __init__(self, networks: Sequence[str], device: str = "cpu"):
        self._population = Population(networks, rows=1)
        self._device = device
        self.dimensions: Sequence[int] = self._population.dimensions

    def theta(self, genome: Genome) -> np.ndarray:
        """The genome's weights, float32 [D], the bits that a population plays.

        UserError: its center has another size.
        """
        population, network = self._population, genome.network
        if isinstance(genome.base, Center):
            _, thetas = thetas_of([genome], self.dimensions)
            population.assign([0], [network], thetas)
        else:
            population.init([0], [network], [genome.base])
        seeds, scales = zip(*genome.chain, strict=True) if genome.chain else ((), ())
        population.perturb([0] * len(seeds), [0] * len(seeds), seeds, scales)
        return population.read([0])[0, : self.dimensions[network]]

    def noise_sum(self, seeds: Sequence[int], weights: Sequence[float], dimension: int) -> np.ndarray:
        """The sum of weights[i] * noise(seeds[i]), float32 [dimension]."""
        return noise_sum(seeds, weights, dimension, device=self._device)


def base_seed(genome: Genome) -> int:
    """The seed of the initial weights; 0 for a genome that has a dense vector instead."""
    return 0 if isinstance(genome.base, Center) else genome.base


def vector_of(center: Center, network: int, dimensions: Sequence[int]) -> np.ndarray:
    """float32 [D]. dimensions: D of each network. UserError: there is no such network or the vector does not fit it."""
    vector = center.vector
    if not 0 <= network < len(dimensions):
        raise UserError(f"network {network} of a genome is out of range [0, {len(dimensions)})")
    if len(vector) != dimensions[network]:
        raise UserError(
            f"a genome starts from {len(vector):,} weights, expected {dimensions[network]:,} as network {network} has"
        )
    return vector


def thetas_of(genomes: Sequence[Genome | None], dimensions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each genome the index of its dense vector, or -1 without one, int64 [G]; and the vectors, float32 [V, max D],
    zeros after the D of a smaller network. None stands for a genome that needs none. UserError: as vector_of().
    """
    theta_of = np.full(len(genomes), -1, np.int64)
    numbers: dict[Center, int] = {}
    vectors = []
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
