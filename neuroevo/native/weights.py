"""The weights of genomes and sums of noise, made by the native core: what algorithms that move vectors need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Kind, LowRank, Mutation, Scaled
from neuroevo.native.noise import low_rank_noise_sum, noise_sum, noise_sums
from neuroevo.native.population import Population

_OBSERVATIONS = 32  # of the reference batch, evenly spaced, by which mutations are compared with their parents


class NativeWeights:
    """Weights of genomes; satisfies the Weights protocol of neuroevo/core/evaluator.py.

    Attributes:
        dimensions: D of each network.
    """

    def __init__(
        self,
        networks: Sequence[str],
        device: str = "cpu",
        reference_batch: np.ndarray | None = None,
    ):
        """Make rows for one genome at a time.

        Args:
            networks: Layer lists in text form.
            device: Where noise is added up, "cpu" or "gpu", with bit-identical sums.
            reference_batch: Observations as the networks see them, [B, ...], for output_change().
        """
        self._population = Population(networks, rows=2)  # weights, and the spread of a mutation
        self._networks, self._device, self._reference_batch = networks, device, reference_batch
        self.dimensions: Sequence[int] = self._population.dimensions

    def theta(self, genome: Genome) -> np.ndarray:
        """Return a genome's weights, bit-identical to those that a population plays; rounded where it holds none.

        Args:
            genome: Of one of the networks.

        Returns:
            float32 [D].

        Raises:
            UserError: The size of the genome's center is not that of its network.
        """
        mutation = genome.mutation
        if mutation is not None and not mutation.kind.materialized:
            return self._theta_of_member(genome, mutation)
        population, network = self._population, genome.network
        if isinstance(genome.root, Center):
            _, thetas = thetas_of([genome], self.dimensions)
            population.assign([0], [network], thetas)
        else:
            population.init([0], [network], [genome.root])
        for kind, alike in groupby(genome.mutations, key=lambda each: each.kind):
            mutations = list(alike)
            seeds, scales = [each.seed for each in mutations], [each.scale for each in mutations]
            spreads = None
            if isinstance(kind, Scaled):
                _, thetas = thetas_of([Genome(kind.spread, network)], self.dimensions)
                population.assign([1], [network], thetas)
                spreads = [1] * len(seeds)
            population.perturb([0] * len(seeds), [0] * len(seeds), seeds, scales, spreads)
        return population.read([0])[0, : self.dimensions[network]]

    def _theta_of_member(self, genome: Genome, mutation: Mutation) -> np.ndarray:
        assert genome.parent is not None
        population, network = Population(self._networks, rows=2, float_rows=1, kind=mutation.kind), genome.network
        theta = np.zeros((1, max(self.dimensions)), np.float32)
        theta[0, : self.dimensions[network]] = self.theta(genome.parent)
        population.assign([0], [network], theta)
        population.perturb([1], [0], [mutation.seed], [mutation.scale])
        return population.read([1])[0, : self.dimensions[network]]

    def noise_sum(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        network: int = 0,
        kind: Kind = GAUSSIAN,
    ) -> np.ndarray:
        """Return the sum of factors[i] * noise(seeds[i]), as the protocol Weights documents it.

        Args:
            seeds: [N].
            factors: [N].
            network: Index of the network that is mutated.
            kind: Of the noise.

        Returns:
            float32 [D].
        """
        text, dimension = self._networks[network], self.dimensions[network]
        if isinstance(kind, LowRank):
            return low_rank_noise_sum(text, kind.rank, seeds, factors, dimension)
        return noise_sum(seeds, factors, dimension, device=self._device)

    def noise_sums(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        square_factors: Sequence[float] | np.ndarray,
        network: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of factors[i] * noise(seeds[i]) and of square_factors[i] * (noise(seeds[i])**2 - 1).

        Args:
            seeds: [N].
            factors: [N].
            square_factors: [N].
            network: Index of the network that is mutated.

        Returns:
            Both float32 [D].
        """
        return noise_sums(seeds, factors, square_factors, self.dimensions[network], device=self._device)

    def output_change(self, parent: Genome) -> Callable[[int, float], float]:
        """Return a function of a mutation's seed and scale, as the protocol Weights documents it.

        Networks are evaluated on the CPU in float32, with the same bits wherever they play. An lstm's state is that
        after the observations before, as the reference batch is the play of successive steps.

        Args:
            parent: What is mutated.

        Returns:
            The function.

        Raises:
            UserError: There is no reference batch.
        """
        if self._reference_batch is None:
            raise UserError(
                "safe mutations need a reference batch of observations, which this evaluator was created without"
            )
        text = self._networks[parent.network]
        population = Population([text], rows=2)
        normalized = any(line.startswith("vbn") for line in text.split("; "))
        if normalized:
            population.set_reference(self._reference_batch)
        batch = self._reference_batch[:: max(1, len(self._reference_batch) // _OBSERVATIONS)]

        def outputs(row: int) -> np.ndarray:
            if normalized:
                population.prepare([row])
            if not population.recurrent:
                return population.forward([row] * len(batch), batch, population.outputs)
            population.clear_states([0])
            return np.concatenate([population.forward([row], each[None], population.outputs, [0]) for each in batch])

        def change(seed: int, scale: float) -> float:
            population.perturb([1], [0], [seed], [scale])
            return math.fsum(np.square(outputs(1).astype(np.float64) - before).ravel()) / before.size

        population.assign([0], [0], self.theta(parent)[None])
        before = outputs(0).astype(np.float64)
        return change


def root_seed(genome: Genome) -> int:
    """Return the seed of the initial weights; 0 for a genome whose root is a center.

    Args:
        genome: The genome.
    """
    return 0 if isinstance(genome.root, Center) else genome.root


def vector_of(center: Center, network: int, dimensions: Sequence[int]) -> np.ndarray:
    """Return the weights of a center.

    Args:
        center: Where a genome starts.
        network: Index of the genome's network.
        dimensions: D of each network.

    Returns:
        float32 [D].

    Raises:
        UserError: There is no such network or the vector does not fit it.
    """
    vector = center.vector
    if not 0 <= network < len(dimensions):
        raise UserError(f"network {network} of a genome is out of range [0, {len(dimensions)})")
    if len(vector) != dimensions[network]:
        raise UserError(
            f"a genome starts from {len(vector):,} weights, expected {dimensions[network]:,} as network {network} has"
        )
    return vector


def thetas_of(genomes: Sequence[Genome | None], dimensions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the dense vectors that genomes start from, each once.

    Args:
        genomes: [G]; None stands for a genome that needs no vector.
        dimensions: D of each network.

    Returns:
        For each genome the index of its vector, or -1 without one, int64 [G]; and the vectors, float32 [V, max D],
        zeros after the D of a smaller network.

    Raises:
        UserError: As vector_of().
    """
    theta_of = np.full(len(genomes), -1, np.int64)
    numbers: dict[Center, int] = {}
    vectors: list[np.ndarray] = []
    for i, genome in enumerate(genomes):
        if genome is not None and isinstance(genome.root, Center):
            vector = vector_of(genome.root, genome.network, dimensions)
            theta_of[i] = numbers.setdefault(genome.root, len(vectors))
            if theta_of[i] == len(vectors):
                vectors.append(vector)
    thetas = np.zeros((len(vectors), max(dimensions)), np.float32)
    for theta, vector in zip(thetas, vectors, strict=True):
        theta[: len(vector)] = vector
    return theta_of, thetas
