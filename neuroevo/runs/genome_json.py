"""Write genomes as JSON and read them back. In a list, each refers to the mutations it shares with the one before it.

    {"base": 12, "network": 0, "same": 40, "chain": [[seed, scale], ...]}

stands for the first 40 mutations of the previous genome, which has the same base and network, followed by these.
Relatives share nearly all mutations, so the elites of G generations take O(G) instead of O(G squared) numbers. Seeds
need 63 bits, so a JSON reader must not turn numbers into floats. A base that is a center is written as its name,
"sha256:..."; its weights are kept elsewhere. A last mutation of low rank adds "rank", a number in [1, 64].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from neuroevo.core.genome import CENTER_PREFIX, MAX_RANK, SEED_BITS, Center, Genome


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
    try:
        base, network, same = value["base"], value["network"], value["same"]
        chain = tuple((seed, float(scale)) for seed, scale in value["chain"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"this is not a genome: {str(value)[:80]} ({error!r})") from None
    if isinstance(base, str) and base.startswith(CENTER_PREFIX):
        base = (centers or {}).get(base) or Center.named(base)
    if not isinstance(base, Center):
        _seed("base", base)
    for seed, _ in chain:
        _seed("seed", seed)
    if same:
        if before is None or (before.base, before.network) != (base, network) or not same <= len(before.chain):
            raise ValueError(f"a genome shares {same} mutations with one that is not there")
        chain = (*before.chain[:same], *chain)
    return Genome(base, chain, network, _rank(value["rank"], bool(chain)) if "rank" in value else 0)


def genomes_to_json(genomes: Sequence[Genome]) -> list[dict[str, Any]]:
    """Turns genomes into plain values for JSON, each relative to the one before it.

    Raises:
        ValueError: A seed is not a whole number in [0, 2**63).
    """
    return [genome_to_json(genome, before) for before, genome in zip([None, *genomes], genomes, strict=False)]


def genomes_from_json(values: Sequence[Mapping[str, Any]], centers: Mapping[str, Center] | None = None) -> list[Genome]:
    """Reads genomes that genomes_to_json wrote.

    Args:
        values: One mapping per genome, in the order in which they were written.
        centers: Centers with their weights, by name. Genomes whose center is not among them only know its name.

    Returns:
        The genomes, in the same order.

    Raises:
        ValueError: The values are not those of genomes, or one that they refer to is missing.
    """
    genomes: list[Genome] = []
    for value in values:
        genomes.append(genome_from_json(value, genomes[-1] if genomes else None, centers))
    return genomes


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
