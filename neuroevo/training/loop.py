"""The generation loop: ask, play the population, validate the best, tell; elite evaluation goes on beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from neuroevo.algorithms.base import Algorithm, novelties
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import Training
from neuroevo.core.errors import SimulationError
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome
from neuroevo.training.callback import Callback
from neuroevo.training.elite_evaluation import EliteEvaluations, episode_priority
from neuroevo.training.journal import Journal
from neuroevo.training.member_log import MemberLog, PlayedMembers
from neuroevo.training.phase import Phase, play_phase, population_seeds, validation_seeds
from neuroevo.training.record import GenerationRecord, Record, checked_metrics, with_retries
from neuroevo.training.state import TrainState, spent, start


def train(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState | None = None,
    callback: Callback | None = None,
    journal: Journal | None = None,
    members: MemberLog | None = None,
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
        journal: Knows episodes that were over before the run was resumed, and notes the others; None: there is none.
        members: Keeps the members of every generation; None: nobody does.

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
    clock = _Clock(state.seconds)
    evaluations = EliteEvaluations(evaluator, training, state.pending, journal)
    announced = -1

    def wait(state: TrainState) -> tuple[TrainState, list[Record]]:
        """Waits about a minute, or until the oldest elite's evaluation is over."""
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
        if spent(state, training) is not None:
            break
        state, record = _run_generation(algorithm, evaluator, training, state, callback, clock, journal, members)
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


class _Clock:
    """The wall time of a run: of all its sessions, whatever it is spent on, what the caller does between yields too.

    Args:
        before: Seconds of earlier sessions.
    """

    def __init__(self, before: float):
        self._begun = time.perf_counter() - before

    def seconds(self) -> float:
        """Of this session and those before."""
        return time.perf_counter() - self._begun


def _run_generation(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState,
    callback: Callback,
    clock: _Clock,
    journal: Journal | None,
    members: MemberLog | None,
) -> tuple[TrainState, GenerationRecord]:
    """Plays population and validation of one generation; returns the state after it and its record."""
    generation, started, before = state.generation, time.perf_counter(), evaluator.work()
    statistics = state.observation_statistics
    normalizer = None if statistics is None else statistics.normalizer(generation, evaluator.observation_size)

    def play(name: str, genomes: Sequence[Genome], seeds: Sequence[Sequence[int]]) -> Phase:
        if any(seeds):
            callback.phase(generation, name, sum(map(len, seeds)))
        limit, priority = state.max_episode_steps, episode_priority(generation)
        try:
            return play_phase(
                evaluator, genomes, seeds, limit, normalizer, priority, callback.progress, journal, (generation, name)
            )
        except SimulationError as error:
            raise SimulationError(f"{name} of generation {generation}: {error}") from None

    genomes = algorithm.ask(state.algorithm, evaluator.weights)
    population = play("population", genomes, population_seeds(training, generation, len(genomes)))
    played = population.played if algorithm.behavior is not None else replace(population.played, behaviors=None)
    told = algorithm.tell(state.algorithm, played, evaluator.weights)
    candidates = algorithm.candidates(told)
    validation = play("validation", candidates, validation_seeds(training, generation, len(candidates)))
    told = algorithm.tell_validation(told, validation.played)
    elite = algorithm.elite(told)
    steps = population.played.steps + validation.played.steps

    if members is not None:
        own_steps = population.outcomes.steps.reshape(len(genomes), -1).sum(axis=1)
        played, novel = population.played, novelties(algorithm, state.algorithm, population.played)
        members.add(PlayedMembers(generation, genomes, played.fitness, own_steps, played.behaviors, novel))
    seconds, done = time.perf_counter() - started, evaluator.work() - before
    after = replace(
        state,
        algorithm=told,
        generation=generation + 1,
        max_episode_steps=parse_max_episode_steps(training.max_episode_steps).following(
            state.max_episode_steps, population.outcomes.steps
        ),
        steps=state.steps + steps,
        seconds=clock.seconds(),
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
        steps_per_s=done.steps / seconds,
        idle_share=done.idle_share,
        extra_metrics=with_retries(
            checked_metrics(source, algorithm.metrics(state.algorithm, told)),
            population.outcomes.retries,
            validation.outcomes.retries,
        ),
        normalizer=normalizer,
    )
    return after, record


_TAIL_SECONDS = 60.0  # between checkpoints while only elite evaluations are left
