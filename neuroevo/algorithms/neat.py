"""NEAT: neuroevolution of augmenting topologies.

Stanley and Miikkulainen 2002, "Evolving neural networks through augmenting topologies"
(https://doi.org/10.1162/106365602320169811). Networks start with each input connected to each output, and grow by
mutations that add edges and nodes. Genomes are crossed gene by gene. Species, groups of similar genomes, share the
offspring by their mean fitness, so that a new topology competes with similar topologies first. Each member has its own
network text, which consists of a graph layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.neat_genes import (
    Genes,
    GeneTable,
    Shape,
    Splits,
    crossed,
    distance,
    expressed,
    initial,
    of_network,
    with_edge,
    with_node,
)
from neuroevo.algorithms.selection import ValidatedSearch, ValidatedState, finite, pick_candidates
from neuroevo.core.arrays import check_array
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import OwnNetworkLimits, Weights
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Draws, Purpose
from neuroevo.core.settings import Count, Positive32, settings

Probability = Annotated[float, Field(ge=0, le=1)]
_DISABLE = 0.75  # probability of disabling an edge that is disabled in either parent
_LARGE_SPECIES = 5  # smallest size of a species whose champion is copied unchanged
_KEPT_SPECIES = 2  # number of best species that survive stagnation


@dataclass(frozen=True, eq=False)
class NEATState(ValidatedState):
    """The state before a generation.

    Attributes:
        start: Genomes of another run to start from; their networks must be graph layers.
        members: Genes of the population; None before generation 0.
        representatives: Genes that represent the S species, from the last generation; None before generation 0.
        best: Best fitness of each species so far, float64 [S]; None before generation 0.
        improved: Generation in which each species reached its best fitness, int64 [S]; None before generation 0.
        splits: The edge that each hidden node of the run splits, int64 [nodes, 2]; None before generation 0.
    """

    start: tuple[Genome, ...] = ()
    members: GeneTable | None = None
    representatives: GeneTable | None = None
    best: np.ndarray | None = None
    improved: np.ndarray | None = None
    splits: np.ndarray | None = None

    def check_state(self) -> None:
        """Check shapes. ValueError: genes are missing, or an array does not fit the number of species."""
        super().check_state()
        known = [
            getattr(self, name) is not None for name in ("members", "representatives", "best", "improved", "splits")
        ]
        if any(known) != all(known) or (self.generation and not all(known)):
            raise ValueError(f"genes are missing after {self.generation} generations")
        if self.best is None or self.improved is None or self.representatives is None or self.splits is None:
            return
        check_array("best", self.best, [len(self.representatives.sizes)], np.float64)
        check_array("improved", self.improved, [len(self.best)], np.int64)
        check_array("splits", self.splits, [len(self.splits), 2], np.int64)


@dataclass
class _Species:
    """Species, a group of similar genomes.

    Attributes:
        representative: Genes to which genomes are compared.
        best: Best fitness so far.
        improved: Generation in which the best fitness was reached.
        members: Indices into the population, the fittest first.
        share: Mean fitness of the members minus the population's lowest fitness.
    """

    representative: Genes
    best: float = -math.inf
    improved: int = 0
    members: list[int] = field(default_factory=list)
    share: float = 0.0


@settings
class NEAT(ValidatedSearch):
    """Neuroevolution of augmenting topologies."""

    population: Count = 150
    """Genomes per generation."""
    sigma: Positive32 = 0.5
    """Standard deviation of the noise added to a weight."""
    initial_sigma: Positive32 = 1.0
    """Standard deviation of initial and of replaced weights."""
    mutate_weight: Probability = 0.8
    """Probability that a weight or bias of an offspring is mutated."""
    replace_weight: Probability = 0.1
    """Probability that a weight or bias is replaced instead of perturbed."""
    add_edge: Probability = 0.05
    """Probability that an offspring gets another edge."""
    add_node: Probability = 0.03
    """Probability that a node splits one of an offspring's edges."""
    toggle_edge: Probability = 0.01
    """Probability that an edge of an offspring is toggled between enabled and disabled."""
    crossover: Probability = 0.75
    """Probability that an offspring has two parents."""
    interspecies: Probability = 0.001
    """Probability that the second parent is of any species."""
    survival: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of each species, its fittest members, that may be parents."""
    threshold: Positive32 = 3.0
    """Compatibility distance below which two genomes belong to one species: the number of edges that only one of them
    has (from 20 edges on, their share) plus weight_coefficient times the mean absolute difference of weights."""
    weight_coefficient: Annotated[float, Field(ge=0)] = 0.4
    """Coefficient of the mean difference of weights in the compatibility distance."""
    stagnation: Count = 15
    """Generations without improvement after which a species is removed, unless it is one of the two best."""
    max_weights: Count = 10_000
    """Maximum number of weights and biases of a genome."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """Number of best genomes that play validation episodes; the previous elite replaces the last of them."""

    state_type = NEATState

    @property
    def own_networks(self) -> OwnNetworkLimits:
        """Return the limits of the genomes' networks."""
        return OwnNetworkLimits(self.population, self.max_weights, graphs=True)

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> NEATState:
        """Make the state before generation 0, which starts from the genomes or from networks without hidden nodes."""
        return NEATState(seed, elite=next(iter(genomes), None), start=tuple(genomes[: self.population]))

    def ask(self, state: NEATState, weights: Weights) -> list[Genome]:
        """Return the population's networks.

        Raises:
            UserError: A network is too large, or a genome to start from does not have a graph layer.
        """
        shape = Shape.of(weights.networks[0])
        return [expressed(genes, shape) for genes in self._members(state, weights, shape)[0]]

    def tell(self, state: NEATState, population: EvaluatedPopulation, weights: Weights) -> NEATState:
        """Divide the population into species, breed the next population, and select candidates for the elite."""
        genomes, fitness = population.genomes, finite(population.fitness, len(population.genomes))
        shape = Shape.of(weights.networks[0])
        members, splits = self._members(state, weights, shape)
        draws = Draws(state.seed, state.generation, Purpose.NETWORKS)
        species = self._divided(state, members, fitness)
        offspring = self._bred(species, members, fitness, shape, splits, draws)
        drawn = [members[each.members[draws.index(len(each.members))]] for each in species]
        return replace(
            state,
            steps=state.steps + population.steps,
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
            start=(),
            members=GeneTable.of(offspring),
            representatives=GeneTable.of(drawn),
            best=np.array([each.best for each in species]),
            improved=np.array([each.improved for each in species], np.int64),
            splits=splits.edges,
        )

    def metrics(self, before: NEATState, after: NEATState) -> dict[str, float]:
        """Return the number of species and the next population's mean numbers of hidden nodes and enabled edges."""
        assert after.members is not None and after.representatives is not None
        count = len(after.members.sizes)
        return {
            "species": float(len(after.representatives.sizes)),
            "hidden_nodes": len(after.members.nodes) / count,
            "edges": float(np.count_nonzero(after.members.enabled)) / count,
        }

    def check_state(self, state: NEATState) -> None:
        """Check the size of the population. ValueError: it differs from the setting."""
        if state.members is not None and len(state.members.sizes) != self.population:
            raise ValueError(f"the state has {len(state.members.sizes)} members, expected {self.population}")

    def _members(self, state: NEATState, weights: Weights, shape: Shape) -> tuple[list[Genes], Splits]:
        first = shape.inputs + shape.outputs
        if state.members is not None and state.splits is not None:
            return state.members.split(), Splits(first, state.splits)
        draws, made = Draws(state.seed, 0, Purpose.INITIAL_WEIGHTS), []
        hidden = 0
        for genome in state.start:
            if not isinstance(genome.network, str) or "; graph " not in genome.network:
                raise UserError("a genome to start from is not a NEAT genome: expected a network with a graph layer")
            made.append(of_network(genome.network, weights.theta(genome), shape, first + hidden))
            hidden += len(made[-1].nodes)
        splits = Splits(first, np.full((hidden, 2), -1, np.int64))
        while len(made) < self.population:
            if state.start:
                made.append(self._mutated(made[len(made) % len(state.start)], shape, splits, draws))
            else:
                made.append(initial(shape, self.initial_sigma, draws))
        largest = max(len(each.weights) + len(each.biases) for each in made)
        if largest > self.max_weights:
            raise UserError(
                f"a network starts with {largest:,} weights, expected at most {self.max_weights:,}, the "
                "value of algorithm.max_weights"
            )
        return made, splits

    def _divided(self, state: NEATState, members: list[Genes], fitness: np.ndarray) -> list[_Species]:
        """Divide a population into species, the best first; empty and stagnated species are removed."""
        species: list[_Species] = []
        if state.representatives is not None and state.best is not None and state.improved is not None:
            known = zip(state.representatives.split(), state.best.tolist(), state.improved.tolist(), strict=True)
            species = [_Species(*each) for each in known]
        for i in np.argsort(-fitness, kind="stable").tolist():
            for each in species:
                if distance(members[i], each.representative, self.weight_coefficient) < self.threshold:
                    break
            else:
                each = _Species(members[i])
                species.append(each)
            each.members.append(i)
        species = [each for each in species if each.members]
        for each in species:
            each.share = float(np.mean(fitness[each.members] - fitness.min()))
            if fitness[each.members[0]] > each.best:
                each.best, each.improved = float(fitness[each.members[0]]), state.generation
        species.sort(key=lambda each: -fitness[each.members[0]])
        return [
            each
            for rank, each in enumerate(species)
            if rank < _KEPT_SPECIES or state.generation - each.improved < self.stagnation
        ]

    def _bred(
        self,
        species: list[_Species],
        members: list[Genes],
        fitness: np.ndarray,
        shape: Shape,
        splits: Splits,
        draws: Draws,
    ) -> list[Genes]:
        """Breed the next population: champions of large species, and offspring in proportion to the shares."""
        offspring: list[Genes] = []
        counts = _apportioned([each.share for each in species], self.population)
        everyone = [i for each in species for i in each.members]
        for each, count in zip(species, counts, strict=True):
            parents = each.members[: max(1, math.ceil(self.survival * len(each.members)))]
            champions = min(count, int(len(each.members) >= _LARGE_SPECIES))
            offspring += [members[i] for i in each.members[:champions]]
            for _ in range(count - champions):
                one = parents[draws.index(len(parents))]
                child = members[one]
                if draws.chance(self.crossover):
                    others = everyone if draws.chance(self.interspecies) else parents
                    two = others[draws.index(len(others))]
                    one, two = sorted((one, two), key=lambda i: (-fitness[i], len(members[i].edges)))
                    child = crossed(members[one], members[two], draws, _DISABLE)
                offspring.append(self._mutated(child, shape, splits, draws))
        return offspring

    def _mutated(self, genes: Genes, shape: Shape, splits: Splits, draws: Draws) -> Genes:
        if draws.chance(self.add_node) and len(genes.weights) + len(genes.biases) + 3 <= self.max_weights:
            genes = with_node(genes, splits, draws)
        if draws.chance(self.add_edge) and len(genes.weights) + len(genes.biases) < self.max_weights:
            genes = with_edge(genes, shape, self.initial_sigma, draws)
        enabled = genes.enabled
        if draws.chance(self.toggle_edge):
            enabled = enabled.copy()
            enabled[draws.index(len(enabled))] ^= True
        values = np.concatenate([genes.weights, genes.biases])
        chances, noise = draws.uniforms(len(values)), draws.noise(len(values))
        changed = np.where(chances < self.replace_weight, self.initial_sigma * noise, values + self.sigma * noise)
        values = np.where(chances < self.mutate_weight, changed, values).astype(np.float32)
        weights, biases = np.split(values, [len(genes.weights)])
        return replace(genes, weights=weights, biases=biases, enabled=enabled)


def _apportioned(shares: Sequence[float], count: int) -> list[int]:
    """Divide `count` offspring in proportion to shares by largest remainders; equally where all are 0."""
    total = sum(shares)
    quotas = [count * (share / total if total > 0 else 1 / len(shares)) for share in shares]
    counts = [int(quota) for quota in quotas]
    order = sorted(range(len(shares)), key=lambda i: counts[i] - quotas[i])
    for i in order[: count - sum(counts)]:
        counts[i] += 1
    return counts
