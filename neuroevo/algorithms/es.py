"""Evolution strategies of OpenAI (Salimans et al. 2017, https://arxiv.org/abs/1703.03864, algorithm 2).

The form is that of Uber's 2018 code (Such et al. 2017, https://arxiv.org/abs/1712.06567): antithetic pairs around one
center, centered ranks over all their returns, Adam or SGD, and an L2 penalty. As in that code, the center is always the
elite, whatever the returns of its pairs, and there are no validation episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from neuroevo.algorithms.ascent import CenterSearch, CenterState, WeightDecay, antithetic_pairs, ascend, estimate
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.fitness_shaping import centered_ranks
from neuroevo.algorithms.optimizers import Adam, Optimizer, OptimizerState
from neuroevo.algorithms.schedules import Schedule, scale_at, shortest
from neuroevo.algorithms.selection import finite
from neuroevo.core.arrays import norm
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.settings import Count, settings


@dataclass(frozen=True, eq=False)
class ESState(CenterState):
    """The state before a generation.

    Attributes:
        optimizer: The optimizer's state; None before the first step.
        gradient_norm: Euclidean norm of the previous generation's estimate.
        update_ratio: Norm of the previous generation's step divided by the norm of theta.
    """

    optimizer: OptimizerState | None = None
    gradient_norm: float = 0.0
    update_ratio: float = 0.0


@settings
class ES(CenterSearch):
    """Evolution strategies with antithetic pairs and centered ranks."""

    population: Annotated[Count, Field(multiple_of=2)] = 5000
    """Genomes per generation, an even number: half are the center plus noise, half the center minus the same noise."""
    sigma: Schedule = 0.02
    """Standard deviation of the noise, the same for every weight. A number or a schedule, such as
    {type = "LinearSchedule", initial_p = 0.05, final_p = 0.01, schedule = 500, field = "iteration"}."""
    optimizer: Optimizer = Adam()
    """The optimizer of the center: {type = "adam", learning_rate = 0.01}, optionally with beta1, beta2 and epsilon, or
    {type = "sgd", learning_rate = 0.01, momentum = 0.9}."""
    weight_decay: WeightDecay = 0.005
    """Coefficient of the L2 penalty: weight_decay * theta is subtracted from the estimated gradient."""

    state_type = ESState

    @property
    def state_layout(self) -> type:
        """The optimizer's class, which determines how many moments there are."""
        return type(self.optimizer)

    def ask(self, state: ESState, weights: Weights) -> list[Genome]:
        """Return the center's antithetic pairs, plus before minus."""
        seeds = draw_seeds(self.population // 2, state.seed, state.generation, Purpose.PAIRS)
        return antithetic_pairs(state.center, seeds, scale_at(self.sigma, state), self.mutation_kind)

    def tell(self, state: ESState, population: EvaluatedPopulation, weights: Weights) -> ESState:
        """Move the center by one optimizer step.

        Raises:
            ValueError: A fitness is not finite, or the step would make a weight infinite or NaN.
        """
        shaped = centered_ranks(finite(population.fitness, len(population.genomes)))
        theta = weights.theta(state.center)
        gradient = estimate(shaped, population.genomes, weights)
        after, optimizer = ascend(theta, gradient, self.optimizer, state.optimizer, self.weight_decay)
        length = norm(theta)
        return state.moved(
            after,
            population,
            optimizer=optimizer,
            gradient_norm=norm(gradient),
            update_ratio=norm(after - theta) / length if length else 0.0,
        )

    def check_state(self, state: ESState) -> None:
        """Check the optimizer's state. ValueError: it does not fit these settings or this center."""
        if state.optimizer is not None:
            self.optimizer.check_state(state.optimizer, state.center)

    def metrics(self, before: ESState, after: ESState) -> dict[str, float]:
        """Return sigma, the norms of the new theta and of the estimate, and the step's norm divided by theta's norm.

        OpenAI's code prints the squares of the first two norms.
        """
        center = after.center.root
        assert isinstance(center, Center)  # set by tell()
        return {
            "sigma": shortest(scale_at(self.sigma, before)),
            "theta_norm": norm(center.vector),
            "gradient_norm": after.gradient_norm,
            "update_ratio": after.update_ratio,
        }
