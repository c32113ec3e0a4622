"""The generation loop: ask, play the population, validate the best, tell; and the elite's test episodes beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroevo.algorithms.base import Algorithm, Played
from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.config.schema import Training
from neuroevo.core.episode import Episode, Outcomes, first_of
from neuroevo.core.errors import SimulationError, UserError
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.training.elite_evaluation import EliteEvaluations, Untested, episode_priority
from neuroevo.training.record import Record


@dataclass(frozen=True)
class TrainState:
    """All that the next generation depends on: the algorithm's state, finished generations, cut-off and spent budget.

    steps: population and validation. seconds: wall time of the finished generations. untested: the finished generations
    whose elites' test episodes are not over yet, oldest first. moments: of what the populations saw, where observations
    are normalized.
    """

    algorithm: Any
    generation: int
    max_episode_steps: int
    steps: int = 0
    seconds: float = 0.0
    untested: tuple[Untested, ...] = ()
    moments: ObservationStatistics | None = None


class Watcher:
    """Who is told how a run goes. This one says nothing."""

    def phase(self, generation: int, name: str, episodes: int) -> None:
        """The generation begins to play `episodes` of the phase: population, validation or test."""

    def progress(self, finished: int, steps: int) -> None:
        """Of the phase's episodes `finished` are over and took `steps`."""

    def generation(self, record: Record) -> None:
        """A generation is finished and tested, and its record written."""


def start(
    algorithm: Algorithm,
    training: Training,
    genomes: Sequence[Genome] = (),
    moments: ObservationStatistics | None = None,
) -> TrainState:
    """The state before generation 0. genomes: another run's best, best first, to start from.

    moments: ObservationStatistics(), or what the other run's populations saw, to normalize observations; None: they
    are not.
    """
    state = algorithm.init(training.seed, genomes)
    return TrainState(
        state,
        generation=0,
        max_episode_steps=parse_max_episode_steps(training.max_episode_steps).start,
        moments=moments,
    )


def spent(state: TrainState, training: Training) -> str | None:
    """Which budget is used up, as a sentence's end, or None while there is some left of each."""
    if training.generations is not None and state.generation >= training.generations:
        return f"after {state.generation} generations"
    if training.total_steps is not None and state.steps >= training.total_steps:
        return f"after {state.steps:,} of {training.total_steps:,} steps"
    if training.minutes is not None and state.seconds >= training.minutes * 60:
        return f"after {state.seconds / 60:.1f} of {training.minutes:g} minutes"
    return None


def finished(state: TrainState, training: Training) -> str | None:
    """Like spent(), and None as long as elites of finished generations are being tested."""
    return None if state.untested else spent(state, training)


def train(
    algorithm: Algorithm,
    evaluator: Evaluator,
    training: Training,
    state: TrainState | None = None,
    watcher: Watcher | None = None,
) -> Iterator[tuple[TrainState, list[Record]]]:
    """Yields the state after each generation and the records that became complete, in order; goes on until a budget is
    spent and every elite tested. Records come later than their generations, since test episodes fill idle slots. While
    only tests are left it yields every now and then, so that what is over can be kept.

    From the same state the same generations follow, whatever came before. The caller closes the evaluator.
    ValueError: the evaluator returned a fitness that is not finite. SimulationError: all episodes of a population or of
    a validation failed.
    """
    state = start(algorithm, training) if state is None else state
    watcher = watcher or Watcher()
    tests = EliteEvaluations(evaluator, training, state.untested)
    while spent(state, training) is None:
        state, record = run_generation(algorithm, evaluator, training, state, watcher)
        tests.add(record)
        complete = tests.complete()
        state = replace(state, untested=tests.untested)
        yield state, complete
    told_of = None
    while state.untested:
        oldest, begun = state.untested[0].record.generation, time.perf_counter()
        if oldest != told_of:
            watcher.phase(oldest, "test", tests.episodes)
            told_of = oldest
        tests.wait(_TAIL_SECONDS, watcher.progress)
        seconds = time.perf_counter() - begun
        after = state.seconds + seconds
        complete = [replace(record, seconds_total=after) for record in tests.complete()]
        state = replace(state, seconds=after, untested=tests.untested)
        yield state, complete


def run_generation(
    algorithm: Algorithm, evaluator: Evaluator, training: Training, state: TrainState, watcher: Watcher
) -> tuple[TrainState, Record]:
    """Plays one generation without its test: the state after it and its record.

    UserError: one of the algorithm's metrics is not a finite number or has the name of a column that every run has.
    """
    generation, started, before = state.generation, time.perf_counter(), evaluator.work()
    moments = state.moments
    normalizer = None if moments is None else moments.normalizer(generation, evaluator.observation_size)

    def play(purpose: Purpose, genomes: Sequence[Genome], seeds: Sequence[Sequence[int]]) -> _Phase:
        """Each genome plays the episodes of its seeds, [genomes][episodes each]."""
        pairs = [(genome, seed) for genome, own in zip(genomes, seeds, strict=True) for seed in own]
        if not pairs:
            return _Phase(_NOTHING, Played([], np.zeros(0)), 0.0)
        episodes = [Episode(genome, seed, state.max_episode_steps, normalizer) for genome, seed in pairs]
        phase = purpose.name.removesuffix("_EPISODES").lower()
        watcher.phase(generation, phase, len(episodes))
        begun = time.perf_counter()
        outcomes = evaluator.wait(evaluator.submit(episodes, episode_priority(generation)), watcher.progress)
        try:
            played = _played(genomes, outcomes)
        except SimulationError as error:
            raise SimulationError(f"{phase} of generation {generation}: {error}") from None
        return _Phase(outcomes, played, time.perf_counter() - begun)

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
        moments=None if moments is None else moments.after(population.outcomes.observation_sums),
    )
    record = Record(
        generation=generation,
        max_episode_steps=state.max_episode_steps,
        elite=elite,
        fitness=population.played.fitness,
        validation=float(validation.played.fitness[candidates.index(elite)]) if elite in candidates else None,
        test_mean=None,
        test_standard_error=None,
        steps_population=population.played.steps,
        steps_validation=validation.played.steps,
        steps_test=0,
        steps_total=after.steps,
        frames_total=after.steps * evaluator.frame_skip,
        seconds_population=population.seconds,
        seconds_validation=validation.seconds,
        seconds_test=0.0,
        seconds_total=after.seconds,
        steps_per_s=(done.steps - before.steps) / seconds,
        idle_share=1 - (done.busy_seconds - before.busy_seconds) / (done.threads * seconds),
        normalizer=normalizer,
        failures_population=len(population.outcomes.failures),
        failures_validation=len(validation.outcomes.failures),
        first_failure=first_of(population.outcomes.failures) or first_of(validation.outcomes.failures),
    )
    figures = _figures(f"metrics() of {type(algorithm).__name__}", algorithm.metrics(state.algorithm, told), record)
    return after, replace(record, figures=figures)


_TAIL_SECONDS = 60.0  # between checkpoints while only tests are left
_NOTHING = Outcomes(np.zeros(0, np.float64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class _Phase:
    """Outcomes of equally many episodes for each genome, what the genomes are told of them, and the wall time."""

    outcomes: Outcomes
    played: Played
    seconds: float


def _played(genomes: Sequence[Genome], outcomes: Outcomes) -> Played:
    """Of the outcomes of each genome's episodes, in order. SimulationError: all episodes failed."""
    fitness = outcomes.counted.reshape(len(genomes), -1).mean(axis=1)
    steps, behaviors = int(np.sum(outcomes.steps)), outcomes.behaviors
    if behaviors is not None:
        behaviors = behaviors.astype(np.float32 if behaviors.dtype == np.uint8 else np.float64)
        behaviors[list(outcomes.failures)] = np.nan
        if len(behaviors) > len(genomes):
            behaviors = _means(behaviors.reshape(len(genomes), -1, behaviors.shape[1]))
    return Played(genomes, fitness, steps, behaviors)


def _figures(source: str, numbers: Mapping[str, Any], record: Record) -> dict[str, float | None]:
    """An algorithm's numbers, Python's for NumPy's, which neither a checkpoint nor JSON holds. UserError: one is not a
    finite number or has the name of a column."""
    columns, figures = record.row(), {}
    for name, number in numbers.items():
        if name in columns:
            raise UserError(f"{source} has '{name}', which is a column of every run's results; expected another name")
        figures[name] = number.item() if isinstance(number, np.generic) else number
        if number is not None and not (isinstance(figures[name], int | float) and math.isfinite(figures[name])):
            raise UserError(f"{source} has {name} = {number!r}, expected a finite number, or None if it is not known")
    return figures


def _means(behaviors: np.ndarray) -> np.ndarray:
    """[N, B] of those of the behaviors [N, E, B] that are not NaN; NaN where all are."""
    known = ~np.isnan(behaviors)
    with np.errstate(invalid="ignore"):
        return np.where(known, behaviors, 0).sum(axis=1) / known.sum(axis=1).astype(behaviors.dtype)
