"""Weights of genomes on the accelerator: made there of seeds, the bits that the native core plays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from neuroevo.accelerated import noise
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.native.weights import vector_of

_KEPT_BYTES = 512e6
_NO_PLACE = -1


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
            UserError: A genome's center has another size, or its last mutation is of low rank.
        """
        for each in genomes:
            if each is not None and each.rank:
                raise UserError(f"a genome's last mutation has rank {each.rank}, expected none on the accelerator")
        starts = self._random(genomes)
        origins = [None if _is_random(each) or each is None else (each.parent or each) for each in genomes]
        places = {each: place for place, each in enumerate(dict.fromkeys(each for each in origins if each is not None))}
        if places:
            table = [self._row(each) for each in places]
            padded = 1 << (len(table) - 1).bit_length()  # so that few programs are compiled
            table += table[-1:] * (padded - len(table))
            chosen = np.array([_NO_PLACE if each is None else places[each] for each in origins], np.int32)
            starts = _chosen(starts, jnp.stack(table), chosen)
        chains = [() if each is None else each.chain[-1:] for each in genomes]
        seeds = np.array([chain[0][0] if chain else 0 for chain in chains], np.uint64)
        factors = np.array([chain[0][1] if chain else 0 for chain in chains], np.float32)
        return noise.perturbed(starts, seeds, factors) if factors.any() else starts

    def _random(self, genomes: Sequence[Genome | None]) -> jax.Array:
        """The weights of those that are a seed alone, made at once; anything for the others."""
        seeds = [each.base if _is_random(each) and each is not None else None for each in genomes]
        if all(each is None for each in seeds):
            return jnp.zeros((len(genomes), self._dimension), jnp.float32)
        return noise.initial(np.array([each or 0 for each in seeds], np.uint64), self._scales)

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


def _is_random(genome: Genome | None) -> bool:
    """Whether it is a seed alone."""
    return genome is not None and not genome.chain and not isinstance(genome.base, Center)


@jax.jit
def _chosen(rows: jax.Array, table: jax.Array, places: jax.Array) -> jax.Array:
    """Rows [K, D], those from a table [P, D] that have a place there."""
    return jnp.where((places == _NO_PLACE)[:, None], rows, table[places])
