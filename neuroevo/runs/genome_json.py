"""Write genomes as JSON and read them back. In a list, each refers to the mutations it shares with the one before it.

    {"base": 12, "network": 0, "same": 40, "chain": [[seed, scale], ...]}

stands for the first 40 mutations of the previous genome, which has the same base and network, followed by these.
Relatives share nearly all mutations, so the elites of G generations take O(G) instead of O(G squared) numbers. Seeds
need 63 bits, so a JSON reader must not turn numbers into floats. A base that is a center is written as its name,
"sha256:..."; its weights are kept elsewhere. A last mutation of low rank adds "rank", a number in [1, 64].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from neuroevo.core.bounds import MAX_COUNT
from neuroevo.core.genome import CENTER_PREFIX, MAX_RANK, SEED_BITS, Center, Genome

MAX_MUTATIONS = 1 << 25
"""How many the genomes of a list may have together: 268 MB in memory, while a file of kilobytes can say "same" of any
number. 31 genomes, as a genetic algorithm's checkpoint has, reach it after a million generations."""

_KEYS = {"base", "network", "same", "chain"}
_CENTER = re.compile(f"{CENTER_PREFIX}[0-9a-f]{{64}}")
_LARGEST = float(np.finfo(np.float32).max)


def genome_to_json(genome: Genome, before: Genome | None = None) -> dict[str, Any]:
    """Turns a genome into plain values for JSON.

    Args:
        genome: The genome to write.
        before: The genome that a reader will know already, whose shared mutations are left out; None writes all.

    Returns:
        The keys base, network, same and chain, as the module's docstring shows; and rank where it is not 0.

    Raises:
        ValueError: A seed is not a whole number in [0, 2**63), or the rank not one in [0, 64].
    """
    same = 0
    if before is not None and (before.base, before.network) == (genome.base, genome.network):
        pairs = zip(before.chain, genome.chain, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before.chain), len(genome.chain)))
    chain = [[_seed("seed", seed), float(scale)] for seed, scale in genome.chain[same:]]
    base = genome.base.name if isinstance(genome.base, Center) else _seed("base", genome.base)
    written = {"base": base, "network": int(genome.network), "same": same, "chain": chain}
    return {**written, "rank": _rank(genome.rank, bool(genome.chain))} if genome.rank else written


def genome_from_json(
    value: Mapping[str, Any], before: Genome | None = None, centers: Mapping[str, Center] | None = None
) -> Genome:
    """Reads a genome that genome_to_json wrote.

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
    """Reads genomes one after another, each of which is written relative to the one before it.

    Reading takes time and memory for what is written of each; only the genomes that are asked for are made whole.
    """

    def __init__(self, centers: Mapping[str, Center] | None = None, before: Genome | None = None):
        """Reads nothing yet.

        Args:
            centers: Centers with their weights, by name. Genomes whose center is not among them only know its name.
            before: The genome that the first one is written relative to, if any.
        """
        self._centers = centers or {}
        self._family = None if before is None else (before.base, before.network)
        self._chain = [] if before is None else list(before.chain)
        self._rank = 0

    def read(self, value: object) -> None:
        """Reads the next genome.

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
        if same and (self._family != (base, network) or same > len(self._chain)):
            raise ValueError(f"a genome shares {same} mutations with one that is not there")
        more = _mutations(value["chain"])
        rank = _rank(value["rank"], bool(same or more)) if "rank" in value else 0
        del self._chain[same:]
        self._chain += more
        self._family, self._rank = (base, network), rank

    @property
    def length(self) -> int:
        """How many mutations the last genome has."""
        return len(self._chain)

    @property
    def genome(self) -> Genome:
        """The last genome, after the first read()."""
        assert self._family is not None, "read() comes first"
        return Genome(self._family[0], tuple(self._chain), self._family[1], self._rank)

    def _base(self, base: object) -> int | Center:
        if not isinstance(base, str):
            return _own_seed("base", base)
        if _CENTER.fullmatch(base) is None:
            raise ValueError(f"base of a genome is {base[:80]!r}, expected a seed or {CENTER_PREFIX} and 64 digits")
        return self._centers.get(base) or Center.named(base)


def genomes_to_json(genomes: Sequence[Genome]) -> list[dict[str, Any]]:
    """Turns genomes into plain values for JSON, each relative to the one before it.

    Raises:
        ValueError: A seed is not a whole number in [0, 2**63), or the genomes have more than MAX_MUTATIONS together.
    """
    _checked_total(sum(len(genome.chain) for genome in genomes))
    return [genome_to_json(genome, before) for before, genome in zip([None, *genomes], genomes, strict=False)]


def genomes_from_json(values: Sequence[Mapping[str, Any]], centers: Mapping[str, Center] | None = None) -> list[Genome]:
    """Reads genomes that genomes_to_json wrote.

    Args:
        values: One mapping per genome, in the order in which they were written.
        centers: Centers with their weights, by name. Genomes whose center is not among them only know its name.

    Returns:
        The genomes, in the same order.

    Raises:
        ValueError: The values are not those of genomes, one that they refer to is missing, or they have more than
            MAX_MUTATIONS together.
    """
    reader, genomes, total = GenomeReader(centers), [], 0
    for value in values:
        reader.read(value)
        total = _checked_total(total + reader.length)
        genomes.append(reader.genome)
    return genomes


def _checked_total(mutations: int) -> int:
    """ValueError: more mutations than the genomes of a list may have together."""
    if mutations > MAX_MUTATIONS:
        raise ValueError(f"its genomes have more than {MAX_MUTATIONS:,} mutations together")
    return mutations


def _mutations(chain: object) -> list[tuple[int, float]]:
    """Mutations as genome_to_json writes them. ValueError: they are none."""
    if not isinstance(chain, list):
        raise ValueError(f"this is not a genome: its chain is {str(chain)[:80]}, expected a list of [seed, scale]")
    mutations = []
    for pair in chain:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"this is not a genome: {str(pair)[:80]} in its chain, expected [seed, scale]")
        seed, scale = pair
        if type(scale) not in (float, int) or not abs(scale) <= _LARGEST:  # false for NaN
            raise ValueError(f"scale of a genome is {str(scale)[:80]}, expected a number that is finite in 32 bits")
        mutations.append((_own_seed("seed", seed), float(scale)))
    return mutations


def _own_seed(what: str, number: object) -> int:
    """A seed as JSON has it. ValueError: it is none."""
    if type(number) is not int or not 0 <= number < 2**SEED_BITS:
        raise ValueError(f"{what} of a genome is {str(number)[:80]}, expected a whole number in [0, 2**{SEED_BITS})")
    return number


def _seed(what: str, number: object) -> int:
    """Turns a seed, which may be one of NumPy's integers, into an int for JSON; ValueError if it is not a seed."""
    if not isinstance(number, Integral) or not 0 <= int(number) < 2**SEED_BITS:
        raise ValueError(f"{what} of a genome is {number!r}, expected a whole number in [0, 2**{SEED_BITS})")
    return int(number)


def _rank(number: object, mutated: bool) -> int:
    """Returns the rank of a last mutation, which may be one of NumPy's integers, as an int for JSON.

    ValueError: it is not a rank, or there is no mutation.
    """
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not whole or not 1 <= int(number) <= MAX_RANK:  # type: ignore[call-overload]  # whole, as checked
        raise ValueError(f"rank of a genome is {number!r}, expected a whole number in [1, {MAX_RANK}]")
    if not mutated:
        raise ValueError(f"a genome has rank {number} and no mutation, expected one")
    return int(number)  # type: ignore[call-overload]
