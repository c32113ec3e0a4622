"""The generation loop: ask, play the population, validate the best, tell; elite evaluation goes on beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Algorithm, Played
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import Training
from neuroevo.core.episode import Episode, Outcomes, first_of
from neuroevo.core.errors import SimulationError
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.training.callback import Callback
from neuroevo.training.elite_evaluation import EliteEvaluations, PendingEvaluation, episode_priority
from neuroevo.training.record import GenerationRecord, PhaseRecord, Record, checked_metrics


@dataclass(frozen=True)
class TrainState:
    """All that the next generation depends on.

    Attributes:
        algorithm: The algorithm's state.
        generation: Number of finished generations.
        max_episode_steps: Decisions after which the next generation's episodes are cut off.
        steps: Steps of population and validation episodes so far.
        seconds: Wall time of the finished generations.
        pending: The finished generations whose elite's evaluation is not over, oldest first.
        observation_statistics: Of what all populations saw; None if observations are not normalized.
        confirmed_mean: Mean return that the target was last compared with: of the test episodes of an elite whose
            validation had reached it, or of validation where there are no test episodes; None before.
    """

    algorithm: Any
    generation: int
    max_episode_steps: int
    steps: int = 0
    seconds: float = 0.0
    pending: tuple[PendingEvaluation, ...] = ()
    observation_statistics: ObservationStatistics | None = None
    confirmed_mean: float | None = None


def start(
    algorithm: Algorithm,
    training: Training,
    genomes: Sequence[Genome] = (),
    observation_statistics: ObservationStatistics | None = None,
) -> TrainState:
    """Makes the state before generation 0.

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
    """Says which budget is used up, or that the target is reached.

    Args:
        state: After a generation.
        training: The budgets and the target.

    Returns:
        The end of a sentence, such as "after 5 generations"; None while some of each budget is left.
    """
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
    """Says why a run is over.

    Args:
        state: After a generation.
        training: The budgets.

    Returns:
        What `spent` returns, but None as long as an elite's evaluation is pending.
    """
    return None if state.pending else spent(state, training)


def train(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState | None = None,
    callback: Callback | None = None,
) -> Iterator[tuple[TrainState, list[Record]]]:
    """Runs generations until a budget is spent or the target is reached, then waits for all elites' evaluations.

    From the same state the same generations follow, whatever came before. Once an elite's validation reaches the
    target, its test episodes are waited for before the next generation begins, so that the run ends after the same
    generation whenever they are played.

    Args:
        algorithm: Makes the genomes.
        evaluator: Plays the episodes. The caller closes it.
        training: Episodes, budgets and the seed.
        state: Where to go on from; None for the start.
        callback: Hears of each phase and its progress.

    Yields:
        The state after each generation and the records that became complete, oldest first: later than their
        generations, since test episodes fill idle slots. While only elite evaluations are left, the state and the
        records about once a minute, so that the caller can keep the episodes that are over.

    Raises:
        SimulationError: All episodes of a population or of a validation failed.
        UserError: One of the algorithm's metrics is not a finite number, or has the name of a column of every run.
        ValueError: The evaluator returned a fitness that is not finite.
    """
    state = start(algorithm, training) if state is None else state
    callback = callback or Callback()
    evaluations = EliteEvaluations(evaluator, training, state.pending)
    announced = -1

    def wait(state: TrainState) -> tuple[TrainState, list[Record]]:
        """Waits about a minute, or until the oldest elite's evaluation is over."""
        nonlocal announced
        oldest, begun = state.pending[0].record.generation, time.perf_counter()
        if oldest != announced:
            callback.phase(oldest, "test", evaluations.episodes)
            announced = oldest
        evaluations.wait(_TAIL_SECONDS, callback.progress)
        after = state.seconds + (time.perf_counter() - begun)
        complete = [replace(record, seconds_total=after) for record in evaluations.take_complete()]
        return _after(replace(state, seconds=after), evaluations, complete, training), complete

    while True:
        while _may_have_reached(state, training):
            yield (waited := wait(state))
            state = waited[0]
        if spent(state, training) is not None:
            break
        state, record = _run_generation(algorithm, evaluator, training, state, callback)
        evaluations.submit(record)
        complete = evaluations.take_complete()
        yield (state := _after(state, evaluations, complete, training)), complete
    while state.pending:
        yield (waited := wait(state))
        state = waited[0]


def _may_have_reached(state: TrainState, training: Training) -> bool:
    """Whether the last generation's elite is still to be tested, and its validation reached the target."""
    return bool(state.pending) and _validated(state.pending[-1].record, training)


def _validated(record: GenerationRecord, training: Training) -> bool:
    """Whether there is a target, and the elite's validation, if it played any, reached it."""
    target, validated = training.target_return, record.validation_mean
    return target is not None and (validated is None or validated >= target)


def _after(
    state: TrainState, evaluations: EliteEvaluations, complete: Sequence[Record], training: Training
) -> TrainState:
    """The state once these records are complete."""
    confirmed = state.confirmed_mean
    for record in complete:
        if _validated(record, training):
            confirmed = record.test.mean if training.test_episodes else record.validation_mean
    return replace(state, pending=evaluations.pending, confirmed_mean=confirmed)


def _run_generation(
    algorithm: Algorithm, evaluator: Evaluator, training: Training, state: TrainState, callback: Callback
) -> tuple[TrainState, GenerationRecord]:
    """Plays population and validation of one generation; returns the state after it and its record."""
    generation, started, before = state.generation, time.perf_counter(), evaluator.work()
    statistics = state.observation_statistics
    normalizer = None if statistics is None else statistics.normalizer(generation, evaluator.observation_size)

    def play(purpose: Purpose, genomes: Sequence[Genome], seeds: Sequence[Sequence[int]]) -> _Phase:
        """Each genome plays the episodes of its seeds, [genomes][episodes each]."""
        pairs = [(genome, seed) for genome, own in zip(genomes, seeds, strict=True) for seed in own]
        if not pairs:
            return _Phase(_NOTHING, Played([], np.zeros(0)), PhaseRecord(episodes=0, steps=0, seconds=0.0))
        episodes = [Episode(genome, seed, state.max_episode_steps, normalizer) for genome, seed in pairs]
        name = purpose.name.removesuffix("_EPISODES").lower()
        callback.phase(generation, name, len(episodes))
        begun = time.perf_counter()
        outcomes = evaluator.wait(evaluator.submit(episodes, episode_priority(generation)), callback.progress)
        try:
            played = _played(genomes, outcomes)
        except SimulationError as error:
            raise SimulationError(f"{name} of generation {generation}: {error}") from None
        record = PhaseRecord(
            episodes=len(episodes),
            steps=played.steps,
            seconds=time.perf_counter() - begun,
            failures=len(outcomes.failures),
            first_failure=first_of(outcomes.failures),
        )
        return _Phase(outcomes, played, record)

    def seeds(purpose: Purpose, count: int) -> list[int]:
        return draw_seeds(count, training.seed, generation, purpose)

    genomes = algorithm.ask(state.algorithm, evaluator.weights)
    each = training.episodes
    own = np.reshape(seeds(Purpose.POPULATION_EPISODES, len(genomes) * each), (len(genomes), each)).tolist()
    population = play(Purpose.POPULATION_EPISODES, genomes, own)
    told = algorithm.tell(state.algorithm, population.played, evaluator.weights)
    candidates = algorithm.candidates(told)
    shared = seeds(Purpose.VALIDATION_EPISODES, training.validation_episodes)
    validation = play(Purpose.VALIDATION_EPISODES, candidates, [shared] * len(candidates))
    told = algorithm.tell_validation(told, validation.played)
    elite = algorithm.elite(told)
    steps = population.played.steps + validation.played.steps

    seconds, done = time.perf_counter() - started, evaluator.work()
    after = replace(
        state,
        algorithm=told,
        generation=generation + 1,
        max_episode_steps=parse_max_episode_steps(training.max_episode_steps).following(
            state.max_episode_steps, population.outcomes.steps
        ),
        steps=state.steps + steps,
        seconds=state.seconds + seconds,
        observation_statistics=None if statistics is None else statistics.after(population.outcomes.observation_sums),
    )
    source = f"metrics() of {type(algorithm).__name__}"
    record = GenerationRecord(
        generation=generation,
        max_episode_steps=state.max_episode_steps,
        elite=elite,
        fitness=population.played.fitness,
        validation_mean=float(validation.played.fitness[candidates.index(elite)]) if elite in candidates else None,
        population=population.record,
        validation=validation.record,
        steps_total=after.steps,
        frames_total=after.steps * evaluator.frame_skip,
        seconds_total=after.seconds,
        steps_per_s=(done.steps - before.steps) / seconds,
        idle_share=1 - (done.busy_seconds - before.busy_seconds) / (done.threads * seconds),
        extra_metrics=checked_metrics(source, algorithm.metrics(state.algorithm, told)),
        normalizer=normalizer,
    )
    return after, record


_TAIL_SECONDS = 60.0  # between checkpoints while only elite evaluations are left
_NOTHING = Outcomes(np.zeros(0, np.float64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class _Phase:
    """A phase of population or validation, of equally many episodes for each of its genomes.

    Attributes:
        outcomes: Results of the episodes.
        played: What the algorithm learns about its genomes.
        record: What the generation's record keeps.
    """

    outcomes: Outcomes
    played: Played
    record: PhaseRecord


def _played(genomes: Sequence[Genome], outcomes: Outcomes) -> Played:
    """What genomes achieved, from the outcomes of their episodes, in order. SimulationError: all episodes failed."""
    fitness = outcomes.counted.reshape(len(genomes), -1).mean(axis=1)
    steps, behaviors = int(np.sum(outcomes.steps)), outcomes.behaviors
    if behaviors is not None:
        behaviors = behaviors.astype(np.float32 if behaviors.dtype == np.uint8 else np.float64)
        behaviors[list(outcomes.failures)] = np.nan
        if len(behaviors) > len(genomes):
            behaviors = _means(behaviors.reshape(len(genomes), -1, behaviors.shape[1]))
    return Played(genomes, fitness, steps, behaviors)


def _means(behaviors: np.ndarray) -> np.ndarray:
    """Means over E of the behaviors [N, E, B] that are not NaN, [N, B]; NaN where all are."""
    known = ~np.isnan(behaviors)
    with np.errstate(invalid="ignore"):
        means: np.ndarray = np.where(known, behaviors, 0).sum(axis=1) / known.sum(axis=1).astype(behaviors.dtype)
    return means
