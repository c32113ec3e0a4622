"""Decoding of genomes into weights for lanes of simulators.

The native core decodes them, on the CPU. Even for a large population this takes a small part of a generation: 50
million weights, those of 5,000 members with 10,000 weights each, take 0.12 seconds on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights

_KEPT_BYTES = 512e6


class GenomeRows:
    """Decoder of genomes into rows of weights, with a cache of the most recent parents' weights.

    Args:
        weights: Weights of genomes with one network.
    """

    def __init__(self, weights: NativeWeights):
        self._text, self._dimension = weights.text(0), weights.dimension(0)
        self._theta = lru_cache(max(1, int(_KEPT_BYTES / (4 * self._dimension))))(weights.theta)
        self._population, self._room = Population([self._text], rows=1), 1

    def rows(self, genomes: Sequence[Genome | None]) -> np.ndarray:
        """Return the weights of genomes.

        Args:
            genomes: K genomes; None stands for a row of zeros.

        Returns:
            The weights, float32 [K, D].

        Raises:
            UserError: A genome's center has another size, or its last mutation is not Gaussian.
        """
        random: dict[int, int] = {}
        origins: dict[Genome, int] = {}
        sources: dict[int, int] = {}
        mutated: dict[int, tuple[int, float]] = {}
        for row, genome in enumerate(genomes):
            if genome is None:
                continue
            if genome.mutation is not None:
                if genome.mutation.kind != GAUSSIAN:
                    kind = genome.mutation.kind
                    raise UserError(f"a genome has a mutation of kind {kind}, expected Gaussian noise")
                mutated[row] = genome.mutation.seed, genome.mutation.scale
            elif not isinstance(genome.root, Center):
                random[row] = genome.root
                continue
            sources[row] = origins.setdefault(genome.parent or genome, len(genomes) + len(origins))
        if len(genomes) + len(origins) > self._room:
            self._room = len(genomes) + len(origins)
            self._population = Population([self._text], rows=self._room)
        population = self._population
        if random:
            population.init([*random], [0] * len(random), [*random.values()])
        if origins:
            population.assign([*origins.values()], [0] * len(origins), np.stack([*map(self._theta, origins)]))
        if mutated:
            population.perturb([*mutated], [sources[row] for row in mutated], *zip(*mutated.values(), strict=True))
        rows = np.zeros((len(genomes), self._dimension), np.float32)
        places = {row: row if row in mutated else source for row, source in sources.items()}
        places |= {row: row for row in random}
        rows[[*places]] = population.read([*places.values()])
        return rows
