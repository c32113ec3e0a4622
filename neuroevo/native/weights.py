"""Weights of genomes and sums of noise, computed by the native core for algorithms such as evolution strategies."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Graft, Kind, LowRank, Mutation, Scaled, grow
from neuroevo.native.noise import low_rank_noise_sum, noise_sum, noise_sums
from neuroevo.native.population import Population, padded
from neuroevo.networks.grafting import inherited

_KEPT_WEIGHTS = 1 << 26  # cached weights of genomes after a graft, 256 MB
_KEPT_NETWORKS = 64
_OBSERVATIONS = 32  # observations, evenly spaced in the reference batch, on which output_change() compares networks


class NativeWeights:
    """Weights of genomes; implements the Weights protocol of neuroevo/core/evaluator.py.

    Attributes:
        networks: Texts of the configured networks.
    """

    def __init__(
        self,
        networks: Sequence[str],
        device: str = "cpu",
        reference_batch: np.ndarray | None = None,
    ):
        """Create the rows in which weights are computed.

        Args:
            networks: Layer lists in text form.
            device: Where noise is summed, "cpu" or "gpu", with bit-identical sums.
            reference_batch: Observations in the networks' format, [B, ...], for output_change().
        """
        self._population = Population(networks, rows=2)  # weights of a genome, and spread of a mutation
        self._device, self._reference_batch = device, reference_batch
        self.networks = networks
        self._own: OrderedDict[str, Population] = OrderedDict()  # rows for genomes' own networks
        self._grafted: OrderedDict[bytes, Center] = OrderedDict()  # weights after a graft, by genome digest
        self._grafted_weights = 0

    def text(self, network: int | str) -> str:
        """Return the text of a genome's network."""
        return network if isinstance(network, str) else self.networks[network]

    def dimension(self, network: int | str) -> int:
        """Return D of a genome's network."""
        population, index = self._population_of(network)
        return population.dimensions[index]

    def theta(self, genome: Genome) -> np.ndarray:
        """Return a genome's weights, bit-identical to a population's; rounded if not materialized there.

        Args:
            genome: A genome with a configured network or its own.

        Returns:
            float32 [D].

        Raises:
            UserError: The genome's center does not have the size of its network.
        """
        mutation = genome.mutation
        if mutation is not None and not mutation.kind.materialized:
            return self._theta_of_member(genome, mutation)
        genome = self.without_grafts(genome)
        population, network = self._population_of(genome.network)
        dimension = population.dimensions[network]
        if isinstance(genome.root, Center):
            theta = vector_of(genome.root, genome.network, dimension)
            population.assign([0], [network], padded([theta], population.dimensions))
        else:
            population.init([0], [network], [genome.root])
        for kind, alike in groupby(genome.mutations, key=lambda each: each.kind):
            mutations = list(alike)
            seeds, scales = [each.seed for each in mutations], [each.scale for each in mutations]
            spreads = None
            if isinstance(kind, Scaled):
                spread = vector_of(kind.spread, genome.network, dimension)
                population.assign([1], [network], padded([spread], population.dimensions))
                spreads = [1] * len(seeds)
            population.perturb([0] * len(seeds), [0] * len(seeds), seeds, scales, spreads)
        return population.read([0])[0, :dimension]

    def without_grafts(self, genome: Genome) -> Genome:
        """Return an equivalent genome whose root is the center after the last graft.

        Args:
            genome: Any genome.

        Returns:
            A genome with the same network and weights; the genome itself if its line has no graft.
        """
        grafts, mutations = [], []
        for each in genome.line():
            if isinstance(each.kind, Graft):
                grafts.append(each)
                if each.digest in self._grafted:
                    break
            elif not grafts and each.mutation is not None:
                mutations.append(each.mutation)
        if not grafts:
            return genome
        for each in reversed(grafts):  # oldest first, so that the preceding graft is cached
            center = self._graft(each)
        return grow(Genome(center, genome.network), reversed(mutations))

    def _graft(self, genome: Genome) -> Center:
        """Return the weights after a graft, whose earlier grafts are cached; cache the result."""
        known = self._grafted.get(genome.digest)
        if known is not None:
            self._grafted.move_to_end(genome.digest)
            return known
        assert genome.parent is not None and genome.mutation is not None
        parent = self.theta(genome.parent)
        population, network = self._population_of(genome.network)
        population.init([0], [network], [genome.mutation.seed])
        initial = population.read([0])[0] * np.float32(genome.mutation.scale)
        center = Center(inherited(self.text(genome.network), self.text(genome.parent.network), parent, initial))
        self._grafted[genome.digest] = center
        self._grafted_weights += len(center.vector)
        while self._grafted_weights > _KEPT_WEIGHTS and len(self._grafted) > 1:
            self._grafted_weights -= len(self._grafted.popitem(last=False)[1].vector)
        return center

    def _population_of(self, network: int | str) -> tuple[Population, int]:
        """Return a population with a genome's network, and the index of the network in it."""
        if isinstance(network, int):
            return self._population, network
        if network not in self._own:
            self._own[network] = Population([network], rows=2)
            if len(self._own) > _KEPT_NETWORKS:
                self._own.popitem(last=False)
        self._own.move_to_end(network)
        return self._own[network], 0

    def _theta_of_member(self, genome: Genome, mutation: Mutation) -> np.ndarray:
        assert genome.parent is not None
        text = self.text(genome.network)
        population = Population([text], rows=2, float_rows=1, kind=mutation.kind)
        population.assign([0], [0], self.theta(genome.parent)[None])
        population.perturb([1], [0], [mutation.seed], [mutation.scale])
        return population.read([1])[0]

    def noise_sum(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        network: int | str = 0,
        kind: Kind = GAUSSIAN,
    ) -> np.ndarray:
        """Return the sum of factors[i] * noise(seeds[i]); see the protocol Weights.

        Args:
            seeds: [N].
            factors: [N].
            network: The network that is mutated.
            kind: Kind of the noise.

        Returns:
            float32 [D].
        """
        text, dimension = self.text(network), self.dimension(network)
        if isinstance(kind, LowRank):
            return low_rank_noise_sum(text, kind.rank, seeds, factors, dimension)
        return noise_sum(seeds, factors, dimension, device=self._device)

    def noise_sums(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        square_factors: Sequence[float] | np.ndarray,
        network: int | str = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of factors[i] * noise(seeds[i]) and of square_factors[i] * (noise(seeds[i])**2 - 1).

        Args:
            seeds: [N].
            factors: [N].
            square_factors: [N].
            network: The network that is mutated.

        Returns:
            Both float32 [D].
        """
        return noise_sums(seeds, factors, square_factors, self.dimension(network), device=self._device)

    def output_change(self, parent: Genome) -> Callable[[int, float], float]:
        """Return a function of a mutation's seed and scale; see the protocol Weights.

        Networks are evaluated on the CPU in float32, so that results do not depend on the device. The reference batch
        consists of successive steps, so the state of lstm layers carries over from observation to observation.

        Args:
            parent: Genome that is mutated.

        Returns:
            The function.

        Raises:
            UserError: There is no reference batch.
        """
        if self._reference_batch is None:
            raise UserError(
                "safe mutations need a reference batch of observations, but this evaluator was created without one"
            )
        text = self.text(parent.network)
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


def vector_of(center: Center, network: int | str, dimension: int) -> np.ndarray:
    """Return the weights of a center.

    Args:
        center: Root of a genome.
        network: The genome's network, for the message.
        dimension: D of the network.

    Returns:
        float32 [D].

    Raises:
        UserError: The vector does not fit the network.
    """
    vector = center.vector
    if len(vector) != dimension:
        raise UserError(
            f"a genome starts from {len(vector):,} weights, expected {dimension:,} as network {network} has"
        )
    return vector


def network_index(genome: Genome) -> int:
    """Return the index of a genome's network. UserError: the genome has its own network, which has no index."""
    if isinstance(genome.network, str):
        raise UserError(f"a genome has the network '{genome.network[:200]}', expected the index of a configured one")
    return genome.network


def dense_root(genome: Genome, dimensions: Sequence[int]) -> np.ndarray:
    """Return the weights of a genome's root, which is a center.

    Args:
        genome: A genome with a configured network.
        dimensions: D of each configured network.

    Returns:
        float32 [D].

    Raises:
        UserError: There is no such network, or the center does not fit it.
    """
    assert isinstance(genome.root, Center)
    network = network_index(genome)
    if not 0 <= network < len(dimensions):
        raise UserError(f"network {network} of a genome is out of range [0, {len(dimensions)})")
    return vector_of(genome.root, network, dimensions[network])


def thetas_of(genomes: Sequence[Genome | None], dimensions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct dense vectors that genomes start from.

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
            vector = dense_root(genome, dimensions)
            theta_of[i] = numbers.setdefault(genome.root, len(vectors))
            if theta_of[i] == len(vectors):
                vectors.append(vector)
    return theta_of, padded(vectors, dimensions)
