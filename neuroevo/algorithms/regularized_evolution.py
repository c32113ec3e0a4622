"""Regularized evolution of architectures and weights (Real et al. 2018, https://arxiv.org/abs/1802.01548).

The population is a queue. Each offspring is a mutation of the best of a random sample, and the oldest members die, so
that a lineage survives only if its descendants perform well, too. In the paper, each network is trained by gradients.
Here, a mutation changes either the weights or the network, and a changed network inherits the weights that the two
architectures have in common (networks/grafting.py). Offspring are evaluated in batches; in the paper, asynchronously.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import (
    ValidatedSearch,
    ValidatedState,
    finite,
    noise_of,
    pick_candidates,
    ranking,
)
from neuroevo.core.arrays import check_array
from neuroevo.core.evaluator import OwnNetworkLimits, Weights
from neuroevo.core.genome import Genome, Graft
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.randomness import Draws, Purpose, draw_indices, draw_seeds
from neuroevo.core.settings import Count, CountOrZero, listed, settings
from neuroevo.core.statistics import pareto_front
from neuroevo.networks.changes import ACTIVATIONS, ChangeLimits, changed
from neuroevo.networks.grafting import Cost, cost


def _activations(value: object) -> tuple[str, ...]:
    names = listed(value)
    if not isinstance(names, tuple) or not names or any(name not in ACTIVATIONS for name in names):
        raise ValueError(f"expected a list of one or more of {', '.join(ACTIVATIONS)}")
    return names


@dataclass(frozen=True, eq=False)
class RegularizedState(ValidatedState):
    """The state before a generation.

    Attributes:
        members: The population, the oldest first; empty in generation 0 unless the run starts from given genomes.
        fitness: Fitness of the members, float64 [N].
        front: Pareto front of all genomes so far in fitness and multiply-adds, the cheapest first.
        front_fitness: Fitness of the genomes of the front, float64.
    """

    members: tuple[Genome, ...] = ()
    fitness: np.ndarray = field(default_factory=lambda: np.zeros(0))
    front: tuple[Genome, ...] = ()
    front_fitness: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: an inherited check fails, or members or fitness values are missing."""
        super().check_state()
        check_array("fitness", self.fitness, [len(self.members)], np.float64)
        check_array("front_fitness", self.front_fitness, [len(self.front)], np.float64)
        if self.generation and not self.members:
            raise ValueError(f"there are no members after {self.generation} generations")


@settings
class RegularizedEvolution(ValidatedSearch):
    """Evolution of network architectures together with their weights."""

    population: Annotated[Count, Field(ge=2)] = 100
    """Number of living members."""
    offspring: CountOrZero = 0
    """Offspring per generation, at most the population; the same number of members dies. 0: half of the population."""
    tournament: Count = 25
    """Size of the random sample of members whose best member becomes the parent of an offspring."""
    sigma: Schedule = 0.02
    """Mutation power: standard deviation of the noise added to every weight. A number or a schedule, as in the GA."""
    network_mutation: Annotated[float, Field(ge=0, le=1)] = 0.25
    """Probability that a mutation changes the network instead of the weights."""
    aging: bool = True
    """Remove the oldest members; false removes the worst members, as in a genetic algorithm."""
    pareto: bool = False
    """Select a random member of the sample's Pareto front of fitness and multiply-adds, not the fittest member."""
    max_weights: Count = 5_000_000
    """Maximum number of weights of a network."""
    max_layers: Count = 6
    """Maximum number of hidden layers of a network."""
    max_lstm_units: CountOrZero = 0
    """Maximum number of units in all lstm layers of a network; 0: mutations add no lstm layers."""
    activations: Annotated[tuple[str, ...], BeforeValidator(_activations)] = ("relu", "tanh")
    """Activations that mutations choose from: relu, tanh, silu and gelu; networks in int8 support only relu."""
    validation_candidates: Annotated[Count, Field(ge=2)] = 10
    """Number of best genomes that play validation episodes; the previous elite replaces the last of them."""

    state_type = RegularizedState

    def __post_init__(self) -> None:
        if self.offspring > self.population:
            refuse([Problem("offspring", f"expected at most the population, {self.population}", self.offspring)])

    @property
    def own_networks(self) -> OwnNetworkLimits:
        """Return the limits of the members' networks; in generation 0, all of them may be different."""
        integers = set(self.activations) == {"relu"} and not self.max_lstm_units
        return OwnNetworkLimits(self.population, self.max_weights, self.max_lstm_units, integers)

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> RegularizedState:
        """Make the state before generation 0, whose members are the given genomes."""
        return RegularizedState(
            seed,
            members=tuple(genomes[: self.population]),
            fitness=np.zeros(min(len(genomes), self.population)),
            elite=next(iter(genomes), None),
        )

    def ask(self, state: RegularizedState, weights: Weights) -> list[Genome]:
        """Return mutations of tournament winners or, without members (generation 0), fresh genomes."""
        if not state.members:
            bases = draw_seeds(self.population, state.seed, state.generation, Purpose.INITIAL_WEIGHTS)
            texts = self._networks([weights.networks[0]] * self.population, state)
            return [Genome(base, text) for base, text in zip(bases, texts, strict=True)]
        parents = self._parents(state, _with_own_networks(state.members, weights))
        own = [_text(each) for each in parents]
        sigma, noise, networks = scale_at(self.sigma, state), noise_of(parents, state), self._networks(own, state)
        return [
            parent.child(seed, sigma) if text == before else parent.child(seed, 1.0, Graft(text))
            for parent, before, text, seed in zip(parents, own, networks, noise, strict=True)
        ]

    def tell(self, state: RegularizedState, population: EvaluatedPopulation, weights: Weights) -> RegularizedState:
        """Append the offspring, remove the oldest or worst members, and update the front.

        Raises:
            ValueError: A fitness is not finite.
        """
        genomes, fitness = list(population.genomes), finite(population.fitness, len(population.genomes))
        members = [*_with_own_networks(state.members, weights), *genomes]
        scores = np.concatenate([state.fitness, fitness])
        if not state.generation:
            members, scores = genomes, fitness
        kept = list(range(len(members)))[-self.population :]
        if not self.aging:
            kept = sorted(ranking(scores)[: self.population])
        front = [*state.front, *genomes]
        front_scores = np.concatenate([state.front_fitness, fitness])
        best = pareto_front(front_scores, [_cost(each).multiply_adds for each in front])
        return replace(
            state,
            steps=state.steps + population.steps,
            members=tuple(members[i] for i in kept),
            fitness=scores[kept],
            front=tuple(front[i] for i in best),
            front_fitness=front_scores[best],
            candidates=tuple(pick_candidates(genomes, fitness, self.validation_candidates, state.elite)),
        )

    def best(self, state: RegularizedState) -> list[Genome]:
        """Return the elite, then the members from the fittest to the worst."""
        return list(dict.fromkeys([self.elite(state), *(state.members[i] for i in ranking(state.fitness))]))

    def metrics(self, before: RegularizedState, after: RegularizedState) -> dict[str, float | None]:
        """Return sigma, the number of different networks, the mean cost of members, and the size of the front."""
        costs = [_cost(each) for each in after.members]
        return {
            "sigma": shortest(scale_at(self.sigma, before)),
            "networks": len({each.network for each in after.members}),
            "weights_mean": float(np.mean([each.weights for each in costs])),
            "multiply_adds_mean": float(np.mean([each.multiply_adds for each in costs])),
            "front": len(after.front),
        }

    def _parents(self, state: RegularizedState, members: Sequence[Genome]) -> list[Genome]:
        size = min(self.tournament, len(members))
        count = (self.offspring or self.population // 2) * (size + 1)
        drawn = draw_indices(count, len(members), state.seed, state.generation, Purpose.PARENTS)
        parents = []
        for at in range(0, len(drawn), size + 1):
            sample = list(dict.fromkeys(drawn[at : at + size]))
            if self.pareto:
                front = pareto_front(state.fitness[sample], [_cost(members[i]).multiply_adds for i in sample])
                chosen = sample[front[drawn[at + size] * len(front) // len(members)]]
            else:
                chosen = max(sample, key=lambda i: (state.fitness[i], i))
            parents.append(members[chosen])
        return parents

    def _networks(self, texts: Sequence[str], state: RegularizedState) -> list[str]:
        """Return the network of each offspring, given the network of its parent."""
        limits = ChangeLimits(self.max_weights, self.max_layers, self.max_lstm_units, self.activations)
        draws = Draws(state.seed, state.generation, Purpose.NETWORKS)
        return [changed(text, limits, draws.index) if draws.chance(self.network_mutation) else text for text in texts]


def _with_own_networks(genomes: Sequence[Genome], weights: Weights) -> list[Genome]:
    """Return genomes with equal weights and with own networks, which genomes of another run may lack."""
    return [
        genome if isinstance(genome.network, str) else genome.child(0, 1.0, Graft(weights.networks[genome.network]))
        for genome in genomes
    ]


def _text(genome: Genome) -> str:
    assert isinstance(genome.network, str)  # all members have own networks
    return genome.network


def _cost(genome: Genome) -> Cost:
    return _cost_of(_text(genome))


_cost_of = lru_cache(maxsize=4096)(cost)
