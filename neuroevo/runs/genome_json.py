"""Write genomes as JSON and read them back. In a list, each refers to the mutations it shares with the one before it.

    {"base": 12, "network": 0, "same": 40, "chain": [[seed, scale], ...]}

is the genome after the first 40 mutations of the previous genome, which has the same root and network, and then these.
Relatives share nearly all mutations, so the elites of G generations take O(G) instead of O(G squared) numbers. Seeds
need 63 bits, so a JSON reader must not turn numbers into floats. A root that is a center is written as its name,
"sha256:..."; its weights are stored elsewhere. A scaled mutation is [seed, scale, name of its spread]; a last mutation
of low rank adds "rank", a number in [1, 64].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuroevo.core.bounds import MAX_COUNT
from neuroevo.core.genome import CENTER_PREFIX, GAUSSIAN, SEED_BITS, Center, Genome, LowRank, Mutation, Scaled

_KEYS = {"base", "network", "same", "chain"}
_CENTER = re.compile(f"{CENTER_PREFIX}[0-9a-f]{{64}}")
_LARGEST = float(np.finfo(np.float32).max)


def genome_to_json(genome: Genome, before: Genome | None = None) -> dict[str, Any]:
    """Encode a genome as plain values for JSON.

    Args:
        genome: The genome to write.
        before: The genome that a reader has read before, whose shared mutations are left out; None writes all.

    Returns:
        The keys base, network, same and chain, as the module's docstring shows; and rank where it is not 0.
    """
    known = set() if before is None else {each.digest for each in before.line()}
    chain: list[list[Any]] = []
    for each in genome.line():
        if each.digest in known or each.mutation is None:
            break
        seed, scale, kind = each.mutation
        chain.append([seed, scale, *([kind.spread.name] if isinstance(kind, Scaled) else [])])
    base = genome.root.name if isinstance(genome.root, Center) else genome.root
    same = genome.depth - len(chain)
    last = genome.mutation.kind if genome.mutation is not None else GAUSSIAN
    rank = {"rank": int(last.rank)} if isinstance(last, LowRank) else {}
    return {"base": base, "network": genome.network, "same": same, "chain": chain[::-1], **rank}


def genome_from_json(
    value: Mapping[str, Any], before: Genome | None = None, centers: Mapping[str, Center] | None = None
) -> Genome:
    """Read a genome that genome_to_json wrote.

    Args:
        value: The keys base, network, same and chain, and perhaps rank.
        before: The same genome as was given to genome_to_json.
        centers: Centers with their weights, by name. A genome whose center is not among them only knows its name.

    Returns:
        The genome.

    Raises:
        ValueError: The values are not those of a genome, or it shares mutations with a genome that is not `before`.
    """
    reader = GenomeReader(centers, before)
    reader.read(value)
    return reader.genome


class GenomeReader:
    """Reader of genomes, each of which is written relative to the one before it."""

    def __init__(self, centers: Mapping[str, Center] | None = None, before: Genome | None = None):
        """Read nothing yet.

        Args:
            centers: Centers with their weights, by name. Genomes whose center is not among them only know its name.
            before: The genome that the first one is written relative to, if any.
        """
        self._centers = centers or {}
        self._line = [] if before is None else list(before.line())[::-1]

    def read(self, value: object) -> None:
        """Read the next genome.

        Args:
            value: The keys base, network, same and chain, and perhaps rank.

        Raises:
            ValueError: The values are not those of a genome, or it shares mutations with one that is not there.
        """
        if not isinstance(value, Mapping) or not _KEYS <= set(value) <= _KEYS | {"rank"}:
            raise ValueError(f"this is not a genome: {str(value)[:80]}, expected {', '.join(sorted(_KEYS))}")
        base, network, same = self._base(value["base"]), value["network"], value["same"]
        if type(network) is not int or not 0 <= network < MAX_COUNT:
            raise ValueError(f"network of a genome is {network!r}, expected a whole number in [0, {MAX_COUNT})")
        if type(same) is not int or same < 0:
            raise ValueError(f"same of a genome is {same!r}, expected a whole number of mutations")
        root = Genome(base, network)
        if same and (not self._line or self._line[0] != root or same >= len(self._line)):
            raise ValueError(f"a genome shares {same} mutations with one that is not there")
        mutations = self._mutations(value["chain"])
        if same and not mutations:  # "rank" is of the last mutation, also where that is shared
            shared = self._line[same].mutation
            if shared is not None and ("rank" in value or isinstance(shared.kind, LowRank)):
                mutations, same = [shared._replace(kind=GAUSSIAN)], same - 1
        if "rank" in value:
            if not mutations:
                raise ValueError(f"a genome has rank {str(value['rank'])[:80]} and no mutation, expected one")
            mutations[-1] = mutations[-1]._replace(kind=LowRank(value["rank"]))
        if same:
            del self._line[same + 1 :]
        else:
            self._line = [root]
        for mutation in mutations:
            self._line.append(self._line[-1].child(*mutation))

    @property
    def length(self) -> int:
        """Return how many mutations the last genome has."""
        return len(self._line) - 1

    @property
    def genome(self) -> Genome:
        """Return the last genome, after the first read()."""
        assert self._line, "read() comes first"
        return self._line[-1]

    def _base(self, base: object) -> int | Center:
        return self._center("base", base) if isinstance(base, str) else _own_seed("base", base)

    def _center(self, what: str, name: str) -> Center:
        if _CENTER.fullmatch(name) is None:
            raise ValueError(f"{what} of a genome is {name[:80]!r}, expected a seed or {CENTER_PREFIX} and 64 digits")
        return self._centers.get(name) or Center.named(name)

    def _mutations(self, chain: object) -> list[Mutation]:
        """Return mutations as genome_to_json writes them. ValueError: they are malformed."""
        if not isinstance(chain, list):
            raise ValueError(f"this is not a genome: its chain is {str(chain)[:80]}, expected a list of [seed, scale]")
        mutations = []
        for item in chain:
            if not isinstance(item, list) or len(item) not in (2, 3):
                raise ValueError(f"this is not a genome: {str(item)[:80]} in its chain, expected [seed, scale]")
            seed, scale, *spread = item
            if type(scale) not in (float, int) or not abs(scale) <= _LARGEST:  # false for NaN
                raise ValueError(f"scale of a genome is {str(scale)[:80]}, expected a number that is finite in 32 bits")
            kind = Scaled(self._center("spread", str(spread[0]))) if spread else GAUSSIAN
            mutations.append(Mutation(_own_seed("seed", seed), float(scale), kind))
        return mutations


def genomes_to_json(genomes: Sequence[Genome]) -> list[dict[str, Any]]:
    """Encode genomes as plain values for JSON, each relative to the one before it."""
    return [genome_to_json(genome, before) for before, genome in zip([None, *genomes], genomes, strict=False)]


def genomes_from_json(values: Sequence[Mapping[str, Any]], centers: Mapping[str, Center] | None = None) -> list[Genome]:
    """Read genomes that genomes_to_json wrote.

    Args:
        values: One mapping per genome, in the order in which they were written.
        centers: Centers with their weights, by name. Genomes whose center is not among them only know its name.

    Returns:
        The genomes, in the same order.

    Raises:
        ValueError: The values are not those of genomes, or one that they refer to is missing.
    """
    reader, genomes = GenomeReader(centers), []
    for value in values:
        reader.read(value)
        genomes.append(reader.genome)
    return genomes


def _own_seed(what: str, number: object) -> int:
    """A seed as JSON has it. ValueError: it is none."""
    if type(number) is not int or not 0 <= number < 2**SEED_BITS:
        raise ValueError(f"{what} of a genome is {str(number)[:80]}, expected a whole number in [0, 2**{SEED_BITS})")
    return number
