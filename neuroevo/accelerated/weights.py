"""Weights of genomes on the accelerator: made there of seeds, the bits that the native core plays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from neuroevo.accelerated import noise
from neuroevo.core.genome import Center, Genome
from neuroevo.native.weights import vector_of

_KEPT_BYTES = 512e6


class GenomeRows:
    """Makes rows of weights, and keeps those of parents, of which the newest are the likeliest to be asked for."""

    def __init__(self, scales: np.ndarray):
        """Nothing is kept yet.

        Args:
            scales: By how much the noise of initial weights is multiplied, float32 [D].
        """
        self._scales = jnp.asarray(scales)
        self._dimension = len(scales)
        self._kept: OrderedDict[Genome, jax.Array] = OrderedDict()
        self._most_kept = max(1, int(_KEPT_BYTES / (4 * self._dimension)))

    def rows(self, genomes: Sequence[Genome | None]) -> jax.Array:
        """The weights of genomes.

        Args:
            genomes: [K]; the program is compiled anew for each K. None: any weights.

        Returns:
            float32 [K, D].

        Raises:
            UserError: A genome's center has another size.
        """
        origins = [None if each is None else (each.parent or each) for each in genomes]
        self._make_seeded([each for each in origins if each is not None], len(genomes))
        known = {each: self._row(each) for each in dict.fromkeys(origins) if each is not None}
        nothing = jnp.zeros(self._dimension, jnp.float32)
        starts = jnp.stack([nothing if each is None else known[each] for each in origins])
        chains = [() if each is None else each.chain[-1:] for each in genomes]
        seeds = np.array([chain[0][0] if chain else 0 for chain in chains], np.uint64)
        factors = np.array([chain[0][1] if chain else 0 for chain in chains], np.float32)
        return noise.perturbed(starts, seeds, factors) if factors.any() else starts

    def _make_seeded(self, genomes: list[Genome], count: int) -> None:
        """Makes those that are a seed alone at once, as a population of random networks would else be made singly."""
        seeds = {each: each.base for each in genomes if not each.chain and not isinstance(each.base, Center)}
        missing = [each for each in seeds if each not in self._kept]
        if len(missing) > 1:
            padded = [seeds[each] for each in missing] + [0] * (count - len(missing))
            for genome, row in zip(missing, noise.initial(np.array(padded, np.uint64), self._scales), strict=False):
                self._keep(genome, row)

    def _row(self, genome: Genome) -> jax.Array:
        """The weights of one, by way of its nearest ancestor that is kept."""
        ancestor, chain = genome, []
        while ancestor not in self._kept and ancestor.chain:
            chain.append(ancestor.chain[-1])
            ancestor = Genome(ancestor.base, ancestor.chain[:-1], ancestor.network)
        row = self._kept[ancestor] if ancestor in self._kept else self._base(ancestor)
        for seed, scale in reversed(chain):
            row = noise.perturbed(row[None], np.array([seed], np.uint64), np.array([scale], np.float32))[0]
        self._keep(genome, row)
        return row

    def _base(self, genome: Genome) -> jax.Array:
        if isinstance(genome.base, Center):
            return jnp.asarray(vector_of(genome.base, genome.network, [self._dimension]))
        return noise.initial(np.array([genome.base], np.uint64), self._scales)[0]

    def _keep(self, genome: Genome, row: jax.Array) -> None:
        self._kept[genome] = row
        self._kept.move_to_end(genome)
        while len(self._kept) > self._most_kept:
            self._kept.popitem(last=False)
