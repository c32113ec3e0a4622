"""The state that a run's next generation depends on, and the conditions under which a run is over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from neuroevo.algorithms.base import Algorithm, State
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import Training
from neuroevo.core.arrays import Checked, check_counts
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.training.elite_evaluation import PendingEvaluation


@dataclass(frozen=True)
class TrainState(Checked):
    """All that the next generation depends on.

    Attributes:
        algorithm: The algorithm's state.
        generation: Number of finished generations.
        max_episode_steps: Decisions after which the next generation's episodes are truncated.
        steps: Steps of population and validation episodes so far.
        seconds: Wall time of the run, from the first generation on, whatever it was spent on: of all its sessions
            together, each up to its last checkpoint, or the last outcome that its journal kept.
        pending: The finished generations whose elite's evaluation is not over, oldest first.
        observation_statistics: Of what all populations saw; None if observations are not normalized.
        confirmed_mean: Mean return that the target was last compared with: of the test episodes of an elite whose
            validation had reached it, or of validation where there are no test episodes; None before.
        stopped: Reason why a callback has finished the run; "" if none has.
    """

    algorithm: State
    generation: int
    max_episode_steps: int
    steps: int = 0
    seconds: float = 0.0
    pending: tuple[PendingEvaluation, ...] = ()
    observation_statistics: ObservationStatistics | None = None
    confirmed_mean: float | None = None
    stopped: str = ""

    def check_state(self) -> None:
        """Check the numbers and the pending evaluations.

        Raises:
            ValueError: A number is below 0, not finite, or the pending evaluations are not of the last generations.
        """
        check_counts(generation=self.generation, max_episode_steps=self.max_episode_steps, steps=self.steps)
        for name, value in (("seconds", self.seconds), ("confirmed_mean", self.confirmed_mean or 0.0)):
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}, expected a finite number")
        if self.seconds < 0:
            raise ValueError(f"seconds is {self.seconds}, expected at least 0")
        pending = [each.record.generation for each in self.pending]
        expected = list(range(self.generation - len(pending), self.generation))
        if pending != expected or (pending and pending[0] < 0):
            raise ValueError(
                f"evaluations of {pending} are pending, expected the last of {self.generation} generations"
            )


def start(
    algorithm: Algorithm,
    training: Training,
    genomes: Sequence[Genome] = (),
    observation_statistics: ObservationStatistics | None = None,
) -> TrainState:
    """Make the state before generation 0.

    Args:
        algorithm: Makes its own initial state.
        training: The seed and the episodes' first cut-off.
        genomes: Another run's best genomes to start from, best first.
        observation_statistics: What the other run's populations saw, or empty statistics, to normalize observations;
            None leaves observations as they are.

    Returns:
        The state.
    """
    return TrainState(
        algorithm.init(training.seed, genomes),
        generation=0,
        max_episode_steps=parse_max_episode_steps(training.max_episode_steps).start,
        observation_statistics=observation_statistics,
    )


def spent(state: TrainState, training: Training) -> str | None:
    """Describe which budget is used up, that the target is reached, or that a callback has stopped the run.

    Args:
        state: After a generation.
        training: The budgets and the target.

    Returns:
        The end of a sentence, such as "after 5 generations"; None while some of each budget is left.
    """
    if state.stopped:
        return f"after {state.generation} generations: {state.stopped}"
    target = training.target_return
    if target is not None and state.confirmed_mean is not None and state.confirmed_mean >= target:
        kind = "test" if training.test_episodes else "validation"
        reached = f"the elite's mean return of {state.confirmed_mean:,.1f} in {kind} reaches the target"
        return f"after {state.generation} generations: {reached}, {target:g}"
    if training.generations is not None and state.generation >= training.generations:
        return f"after {state.generation} generations"
    if training.total_steps is not None and state.steps >= training.total_steps:
        return f"after {state.steps:,} of {training.total_steps:,} steps"
    if training.minutes is not None and state.seconds >= training.minutes * 60:
        return f"after {state.seconds / 60:.1f} of {training.minutes:g} minutes"
    return None


def finished(state: TrainState, training: Training) -> str | None:
    """Describe why a run is over.

    Args:
        state: After a generation.
        training: The budgets.

    Returns:
        The result of `spent`, but None as long as an elite's evaluation is pending.
    """
    return None if state.pending else spent(state, training)
