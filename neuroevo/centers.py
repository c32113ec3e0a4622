"""The dense vectors that genomes start from, as the native core takes them: each once, however many genomes have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuroevo.errors import UserError
from neuroevo.genome import Center, Genome


def base_seed(genome: Genome) -> int:
    """The seed of the initial weights; 0 for a genome that has a dense vector instead."""
    return 0 if isinstance(genome.base, Center) else genome.base


def vector_of(center: Center, network: int, dimensions: Sequence[int]) -> np.ndarray:
    """float32 [D]. dimensions: D of each network. UserError: there is no such network or the vector does not fit it."""
    vector = center.vector
    if not 0 <= network < len(dimensions):
        raise UserError(f"network {network} of a genome is out of range [0, {len(dimensions)})")
    if len(vector) != dimensions[network]:
        raise UserError(
            f"a genome starts from {len(vector):,} weights, expected {dimensions[network]:,} as network {network} has"
        )
    return vector


def thetas_of(genomes: Sequence[Genome | None], dimensions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """For each genome the index of its dense vector, or -1 without one, int64 [G]; and the vectors, float32 [V, max D],
    zeros after the D of a smaller network. None stands for a genome that needs none. UserError: as vector_of()."""
    theta_of = np.full(len(genomes), -1, np.int64)
    numbers: dict[Center, int] = {}
    vectors = []
    for i, genome in enumerate(genomes):
        if genome is not None and isinstance(genome.base, Center):
            vector = vector_of(genome.base, genome.network, dimensions)
            theta_of[i] = numbers.setdefault(genome.base, len(vectors))
            if theta_of[i] == len(vectors):
                vectors.append(vector)
    thetas = np.zeros((len(vectors), max(dimensions)), np.float32)
    for theta, vector in zip(thetas, vectors, strict=True):
        theta[: len(vector)] = vector
    return theta_of, thetas
