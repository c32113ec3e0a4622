"""Fill rows of a population with the weights of parents, and with the spreads of scaled mutations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.native.population import padded
from neuroevo.native.submission import Source
from neuroevo.native.weights import dense_root, network_index
from neuroevo.rollout.engine import EnginePopulation
from neuroevo.rollout.row_cache import RowCache

_PIECE = 200  # mutations per uninterruptible call: about half a second for LargeModel on 2 cores


class ParentRows:
    """Rows of a population from which the lanes' genomes start.

    Args:
        population: The population. Rows [0, count) hold parents and spreads; row `count` is scratch space.
        count: Number of cached rows.

    Attributes:
        population: The population.
        cache: Assignment of the cached rows.
    """

    def __init__(self, population: EnginePopulation, count: int):
        self.population, self._dimensions, self._scratch = population, population.dimensions, count
        self.cache = RowCache(count)

    def bring_parents(self, parents: Sequence[Genome], in_use: Collection[int]) -> None:
        """Compute the weights of parents, if there are enough rows; signals are handled between pieces of the work.

        Args:
            parents: The genomes to cache.
            in_use: Rows that must not change.
        """
        for fill in self.cache.require(parents, in_use):
            if fill.source is None:
                self._fill_from_root(fill.row, fill.genome)
            row, source = fill.row, fill.row if fill.source is None else fill.source
            for kind, alike in groupby(fill.mutations, key=lambda mutation: mutation.kind):
                mutations, spread = list(alike), -1
                if isinstance(kind, Scaled):
                    spread = self._scratch
                    self._fill_from_root(spread, Genome(kind.spread, fill.genome.network))
                for start in range(0, len(mutations), _PIECE):
                    seeds, scales, _ = zip(*mutations[start : start + _PIECE], strict=True)
                    count = len(seeds)
                    sources = [source] + [row] * (count - 1)
                    self.population.perturb([row] * count, sources, seeds, scales, [spread] * count)
                    source = row

    def bring_spreads(self, sources: Mapping[Genome, Source], in_use: Collection[int]) -> dict[Genome, int]:
        """Cache the spreads of the mutations that lanes will apply.

        Args:
            sources: Sources of the genomes that will be played.
            in_use: Rows that must not change.

        Returns:
            The row of each spread, keyed by a genome that has the spread as its root and the mutated network.

        Raises:
            UserError: There are more spreads than rows.
        """
        spreads = dict.fromkeys(
            Genome(mutation.kind.spread, genome.network)
            for genome, (_, mutations) in sources.items()
            for mutation in mutations
            if isinstance(mutation.kind, Scaled)
        )
        for fill in self.cache.require(spreads, in_use):
            self._fill_from_root(fill.row, fill.genome)
        rows = {spread: row for spread in spreads if (row := self.cache.row(spread)) is not None}
        if len(rows) < len(spreads):
            raise UserError(
                f"mutations are scaled by {len(spreads)} centers, which do not fit into the {self._scratch} parent "
                "rows, expected fewer, or a larger hardware.cache_megabytes"
            )
        return rows

    def _fill_from_root(self, row: int, genome: Genome) -> None:
        network = network_index(genome)
        if isinstance(genome.root, Center):
            theta = dense_root(genome, self._dimensions)
            self.population.assign([row], [network], padded([theta], self._dimensions))
        else:
            self.population.init([row], [network], [genome.root])
