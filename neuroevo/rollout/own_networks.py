"""Assignment of genomes' own networks to places in a population's list of networks."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from neuroevo.core.errors import NativeArgumentError, UserError
from neuroevo.core.evaluator import OwnNetworkLimits
from neuroevo.core.genome import Genome
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import output_size, split_lines
from neuroevo.rollout.engine import EnginePopulation
from neuroevo.rollout.row_cache import RowCache

_SPARE = 8  # additional places for candidates and elites of other generations
_KEPT = 10_000  # maximum number of cached translations per place


def places_for(limits: OwnNetworkLimits, configured: str) -> list[str]:
    """Return texts of placeholder networks, as large as the limits, which own networks can replace.

    There are enough for two populations, since test episodes of an earlier generation may still be running.

    Args:
        limits: Limits of the own networks.
        configured: Text of the configured network.
    """
    (_, _, *dims), outputs = split_lines(configured)[0], output_size(configured)
    inputs, state = math.prod(map(int, dims)), ""
    units = max(1, -(-limits.weights // (inputs + outputs)))
    if limits.units:
        state = f"lstm {limits.units} 0; "
    text = f"{configured.split(';')[0]}; dense {units} 0; relu; {state}dense {outputs} 0"
    return [text] * (2 * limits.count + _SPARE)


@dataclass
class _Place:
    """Index in the list of networks, and translated genomes by the digests of the originals."""

    index: int
    genomes: dict[bytes, Genome] = field(default_factory=dict)


class OwnNetworks:
    """Assignment of genomes' own networks to the last places of a population's list.

    Args:
        population: The population.
        places: Indices of the networks of places_for().
        weights: Computes the weights after a graft.
        cache: Cache from which the rows of replaced networks are removed.
    """

    def __init__(self, population: EnginePopulation, places: Sequence[int], weights: NativeWeights, cache: RowCache):
        self._population, self._weights, self._cache = population, weights, cache
        self._count, self._free = len(places), list(places)
        for place in places:  # so that placeholders do not determine the longest theta
            population.replace(place, weights.networks[0])
        self._places: OrderedDict[str, _Place] = OrderedDict()  # least recently used first

    def bring(self, genomes: Iterable[Genome], in_use: Collection[int]) -> bool:
        """Assign a place to each own network of genomes.

        Args:
            genomes: Any genomes.
            in_use: Places that must not be reassigned.

        Returns:
            Whether all networks have a place now; if not, the caller must wait until places become free.

        Raises:
            UserError: There are more own networks than places, or a network is too large.
        """
        texts = dict.fromkeys(genome.network for genome in genomes if isinstance(genome.network, str))
        if len(texts) > self._count:
            raise UserError(f"the genomes have {len(texts)} own networks, expected at most {self._count}")
        missing = []
        for text in texts:
            if text in self._places:
                self._places.move_to_end(text)
            else:
                missing.append(text)
        for text in missing:
            index = self._free.pop() if self._free else self._evict(texts, in_use)
            if index is None:
                return False
            try:
                self._population.replace(index, text)
            except NativeArgumentError as error:
                self._free.append(index)
                raise UserError(f"a genome's network cannot be played: {error}") from None
            self._places[text] = _Place(index)
        return True

    def translated(self, genome: Genome) -> Genome | None:
        """Translate a genome to an equivalent one without grafts whose network is the index of its place.

        Args:
            genome: Any genome.

        Returns:
            The translated genome; the genome itself if its network is a configured one; None if its network has no
            place.
        """
        if not isinstance(genome.network, str):
            return genome
        place = self._places.get(genome.network)
        if place is None:
            return None
        known, new = place.genomes, []
        if len(known) > _KEPT:
            known.clear()
        start = self._weights.without_grafts(genome)
        for each in start.line():
            if each.digest in known:
                break
            new.append(each)
        for each in reversed(new):
            parent = None if each.parent is None else known[each.parent.digest]
            known[each.digest] = (
                Genome(each.root, place.index)
                if parent is None or each.mutation is None
                else parent.child(*each.mutation)
            )
        return known[start.digest]

    def _evict(self, needed: Collection[str], in_use: Collection[int]) -> int | None:
        for text, place in self._places.items():
            if text not in needed and place.index not in in_use:
                del self._places[text]
                self._cache.drop(place.index)
                return place.index
        return None
