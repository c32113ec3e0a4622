"""Decoding of genomes into weights for lanes of simulators.

The native core decodes them, on the CPU. Even for a large population this takes a small part of a generation: 50
million weights, those of 5,000 members with 10,000 weights each, take 0.12 seconds on two cores.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Mutation
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights

_KEPT_BYTES = 512e6


class GenomeRows:
    """Decoder of genomes into rows of weights, with a cache of the most recent parents' weights.

    Args:
        weights: Weights of genomes with one network.
    """

    def __init__(self, weights: NativeWeights):
        self._weights, self._dimension = weights, weights.dimension(0)
        self._population, self._room = Population([weights.text(0)], rows=1), 1
        self._kept: OrderedDict[Genome, np.ndarray] = OrderedDict()
        self._most_kept = max(1, int(_KEPT_BYTES / (4 * self._dimension)))

    def rows(self, genomes: Sequence[Genome | None]) -> np.ndarray:
        """Return the weights of genomes.

        Args:
            genomes: K genomes; None stands for a row of zeros.

        Returns:
            The weights, float32 [K, D].

        Raises:
            UserError: A genome's center has another size, or a mutation is not Gaussian.
        """
        random: dict[int, int] = {}
        origins: dict[Genome, int] = {}
        sources: dict[int, int] = {}
        mutated: dict[int, tuple[int, float]] = {}
        for row, genome in enumerate(genomes):
            if genome is None:
                continue
            if genome.mutation is not None:
                mutated[row] = _gaussian(genome.mutation)
            elif not isinstance(genome.root, Center):
                random[row] = genome.root
                continue
            sources[row] = origins.setdefault(genome.parent or genome, len(genomes) + len(origins))
        if len(genomes) + len(origins) > self._room:
            self._room = len(genomes) + len(origins)
            self._population = Population([self._weights.text(0)], rows=self._room)
        population = self._population
        if origins:
            thetas = np.stack([self._theta(origin) for origin in origins])  # uses row 0
            population.assign([*origins.values()], [0] * len(origins), thetas)
        if random:
            population.init([*random], [0] * len(random), [*random.values()])
        if mutated:
            population.perturb([*mutated], [sources[row] for row in mutated], *zip(*mutated.values(), strict=True))
        rows = np.zeros((len(genomes), self._dimension), np.float32)
        places = {row: row if row in mutated else source for row, source in sources.items()}
        places |= {row: row for row in random}
        rows[[*places]] = population.read([*places.values()])
        return rows

    def _theta(self, genome: Genome) -> np.ndarray:
        """Return a genome's weights, computed from its nearest cached ancestor, float32 [D]."""
        mutations: list[tuple[int, float]] = []
        for ancestor in genome.line():
            if ancestor in self._kept or ancestor.mutation is None:
                break
            mutations.append(_gaussian(ancestor.mutation))
        theta = self._kept[ancestor] if ancestor in self._kept else self._weights.theta(ancestor)
        if mutations:
            seeds, scales = zip(*reversed(mutations), strict=True)
            self._population.assign([0], [0], theta[None])
            self._population.perturb([0] * len(seeds), [0] * len(seeds), seeds, scales)
            theta = self._population.read([0])[0]
        self._kept[genome] = theta
        self._kept.move_to_end(genome)
        while len(self._kept) > self._most_kept:
            self._kept.popitem(last=False)
        return theta


def _gaussian(mutation: Mutation) -> tuple[int, float]:
    """Return the seed and scale of a mutation. UserError: it is not Gaussian."""
    if mutation.kind != GAUSSIAN:
        raise UserError(f"a genome has a mutation of kind {mutation.kind}, expected Gaussian noise on the accelerator")
    return mutation.seed, mutation.scale
