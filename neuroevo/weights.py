"""The weights of genomes and sums of noise, made by the native core: what algorithms that move vectors need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo import native
from neuroevo.centers import thetas_of
from neuroevo.genome import Center, Genome
from neuroevo.noise import noise_sum


class NativeWeights:
    """Of networks, layer lists in text form; satisfies the Weights protocol of neuroevo/algorithms/algorithm.py.

    device: where noise is added up, "cpu" or "gpu", with the same bits. dimensions: D of each network.
    """

    def __init__(self, networks: Sequence[str], device: str = "cpu"):
        self._population = native.Population(networks, rows=1)
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
