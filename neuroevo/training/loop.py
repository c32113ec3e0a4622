"""The generation loop: ask, play the population, validate the best, tell; elite evaluation runs in parallel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from neuroevo.algorithms.base import Algorithm, EvaluatedPopulation
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import Training
from neuroevo.core.episode import Outcomes
from neuroevo.core.errors import SimulationError
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome
from neuroevo.training.callback import Callback
from neuroevo.training.elite_evaluation import EliteEvaluations, episode_priority
from neuroevo.training.phase import play_phase, played_by, population_seeds, validation_seeds
from neuroevo.training.record import ARCHIVE, GenerationRecord, PhaseRecord, Record, checked_metrics, with_retries
from neuroevo.training.state import TrainState, spent, start


def train(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState | None = None,
    callback: Callback | None = None,
) -> Iterator[tuple[TrainState, list[Record]]]:
    """Run generations until the run is over (`training.state.spent`), then wait for all elites' evaluations.

    The generations depend only on the state. Once an elite's validation reaches the target, the loop waits for its test
    episodes before the next generation, so that the generation after which the run ends does not depend on timing.

    Args:
        algorithm: The algorithm.
        evaluator: Evaluator that plays the episodes. The caller closes it.
        training: Episodes, budgets and the seed.
        state: State to continue from; None to start a new run.
        callback: Callback that receives each phase, its progress, and each evaluated population.

    Yields:
        The state after each generation and the records that became complete, oldest first. A record may be completed
        after later generations, since test episodes fill idle slots. While only elite evaluations are left, the state
        and records are yielded about once per minute, so that the caller can save finished episodes.

    Raises:
        SimulationError: All episodes of a population or of a validation failed.
        UserError: One of the algorithm's metrics is not a finite number or has a reserved name.
        ValueError: The evaluator returned a fitness that is not finite.
    """
    state = start(algorithm, training) if state is None else state
    callback = callback or Callback()
    clock = _Clock(state.seconds)
    evaluations = EliteEvaluations(evaluator, training, state.pending)
    announced = -1

    def wait(state: TrainState) -> tuple[TrainState, list[Record]]:
        """Wait about a minute, or until the oldest elite's evaluation has finished."""
        nonlocal announced
        oldest = state.pending[0].record.generation
        if oldest != announced:
            callback.phase(oldest, "test", evaluations.episodes)
            announced = oldest
        evaluations.wait(_TAIL_SECONDS, callback.progress)
        after = clock.seconds()
        complete = [replace(record, seconds_total=after) for record in evaluations.take_complete()]
        return _after(replace(state, seconds=after), evaluations, complete, training), complete

    while True:
        while _may_have_reached(state, training):
            yield (waited := wait(state))
            state = waited[0]
        if callback.stopped and not state.stopped:
            yield (state := replace(state, stopped=callback.stopped)), []
        if spent(state, training) is not None:
            break
        state, record = _run_generation(algorithm, evaluator, training, state, callback, clock)
        evaluations.submit(record)
        complete = evaluations.take_complete()
        yield (state := _after(state, evaluations, complete, training)), complete
    while state.pending:
        yield (waited := wait(state))
        state = waited[0]


def _may_have_reached(state: TrainState, training: Training) -> bool:
    """Return whether the last elite's validation reached the target and its test is unfinished."""
    return bool(state.pending) and _validated(state.pending[-1].record, training)


def _validated(record: GenerationRecord, training: Training) -> bool:
    """Return whether a target is set and the elite's validation, if any, reached it."""
    target, validated = training.target_return, record.validation_mean
    return target is not None and (validated is None or validated >= target)


def _after(
    state: TrainState, evaluations: EliteEvaluations, complete: Sequence[Record], training: Training
) -> TrainState:
    """Return the state once these records are complete."""
    confirmed = state.confirmed_mean
    for record in complete:
        if _validated(record, training):
            confirmed = record.test.mean if training.test_episodes else record.validation_mean
    return replace(state, pending=evaluations.pending, confirmed_mean=confirmed)


class _Clock:
    """Wall time of a run over all sessions, including the time that the caller spends between yields.

    Args:
        before: Wall time of earlier sessions, in seconds.
    """

    def __init__(self, before: float):
        self._begun = time.perf_counter() - before

    def seconds(self) -> float:
        """Return the wall time of this and earlier sessions, in seconds."""
        return time.perf_counter() - self._begun


def _run_generation(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState,
    callback: Callback,
    clock: _Clock,
) -> tuple[TrainState, GenerationRecord]:
    """Play population and validation of one generation; return the state after it and its record."""
    generation, started, before = state.generation, time.perf_counter(), evaluator.work()
    statistics = state.observation_statistics
    normalizer = None if statistics is None else statistics.normalizer(generation, evaluator.observation_size)

    def play(
        name: str, genomes: Sequence[Genome], seeds: Sequence[Sequence[int]]
    ) -> tuple[Outcomes, PhaseRecord, EvaluatedPopulation]:
        if any(seeds):
            callback.phase(generation, name, sum(map(len, seeds)))
        limit, priority = state.max_episode_steps, episode_priority(generation)
        try:
            outcomes, record = play_phase(evaluator, genomes, seeds, limit, normalizer, priority, callback.progress)
            return outcomes, record, played_by(genomes, outcomes)
        except SimulationError as error:
            raise SimulationError(f"{name} of generation {generation}: {error}") from None

    genomes = algorithm.ask(state.algorithm, evaluator.weights)
    outcomes, population, played = play("population", genomes, population_seeds(training, generation, len(genomes)))
    asked = played if algorithm.behavior is not None else replace(played, behaviors=None)
    told = algorithm.tell(state.algorithm, asked, evaluator.weights)
    candidates = algorithm.candidates(told)
    seeds = validation_seeds(training, generation, len(candidates))
    validation_outcomes, validation, validated = play("validation", candidates, seeds)
    told = algorithm.tell_validation(told, validated)
    elite = algorithm.elite(told)
    steps_of_each = outcomes.steps.reshape(len(genomes), -1).sum(axis=1)
    callback.population(generation, played, steps_of_each, algorithm.novelties(state.algorithm, played))
    seconds, done = time.perf_counter() - started, evaluator.work() - before
    after = replace(
        state,
        algorithm=told,
        generation=generation + 1,
        max_episode_steps=parse_max_episode_steps(training.max_episode_steps).following(
            state.max_episode_steps, outcomes.steps
        ),
        steps=state.steps + played.steps + validated.steps,
        seconds=clock.seconds(),
        observation_statistics=None if statistics is None else statistics.after(outcomes.observation_sums),
    )
    metrics = checked_metrics(f"metrics() of {type(algorithm).__name__}", algorithm.metrics(state.algorithm, told))
    archive = algorithm.archive(told)
    if archive is not None:
        metrics[ARCHIVE] = len(archive)
    record = GenerationRecord(
        generation=generation,
        max_episode_steps=state.max_episode_steps,
        elite=elite,
        fitness=played.fitness,
        validation_mean=float(validated.fitness[candidates.index(elite)]) if elite in candidates else None,
        population=population,
        validation=validation,
        steps_total=after.steps,
        frames_total=after.steps * evaluator.frame_skip,
        seconds_total=after.seconds,
        steps_per_s=done.steps / seconds,
        idle_share=done.idle_share,
        extra_metrics=with_retries(metrics, outcomes.retries, validation_outcomes.retries),
        normalizer=normalizer,
    )
    return after, record


_TAIL_SECONDS = 60.0  # interval of yields while only elite evaluations are left
