"""Decoding of genomes into weights for lanes of simulators, bit-identical to the weights of the native core.

An accelerator decodes them itself. On the CPU the native core does so in a fraction of the time: with episodes of
twenty steps, noise computed by JAX took a fifth of the total time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neuroevo.accelerated import noise
from neuroevo.accelerated.networks import initial_scales
from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Mutation
from neuroevo.native.population import Population
from neuroevo.native.weights import network_index, root_seed, vector_of

_KEPT_BYTES = 512e6
_NO_PLACE = -1


class GenomeRows(ABC):
    """Decoder of genomes into rows of weights, with a cache of the most recent parents' weights."""

    def __init__(self, dimension: int):
        """Make a decoder with an empty cache.

        Args:
            dimension: Number of weights, D.
        """
        self._dimension = dimension
        self._kept: OrderedDict[Genome, Any] = OrderedDict()
        self._most_kept = max(1, int(_KEPT_BYTES / (4 * dimension)))

    def rows(self, genomes: Sequence[Genome | None]) -> Any:
        """Return the weights of genomes.

        Args:
            genomes: K genomes; JAX compiles a program for each K. The weights for None are arbitrary.

        Returns:
            The weights, float32 [K, D], an array of NumPy or JAX.

        Raises:
            UserError: A genome's center has another size, or a mutation is not Gaussian.
        """
        origins = [None if each is None or _is_random(each) else (each.parent or each) for each in genomes]
        table = {each: place for place, each in enumerate(dict.fromkeys(each for each in origins if each is not None))}
        rows = [self._row(each) for each in table]
        places = np.array([_NO_PLACE if each is None else table[each] for each in origins], np.int32)
        seeds = [None if each is None or not _is_random(each) else root_seed(each) for each in genomes]
        last = [None if each is None or each.mutation is None else _gaussian(each.mutation) for each in genomes]
        return self._made(seeds, rows, places, last)

    @abstractmethod
    def _made(
        self,
        seeds: Sequence[int | None],
        origins: Sequence[Any],
        places: np.ndarray,
        last: Sequence[tuple[int, float] | None],
    ) -> Any:
        """Return the weights of each row: random ones of its seed, else the origin at its place; then a mutation."""

    @abstractmethod
    def _initial(self, seed: int) -> Any:
        """Return the initial weights of a seed, float32 [D]."""

    @abstractmethod
    def _mutated(self, row: Any, seed: int, scale: float) -> Any:
        """Return a row [D] mutated by scale * noise(seed)."""

    def _row(self, genome: Genome) -> Any:
        """Return a genome's weights, computed from its nearest cached ancestor."""
        mutations = []
        for ancestor in genome.line():
            if ancestor in self._kept or ancestor.mutation is None:
                break
            mutations.append(_gaussian(ancestor.mutation))
        row = self._kept[ancestor] if ancestor in self._kept else self._root(ancestor)
        for seed, scale in reversed(mutations):
            row = self._mutated(row, seed, scale)
        self._keep(genome, row)
        return row

    def _root(self, genome: Genome) -> Any:
        if isinstance(genome.root, Center):
            return vector_of(genome.root, network_index(genome), self._dimension)
        return self._initial(genome.root)

    def _keep(self, genome: Genome, row: Any) -> None:
        self._kept[genome] = row
        self._kept.move_to_end(genome)
        while len(self._kept) > self._most_kept:
            self._kept.popitem(last=False)


class AcceleratedRows(GenomeRows):
    """Decoder in JAX, on JAX's default device."""

    def __init__(self, text: str, dimension: int):
        """Make a decoder with an empty cache.

        Args:
            text: The network as text.
            dimension: Number of weights, D.
        """
        super().__init__(dimension)
        self._scales = jnp.asarray(initial_scales(text, dimension))

    def _made(
        self,
        seeds: Sequence[int | None],
        origins: Sequence[Any],
        places: np.ndarray,
        last: Sequence[tuple[int, float] | None],
    ) -> Any:
        if all(seed is None for seed in seeds):
            starts = jnp.zeros((len(seeds), self._dimension), jnp.float32)
        else:
            starts = noise.initial(np.array([seed or 0 for seed in seeds], np.uint64), self._scales)
        if origins:
            padded = 1 << (len(origins) - 1).bit_length()  # to a power of two, so that few programs are compiled
            table = [*origins, *[origins[-1]] * (padded - len(origins))]
            starts = _chosen(starts, jnp.stack(table), places)
        factors = np.array([0 if each is None else each[1] for each in last], np.float32)
        mutations = np.array([0 if each is None else each[0] for each in last], np.uint64)
        return noise.perturbed(starts, mutations, factors) if factors.any() else starts

    def _initial(self, seed: int) -> Any:
        return noise.initial(np.array([seed], np.uint64), self._scales)[0]

    def _mutated(self, row: Any, seed: int, scale: float) -> Any:
        return noise.perturbed(row[None], np.array([seed], np.uint64), np.array([scale], np.float32))[0]


class NativeRows(GenomeRows):
    """Decoder in the native core."""

    def __init__(self, text: str, dimension: int):
        """Make a decoder with an empty cache.

        Args:
            text: The network as text.
            dimension: Number of weights, D.
        """
        super().__init__(dimension)
        self._text = text
        self._population = Population([text], rows=1)
        self._room = 1

    def _made(
        self,
        seeds: Sequence[int | None],
        origins: Sequence[Any],
        places: np.ndarray,
        last: Sequence[tuple[int, float] | None],
    ) -> Any:
        if len(seeds) > self._room:
            self._room = len(seeds)
            self._population = Population([self._text], rows=self._room)
        random = [row for row, seed in enumerate(seeds) if seed is not None]
        self._population.init(random, [0] * len(random), [seeds[row] for row in random])  # type: ignore[misc]
        others = np.flatnonzero(places != _NO_PLACE)
        if len(others):
            self._population.assign(others, [0] * len(others), np.stack(origins)[places[others]])
        mutated = [(row, *each) for row, each in enumerate(last) if each is not None]
        if mutated:
            rows, mutations, scales = zip(*mutated, strict=True)
            self._population.perturb(rows, rows, mutations, scales)
        made = np.zeros((len(seeds), self._dimension), np.float32)
        filled = np.union1d(random, others).astype(np.int64)
        made[filled] = self._population.read(filled)
        return made

    def _initial(self, seed: int) -> Any:
        self._population.init([0], [0], [seed])
        return self._population.read([0])[0]

    def _mutated(self, row: Any, seed: int, scale: float) -> Any:
        self._population.assign([0], [0], row[None])
        self._population.perturb([0], [0], [seed], [scale])
        return self._population.read([0])[0]


def _is_random(genome: Genome) -> bool:
    """Return whether a genome consists of a seed only."""
    return genome.mutation is None and not isinstance(genome.root, Center)


def _gaussian(mutation: Mutation) -> tuple[int, float]:
    """Return the seed and scale of a mutation. Raise UserError if it is not Gaussian."""
    if mutation.kind != GAUSSIAN:
        raise UserError(f"a genome has a mutation of kind {mutation.kind}, expected Gaussian noise on the accelerator")
    return mutation.seed, mutation.scale


@jax.jit
def _chosen(rows: jax.Array, table: jax.Array, places: jax.Array) -> jax.Array:
    """Replace the rows [K, D] that have a place in a table [P, D] by the table's rows."""
    return jnp.where((places == _NO_PLACE)[:, None], rows, table[places])
