"""NS-ES, NSR-ES and NSRA-ES, evolution strategies that seek novelty (Conti et al. 2018, arXiv:1712.06560).

A meta-population of centers shares an archive of all behaviors that the centers have shown. In each generation, one
center is drawn with a probability proportional to its novelty. It moves along the estimated gradient of novelty
(NS-ES), or of novelty and reward (NSR-ES, and NSRA-ES, which adapts their weights), and its behavior after the move is
added to the archive. Apart from the population size, defaults and details are those of the paper's code on Humanoid
(https://github.com/uber-research/deep-neuroevolution, es_distributed/nses.py), except that

- the novelty of a center is computed from its most recently recorded behavior, which equals its own entry in the
  archive; the code evaluates all centers again in every generation;
- a trajectory has a fixed number of samples, and after the end of an episode its last state is repeated. The code
  records the state after every step. To compare two episodes, it also repeats the last state of the shorter episode,
  but only up to the end of the longer episode, whereas here the last states are compared up to the last sample;
- the first center to move is also drawn; in the code it is center 0;
- a center's own episodes have the same step limit as its pairs' episodes; in the code they have the maximum of an
  adaptive limit;
- centers share the statistics that normalize observations; in the code each center has separate statistics;
- equal novelties, and equal returns, share their rank (neuroevo/algorithms/fitness_shaping.py).

A behavior in the archive is the mean over a center's validation episodes. The code runs one such episode on Atari and
five on Humanoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ascent import WeightDecay, antithetic_pairs, ascend, estimate
from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation, State
from neuroevo.algorithms.fitness_shaping import centered_ranks
from neuroevo.algorithms.novelty import check_behaviors, known, mean_and_highest, novelty, validate_behaviors
from neuroevo.algorithms.optimizers import Adam, Optimizer, OptimizerState
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import finite, known_elite
from neuroevo.core.archive import Archive
from neuroevo.core.arrays import check_counts
from neuroevo.core.behavior import Behavior, trajectory
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds, draw_uniforms
from neuroevo.core.settings import Count, CountOrZero, settings

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, eq=False)
class NSESState(State):
    """The state before a generation.

    Attributes:
        centers: The M genomes of the meta-population.
        optimizers: The optimizer's state of each center; None before its first step.
        behaviors: Last recorded behavior of each center, [B] each; None if the center has to be evaluated.
        chosen: Index of the center that moves in this generation.
        archive: Behaviors that novelty is measured against.
        elite: The center with the best validation so far, initially the best genome of the run to start from.
        elite_fitness: Mean return of the elite's validation episodes; None if it has not been validated.
        mean_novelty: Mean novelty of the previous generation.
        max_novelty: Highest novelty of the previous generation.
    """

    centers: tuple[Genome, ...]
    optimizers: tuple[OptimizerState | None, ...]
    behaviors: tuple[np.ndarray | None, ...]
    chosen: int = 0
    archive: Archive = Archive()
    elite: Genome | None = None
    elite_fitness: float | None = None
    mean_novelty: float = 0.0
    max_novelty: float = 0.0

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the numbers per center differ, or behaviors do not fit the archive."""
        super().check_state()
        count = len(self.centers)
        if not len(self.optimizers) == len(self.behaviors) == count > self.chosen >= 0:
            others = f"{len(self.optimizers)} optimizers, {len(self.behaviors)} behaviors and chosen = {self.chosen}"
            raise ValueError(f"the state has {count} centers, {others}, expected equal numbers and chosen below them")
        check_behaviors(self.archive, *self.behaviors)


@settings
class NSES(Algorithm):
    """Novelty-seeking evolution strategies."""

    population: Annotated[Count, Field(multiple_of=2)] = 5000
    """Genomes per generation, an even number: half are the center plus noise, half the center minus the same noise. In
    generation 0 only the centers themselves are evaluated, and no center moves."""
    sigma: Schedule = 0.02
    """Standard deviation of the noise, the same for every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.05, final_p = 0.01, schedule = 500, field = "iteration"}."""
    optimizer: Optimizer = Adam()
    """The optimizer of each center: {type = "adam", learning_rate = 0.01}, optionally with beta1, beta2 and epsilon, or
    {type = "sgd", learning_rate = 0.01, momentum = 0.9}. Each center has a separate optimizer state."""
    weight_decay: WeightDecay = 0.005
    """Coefficient of the L2 penalty: weight_decay * theta is subtracted from the estimated gradient."""
    reward_weight: Share = 0.0
    """Weight w of the ranks of reward, in [0, 1]; the ranks of novelty have weight 1 - w."""
    centers: Count = 5
    """Number of centers (M). Each center takes memory for its weights and its optimizer state."""
    k: Count = 10
    """Number of nearest neighbors: novelty is the mean distance to them in the archive."""
    archive_limit: CountOrZero = 0
    """Capacity of the archive, which keeps the newest behaviors; 0: no limit."""
    trajectory_every: CountOrZero = 0
    """Steps between the samples of an episode that make up its behavior; 0: one sample at the end of the episode."""
    trajectory_samples: Count = 1
    """Samples per episode; in shorter episodes the last sample is repeated."""

    state_type = NSESState

    def __post_init__(self) -> None:
        trajectory(self.trajectory_every, self.trajectory_samples)

    @property
    def behavior(self) -> Behavior:
        """The behavior to record in each episode: its end, or a trajectory."""
        return trajectory(self.trajectory_every, self.trajectory_samples)

    @property
    def state_layout(self) -> type:
        """The optimizer's class, which determines how many moments there are."""
        return type(self.optimizer)

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> NSESState:
        """Make the state before generation 0.

        The first genome becomes the elite, and the first M genomes become centers; missing centers are fresh genomes.
        """
        given, count = tuple(genomes[: self.centers]), self.centers
        fresh = draw_seeds(count, seed, 0, Purpose.INITIAL_WEIGHTS)[len(given) :]
        centers = (*given, *(Genome(base) for base in fresh))
        return self.state_type(seed, centers, (None,) * count, (None,) * count, elite=next(iter(given), None))

    def ask(self, state: NSESState, weights: Weights | None = None) -> list[Genome]:
        """Return the antithetic pairs of the chosen center, or the centers while the archive is empty."""
        if not state.archive:
            return list(state.centers)
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.centers[state.chosen], seeds, scale_at(self.sigma, state))

    def tell(self, state: NSESState, population: EvaluatedPopulation, weights: Weights) -> NSESState:
        """Move the chosen center by one optimizer step; while the archive is empty, no center moves.

        Raises:
            ValueError: A fitness is not finite, the new center is not finite, or there are no behaviors.
        """
        fitness = finite(population.fitness, len(population.genomes))
        behaviors = validate_behaviors(population.behaviors, len(population.genomes), state.archive)
        state = replace(state, steps=state.steps + population.steps)
        if not state.archive:
            return state
        score = novelty(behaviors, state.archive, self.k, peers=False)
        novel = centered_ranks(np.nan_to_num(score, nan=-1.0))  # unknown behaviors are the least novel
        reward = self._reward_weight(state)
        shaped = reward * centered_ranks(fitness) + (1.0 - reward) * novel
        center, optimizer = state.centers[state.chosen], state.optimizers[state.chosen]
        theta = weights.theta(center)
        gradient = estimate(shaped, population.genomes, weights)
        theta, optimizer = ascend(theta, gradient, self.optimizer, optimizer, self.weight_decay)
        mean, highest = mean_and_highest(score)
        return replace(
            state,
            centers=_with(state.centers, state.chosen, Genome(Center(theta), network=center.network)),
            optimizers=_with(state.optimizers, state.chosen, optimizer),
            behaviors=_with(state.behaviors, state.chosen, None),
            mean_novelty=mean,
            max_novelty=highest,
        )

    def novelties(self, state: NSESState, population: EvaluatedPopulation) -> np.ndarray | None:
        """Return the novelty of each member, float64 [N], NaN where unknown; None while the archive is empty."""
        if not state.archive:
            return None
        behaviors = validate_behaviors(population.behaviors, len(population.genomes), state.archive)
        return novelty(behaviors, state.archive, self.k, peers=False)

    def candidates(self, state: NSESState) -> list[Genome]:
        """Return the centers whose behavior is unknown: the moved center, or all centers in generation 0."""
        return [state.centers[i] for i in _unplayed(state)]

    def tell_validation(self, state: NSESState, validation: EvaluatedPopulation) -> NSESState:
        """Add the candidates' behaviors to the archive, update the elite, and draw the next center.

        Raises:
            ValueError: A fitness is not finite, or there are no behaviors.
        """
        fitness = finite(validation.fitness, len(validation.genomes), "candidate")
        rows = validate_behaviors(validation.behaviors, len(validation.genomes), state.archive)
        found, behaviors = known(rows), state.behaviors
        for i, row, is_known in zip(_unplayed(state), rows, found, strict=True):
            behaviors = _with(behaviors, i, row.copy() if is_known else None)
        elite, elite_fitness = state.elite, state.elite_fitness
        if fitness.size and (elite_fitness is None or fitness.max() > elite_fitness):
            elite, elite_fitness = validation.genomes[int(fitness.argmax())], float(fitness.max())
        state = replace(
            state,
            generation=state.generation + 1,
            steps=state.steps + validation.steps,
            behaviors=behaviors,
            archive=state.archive.append(rows[found], self.archive_limit),
            elite=elite,
            elite_fitness=elite_fitness,
        )
        return replace(state, chosen=self._draw(state))

    def check_state(self, state: NSESState) -> None:
        """Check the optimizers' states. ValueError: a state does not fit these settings or its center."""
        for center, optimizer in zip(state.centers, state.optimizers, strict=True):
            if optimizer is not None:
                self.optimizer.check_state(optimizer, center)

    def elite(self, state: NSESState) -> Genome:
        """Return the center with the best validation so far. ValueError: the first generation is not finished."""
        return known_elite(state.elite)

    def best(self, state: NSESState) -> list[Genome]:
        """Return the elite, then the centers."""
        return list(dict.fromkeys([self.elite(state), *state.centers]))

    def archive(self, state: NSESState) -> Archive:
        """Return the archive that novelty is measured against."""
        return state.archive

    def metrics(self, before: NSESState, after: NSESState) -> dict[str, float]:
        """Return sigma, the mean and highest novelty, and the index of the center."""
        return {
            "sigma": shortest(scale_at(self.sigma, before)),
            "novelty_mean": after.mean_novelty,
            "novelty_max": after.max_novelty,
            "center": before.chosen,
        }

    def _reward_weight(self, state: NSESState) -> float:
        """Return the weight of the ranks of reward in a generation."""
        return self.reward_weight

    def _draw(self, state: NSESState) -> int:
        """Draw a center with a probability proportional to its novelty; uniformly if all novelties are 0."""
        novelties = np.zeros(len(state.centers))
        for i, behavior in enumerate(state.behaviors):
            if behavior is not None:
                novelties[i] = novelty(behavior[None], state.archive, self.k, peers=False)[0]
        if not novelties.any():
            novelties[:] = 1.0
        (drawn,) = draw_uniforms(1, state.seed, state.generation, Purpose.CENTERS)
        edges = np.cumsum(novelties)
        return int(np.searchsorted(edges / edges[-1], drawn, side="right"))


@settings
class NSRES(NSES):
    """Evolution strategies that seek novelty and reward."""

    reward_weight: Share = 0.5
    """Weight w of the ranks of reward, in [0, 1]; the ranks of novelty have weight 1 - w."""


@dataclass(frozen=True, eq=False)
class NSRAESState(NSESState):
    """The state before a generation.

    Attributes:
        reward_weight: Weight of the ranks of reward; None until it is adapted for the first time.
        waited: Generations since the best validation fitness last improved or the weight last decreased.
    """

    reward_weight: float | None = None
    waited: int = 0

    def check_state(self) -> None:
        """Check ranges. ValueError: the weight is not in [0, 1], or a count is below 0."""
        super().check_state()
        check_counts(waited=self.waited)
        if self.reward_weight is not None and not 0 <= self.reward_weight <= 1:
            raise ValueError(f"reward_weight is {self.reward_weight}, expected a number in [0, 1]")


@settings
class NSRAES(NSES):
    """Evolution strategies that seek novelty and reward, and adapt the weights of both to progress."""

    reward_weight: Share = 1.0
    """Initial weight w of the ranks of reward, in [0, 1]; the ranks of novelty have weight 1 - w."""
    weight_step: Share = 0.05
    """Amount by which the weight of reward increases when the best validation fitness improves, and decreases after
    `patience` generations without improvement."""
    patience: Count = 50
    """Generations without an improved validation fitness after which the weight of reward decreases."""

    state_type = NSRAESState

    def tell_validation(self, state: NSRAESState, validation: EvaluatedPopulation) -> NSRAESState:  # type: ignore[override]
        """Add the candidates' behaviors to the archive, update elite and weight, and draw the next center."""
        after = super().tell_validation(state, validation)
        assert isinstance(after, NSRAESState)  # for mypy
        weight, waited = self._reward_weight(state), state.waited + 1
        if state.elite_fitness is not None and after.elite_fitness != state.elite_fitness:
            weight, waited = min(1.0, weight + self.weight_step), 0
        elif waited >= self.patience:
            weight, waited = max(0.0, weight - self.weight_step), 0
        return replace(after, reward_weight=weight, waited=waited)

    def metrics(self, before: NSESState, after: NSESState) -> dict[str, float]:
        """Return the metrics of NSES and the weight of reward."""
        return {**super().metrics(before, after), "reward_weight": self._reward_weight(before)}

    def _reward_weight(self, state: NSESState) -> float:
        assert isinstance(state, NSRAESState)  # for mypy
        return self.reward_weight if state.reward_weight is None else state.reward_weight


def _unplayed(state: NSESState) -> list[int]:
    return [i for i, behavior in enumerate(state.behaviors) if behavior is None]


def _with(values: tuple, index: int, value: object) -> tuple:
    """Return the values with the value at `index` replaced."""
    return (*values[:index], value, *values[index + 1 :])
