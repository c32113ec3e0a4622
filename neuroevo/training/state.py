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
    """Complete state of a run between generations.

    Attributes:
        algorithm: The algorithm's state.
        generation: Number of finished generations.
        max_episode_steps: Cut-off of the next generation's episodes, in steps.
        steps: Steps of population and validation episodes so far.
        seconds: Wall time of the run since its first generation, over all sessions, each up to its last checkpoint or
            the last outcome in its journal.
        pending: Finished generations with unfinished evaluations of their elites, oldest first.
        observation_statistics: Statistics of the observations of all populations; None without normalization.
        confirmed_mean: Mean return that was last compared with the target: of the test episodes of an elite whose
            validation had reached it, or of validation without test episodes; None before.
        stopped: Reason given by the callback that finished the run; "" if no callback did.
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
            ValueError: A number is below 0, not finite, or pending evaluations do not belong to the last generations.
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
        algorithm: Algorithm that makes its initial state.
        training: Settings: the seed and the initial cut-off of episodes.
        genomes: Another run's best genomes to start from, best first.
        observation_statistics: Statistics of the other run's observations, or empty statistics, to normalize
            observations; None: no normalization.

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
    """Describe the reason for which a run is over: a spent budget, a reached target or a callback.

    Args:
        state: State after a generation.
        training: The budgets and the target.

    Returns:
        The end of a sentence, such as "after 5 generations"; None if the run is not over.
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
    """Describe the reason for which a run is finished, including its elites' evaluations.

    Args:
        state: State after a generation.
        training: The budgets.

    Returns:
        The result of spent(); None while an elite's evaluation is pending.
    """
    return None if state.pending else spent(state, training)
