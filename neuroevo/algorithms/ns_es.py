"""NS-ES and NSR-ES, evolution strategies that seek novelty (Conti et al. 2018, https://arxiv.org/abs/1712.06560).

A meta-population of centers shares an archive of the behaviors that they had. In each generation one of them, the more
novel the more likely, moves along an estimate of where novelty grows (NS-ES), or novelty and reward (NSR-ES), and its
behavior after that enters the archive. But for the population's size, the defaults are those of the paper's code
(https://github.com/uber-research/deep-neuroevolution, es_distributed/nses.py, on Humanoid), and so are the details,
except that

- a center's novelty is that of the behavior it had when it was last played, which its own entry in the archive equals;
  the code plays all centers again in every generation;
- a trajectory has a fixed number of samples, its last state again after its end. The code takes the state after every
  step; of two episodes it compares what follows the shorter one with its last state too, but only up to the end of the
  longer one, where here the two last states count until the last sample;
- the first center to move is drawn as well; in the code it is number 0;
- a center's episodes have the cut-off of its pairs'; in the code they go on to the greatest of an adaptive one;
- centers share the statistics that normalize observations; in the code each has its own;
- equal novelties, or returns, share their rank (neuroevo/ranks.py).

Behaviors in the archive are means over a center's validation episodes. The code has one such episode on Atari, five on
Humanoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.algorithm import Played, Weights
from neuroevo.algorithms.ascent import L2, antithetic_pairs, ascend, estimate
from neuroevo.algorithms.selection import finite
from neuroevo.behavior import Behavior, trajectory
from neuroevo.genome import Center, Genome
from neuroevo.novelty import checked, grown, known, mean_and_highest, novelty
from neuroevo.optimizers import Adam, Optimizer, OptimizerState
from neuroevo.randomness import Purpose, draw_seeds, draw_uniforms
from neuroevo.ranks import centered_ranks
from neuroevo.schedules import Schedule, value_at
from neuroevo.settings import Count, CountOrZero, settings

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, eq=False)
class NSESState:
    """Before a generation: its number, the training steps so far, the M centers and which of them plays.

    optimizers: a center's, None before its first step. behaviors: a center's when it was last played, [B], None if it
    has to play first. archive: [A, B]. elite: the center whose validation was the best so far, elite_fitness, or
    another run's best. mean_novelty, max_novelty: of the last generation.
    """

    seed: int
    centers: tuple[Genome, ...]
    optimizers: tuple[OptimizerState | None, ...]
    behaviors: tuple[np.ndarray | None, ...]
    generation: int = 0
    steps: int = 0
    chosen: int = 0
    archive: np.ndarray | None = None
    elite: Genome | None = None
    elite_fitness: float | None = None
    mean_novelty: float = 0.0
    max_novelty: float = 0.0


@settings
class NSES:
    """Novelty-seeking evolution strategies."""

    population: Annotated[Count, Field(multiple_of=2)] = 5000
    """Genomes per generation, an even number: half of them have noise added to the center, half have it subtracted. In
    the first one the centers themselves play, and nothing moves."""
    sigma: Schedule = 0.02
    """Standard deviation of that noise, the same for every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.05, final_p = 0.01, schedule = 500, field = "iteration"}."""
    optimizer: Optimizer = Adam()
    """What steps along the estimate: {type = "adam", stepsize = 0.01}, which may have beta1, beta2 and epsilon, or
    {type = "sgd", stepsize = 0.01, momentum = 0.9}. Each center has its own."""
    l2: L2 = 0.005
    """Weight decay: l2 * theta is subtracted from the estimate."""
    reward_weight: Share = 0.0
    """What share reward's ranks have beside novelty's."""
    centers: Count = 5
    """How many there are (M). Each takes the memory of its weights and of its optimizer's."""
    k: Count = 10
    """Novelty is the mean distance to so many nearest neighbors in the archive."""
    archive_limit: CountOrZero = 0
    """The newest behaviors that stay in the archive; 0: all of them."""
    trajectory_every: CountOrZero = 0
    """Steps between the samples of an episode that are its behavior together; 0: only how it ended."""
    trajectory_samples: Count = 1
    """Samples of each episode; those after its end are the last one again."""

    def __post_init__(self) -> None:
        trajectory(self.trajectory_every, self.trajectory_samples)

    state_type: ClassVar[type] = NSESState

    @property
    def behavior(self) -> Behavior:
        """What of an episode is recorded."""
        return trajectory(self.trajectory_every, self.trajectory_samples)

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> NSESState:
        """The state before generation 0; of `genomes` the first M are centers, the others are fresh."""
        given, count = tuple(genomes[: self.centers]), self.centers
        fresh = draw_seeds(count, seed, 0, Purpose.INITIAL_WEIGHTS)[len(given) :]
        centers = (*given, *(Genome(base) for base in fresh))
        return NSESState(seed, centers, (None,) * count, (None,) * count, elite=next(iter(given), None))

    def ask(self, state: NSESState, weights: Weights | None = None) -> list[Genome]:
        """The antithetic pairs of the chosen center, plus before minus; the centers while the archive is empty."""
        if state.archive is None:
            return list(state.centers)
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.centers[state.chosen], seeds, self._sigma(state))

    def tell(self, state: NSESState, population: Played, weights: Weights) -> NSESState:
        """Moves the chosen center. ValueError: a fitness is not finite, theta would not be, or no behaviors."""
        fitness = finite(population.fitness, len(population.genomes))
        behaviors = checked(population.behaviors, len(population.genomes), state.archive)
        state = replace(state, steps=state.steps + population.steps)
        if state.archive is None:
            return state
        score = novelty(behaviors, state.archive, self.k, peers=False)
        shaped = self.reward_weight * centered_ranks(fitness) + (1.0 - self.reward_weight) * centered_ranks(score)
        center, optimizer = state.centers[state.chosen], state.optimizers[state.chosen]
        theta = weights.theta(center)
        gradient = estimate(shaped, population.genomes, weights, len(theta))
        theta, optimizer = ascend(theta, gradient, self.optimizer, optimizer, self.l2)
        mean, highest = mean_and_highest(score)
        return replace(
            state,
            centers=_with(state.centers, state.chosen, Genome(Center(theta), network=center.network)),
            optimizers=_with(state.optimizers, state.chosen, optimizer),
            behaviors=_with(state.behaviors, state.chosen, None),
            mean_novelty=mean,
            max_novelty=highest,
        )

    def candidates(self, state: NSESState) -> list[Genome]:
        """The centers whose behavior is not known: the one that has moved; in generation 0 all of them."""
        return [state.centers[i] for i in _unplayed(state)]

    def tell_validation(self, state: NSESState, validation: Played) -> NSESState:
        """Their behaviors enter the archive; the best center so far is the elite; and who plays next is drawn."""
        fitness = finite(validation.fitness, len(validation.genomes), "candidate")
        rows = checked(validation.behaviors, len(validation.genomes), state.archive)
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
            archive=grown(state.archive, rows[found], self.archive_limit),
            elite=elite,
            elite_fitness=elite_fitness,
        )
        return replace(state, chosen=self._draw(state))

    def elite(self, state: NSESState) -> Genome:
        """The center with the best validation of all generations."""
        if state.elite is None:
            raise ValueError("there is no elite before the first generation is finished")
        return state.elite

    def best(self, state: NSESState) -> list[Genome]:
        """The elite, then the centers."""
        return list(dict.fromkeys([self.elite(state), *state.centers]))

    def metrics(self, before: NSESState, after: NSESState) -> dict[str, float]:
        """sigma, the novelty of the generation's genomes, whose pairs they were, and behaviors in the archive."""
        return {
            "sigma": self._sigma(before),
            "novelty_mean": after.mean_novelty,
            "novelty_max": after.max_novelty,
            "center": before.chosen,
            "archive": 0 if after.archive is None else len(after.archive),
        }

    def _draw(self, state: NSESState) -> int:
        """Which center plays: the more novel the more likely, in proportion. Where all have novelty 0, any of them."""
        novelties = np.zeros(len(state.centers))
        for i, behavior in enumerate(state.behaviors):
            if behavior is not None:
                novelties[i] = novelty(behavior[None], state.archive, self.k, peers=False)[0]
        if not novelties.any():
            novelties[:] = 1.0
        (drawn,) = draw_uniforms(1, state.seed, state.generation, Purpose.CENTERS)
        edges = np.cumsum(novelties)
        return int(np.searchsorted(edges / edges[-1], drawn, side="right"))

    def _sigma(self, state: NSESState) -> float:
        return float(np.float32(value_at(self.sigma, state.generation, state.steps)))


@settings
class NSRES(NSES):
    """Evolution strategies that seek novelty and reward."""

    reward_weight: Share = 0.5
    """What share reward's ranks have beside novelty's."""


def _unplayed(state: NSESState) -> list[int]:
    return [i for i, behavior in enumerate(state.behaviors) if behavior is None]


def _with(values: tuple, index: int, value: object) -> tuple:
    """The values with another one at the index."""
    return (*values[:index], value, *values[index + 1 :])
