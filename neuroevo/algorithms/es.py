"""Evolution strategies as OpenAI ran them (Salimans et al. 2017, https://arxiv.org/abs/1703.03864, algorithm 2), in the
form of Uber's 2018 code (Such et al. 2017, https://arxiv.org/abs/1712.06567): antithetic pairs around one center,
centered ranks of all their returns, Adam or SGD with L2.

The center is the elite, whatever its pairs were worth; nobody plays validation episodes, as in that code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from neuroevo.algorithms.algorithm import Played, Unvalidated, Weights
from neuroevo.algorithms.ascent import L2, antithetic_pairs, ascend, estimate, norm
from neuroevo.algorithms.selection import finite
from neuroevo.genome import Center, Genome
from neuroevo.optimizers import Adam, Optimizer, OptimizerState
from neuroevo.randomness import Purpose, draw_seeds
from neuroevo.ranks import centered_ranks
from neuroevo.schedules import Schedule, value_at
from neuroevo.settings import Count, settings


@dataclass(frozen=True, eq=False)
class ESState:
    """Before a generation: its number, the training steps so far, the center and the optimizer's state (none in the
    first one); and of the generation before, the norm of its estimate and how long its step was beside theta."""

    seed: int
    center: Genome
    generation: int = 0
    steps: int = 0
    optimizer: OptimizerState | None = None
    gradient_norm: float = 0.0
    update_ratio: float = 0.0


@settings
class ES(Unvalidated):
    """Evolution strategies with antithetic pairs and centered ranks."""

    population: Annotated[Count, Field(multiple_of=2)] = 5000
    """Genomes per generation, an even number: half of them have noise added to the center, half have it subtracted."""
    sigma: Schedule = 0.02
    """Standard deviation of that noise, the same for every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.05, final_p = 0.01, schedule = 500, field = "iteration"}."""
    optimizer: Optimizer = Adam()
    """What steps along the estimate: {type = "adam", stepsize = 0.01}, which may have beta1, beta2 and epsilon, or
    {type = "sgd", stepsize = 0.01, momentum = 0.9}."""
    l2: L2 = 0.005
    """Weight decay: l2 * theta is subtracted from the estimate."""

    state_type: ClassVar[type] = ESState
    behavior: ClassVar[None] = None

    def init(self, seed: int, genomes: Sequence[Genome] = ()) -> ESState:
        """The state before generation 0; the first of `genomes`, or else a fresh one, is the center."""
        fresh = draw_seeds(1, seed, 0, Purpose.INITIAL_WEIGHTS)
        return ESState(seed, genomes[0] if genomes else Genome(fresh[0]))

    def ask(self, state: ESState, weights: Weights) -> list[Genome]:
        """The center's antithetic pairs, plus before minus."""
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.center, seeds, self._sigma(state))

    def tell(self, state: ESState, population: Played, weights: Weights) -> ESState:
        """Moves the center. ValueError: a fitness is not finite, or theta would not be."""
        shaped = centered_ranks(finite(population.fitness, len(population.genomes)))
        theta = weights.theta(state.center)
        gradient = estimate(shaped, population.genomes, weights, len(theta))
        after, optimizer = ascend(theta, gradient, self.optimizer, state.optimizer, self.l2)
        length = norm(theta)
        return ESState(
            state.seed,
            Genome(Center(after), network=state.center.network),
            state.generation + 1,
            state.steps + population.steps,
            optimizer,
            gradient_norm=norm(gradient),
            update_ratio=norm(after - theta) / length if length else 0.0,
        )

    def elite(self, state: ESState) -> Genome:
        """The center."""
        return state.center

    def best(self, state: ESState) -> list[Genome]:
        """The center."""
        return [state.center]

    def metrics(self, before: ESState, after: ESState) -> dict[str, float]:
        """sigma of the generation's noise, and what came of it: the norms of the new theta and of the estimate, and the
        length of the step as a share of theta's. OpenAI's code prints the squares of the two norms."""
        return {
            "sigma": self._sigma(before),
            "theta_norm": norm(after.center.base.vector),
            "gradient_norm": after.gradient_norm,
            "update_ratio": after.update_ratio,
        }

    def _sigma(self, state: ESState) -> float:
        return float(np.float32(value_at(self.sigma, state.generation, state.steps)))
