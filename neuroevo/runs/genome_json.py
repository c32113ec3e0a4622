"""Genomes as JSON. In a list each one says how much of its chain it shares with the one before it.

    {"base": 12, "network": 0, "same": 40, "chain": [[seed, scale], ...]}

means: the first 40 mutations of the genome before, which has the same base and network, then these. Relatives share
nearly everything, so the elites of G generations take O(G) instead of O(G squared) numbers. Seeds need 63 bits, which a
reader that makes floats of numbers does not keep. A base that is a center is its name, "sha256:..."; its weights are
kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from neuroevo.core.genome import CENTER_PREFIX, SEED_BITS, Center, Genome


def genome_to_json(genome: Genome, before: Genome | None = None) -> dict[str, Any]:
    """Encodes a genome.

    Args:
        genome: The genome.
        before: The genome that it is written relative to; None writes the whole chain.

    Returns:
        JSON values.

    Raises:
        ValueError: A seed is out of range.
    """
    same = 0
    if before is not None and (before.base, before.network) == (genome.base, genome.network):
        pairs = zip(before.chain, genome.chain, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before.chain), len(genome.chain)))
    chain = [[_seed("seed", seed), float(scale)] for seed, scale in genome.chain[same:]]
    base = genome.base.name if isinstance(genome.base, Center) else _seed("base", genome.base)
    return {"base": base, "network": int(genome.network), "same": same, "chain": chain}


def genome_from_json(
    value: Mapping[str, Any], before: Genome | None = None, centers: Mapping[str, Center] | None = None
) -> Genome:
    """Decodes a genome.

    Args:
        value: What `genome_to_json` returned.
        before: The same as there.
        centers: Centers with their weights, by name; of other centers the genome has the name alone.

    Returns:
        The genome.

    Raises:
        ValueError: The value is not a genome.
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
        if before is None or (before.base, before.network) != (base, network) or same > len(before.chain):
            raise ValueError(f"a genome shares {same} mutations with one that is not there")
        chain = (*before.chain[:same], *chain)
    return Genome(base, chain, network)


def genomes_to_json(genomes: Sequence[Genome]) -> list[dict[str, Any]]:
    """Encodes genomes, each relative to the one before it.

    Args:
        genomes: The genomes.

    Returns:
        JSON values, one per genome.

    Raises:
        ValueError: A seed is out of range.
    """
    return [genome_to_json(genome, before) for before, genome in zip([None, *genomes], genomes, strict=False)]


def genomes_from_json(values: Sequence[Mapping[str, Any]], centers: Mapping[str, Center] | None = None) -> list[Genome]:
    """Decodes genomes.

    Args:
        values: What `genomes_to_json` returned.
        centers: Centers with their weights, by name.

    Returns:
        The genomes.

    Raises:
        ValueError: A value is not a genome.
    """
    genomes: list[Genome] = []
    for value in values:
        genomes.append(genome_from_json(value, genomes[-1] if genomes else None, centers))
    return genomes


def _seed(what: str, number: object) -> int:
    """The number, which may be one of NumPy's, as JSON takes it. ValueError: it is no seed."""
    if not isinstance(number, Integral) or not 0 <= int(number) < 2**SEED_BITS:
        raise ValueError(f"{what} of a genome is {number!r}, expected a whole number in [0, 2**{SEED_BITS})")
    return int(number)
