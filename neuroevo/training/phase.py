"""A phase of a generation: genomes play equally many episodes each, and what that says of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from neuroevo.algorithms.base import Played
from neuroevo.config.schema import Training
from neuroevo.core.episode import Episode, Outcomes, first_of
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.system.statistics import without_overflow
from neuroevo.training.journal import Journal, Playing, part_of
from neuroevo.training.record import PhaseRecord


@dataclass(frozen=True)
class Phase:
    """A phase of population or validation that is over.

    Attributes:
        outcomes: Results of the episodes.
        played: What the algorithm learns about its genomes.
        record: What the generation's record keeps.
    """

    outcomes: Outcomes
    played: Played
    record: PhaseRecord


def population_seeds(training: Training, generation: int, genomes: int) -> list[list[int]]:
    """Draws the seeds of a population's episodes.

    Args:
        training: The run's seed, and the number E of episodes of each genome.
        generation: Its number.
        genomes: Number N of genomes.

    Returns:
        Seeds [N, E], all different draws.
    """
    shape = genomes, training.episodes
    seeds = draw_seeds(genomes * training.episodes, training.seed, generation, Purpose.POPULATION_EPISODES)
    drawn: list[list[int]] = np.reshape(seeds, shape).tolist()
    return drawn


def validation_seeds(training: Training, generation: int, candidates: int) -> list[list[int]]:
    """Draws the seeds of a validation's episodes.

    Args:
        training: The run's seed, and the number V of validation episodes.
        generation: Its number.
        candidates: Number C of candidates.

    Returns:
        Seeds [C, V], the same for each candidate.
    """
    return [
        draw_seeds(training.validation_episodes, training.seed, generation, Purpose.VALIDATION_EPISODES)
    ] * candidates


def play_phase(
    evaluator: Evaluator,
    genomes: Sequence[Genome],
    seeds: Sequence[Sequence[int]],
    max_episode_steps: int,
    normalizer: Normalizer | None = None,
    priority: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
    name: tuple[int, str] = (0, ""),
) -> Phase:
    """Plays a phase's episodes.

    Args:
        evaluator: Plays them.
        genomes: Who plays, N genomes.
        seeds: Of the episodes of each, [N, E].
        max_episode_steps: Where episodes are cut off, in steps; 0: where the environment says.
        normalizer: What all see observations through; None: as they are.
        priority: Of the episodes, as Evaluator.submit() takes it.
        on_progress: Called a few times a second with the number of finished episodes and the steps they took.
        journal: Knows episodes that were over before the run was resumed, and notes the others; None: there is none.
        name: What the journal calls them: the generation's number, and "population" or "validation".

    Returns:
        The phase; one of nothing where there are no episodes.

    Raises:
        SimulationError: All episodes failed.
    """
    pairs = [(genome, seed) for genome, own in zip(genomes, seeds, strict=True) for seed in own]
    if not pairs:
        return Phase(_NOTHING, Played([], np.zeros(0)), PhaseRecord(episodes=0, steps=0, seconds=0.0))
    episodes = [Episode(genome, seed, max_episode_steps, normalizer) for genome, seed in pairs]
    begun = time.perf_counter()
    part = None if journal is None else part_of(*name, episodes)
    outcomes = Playing(evaluator, episodes, priority, journal=journal, part=part).wait(on_progress)
    played = _played(genomes, outcomes)
    record = PhaseRecord(
        episodes=len(episodes),
        steps=played.steps,
        seconds=time.perf_counter() - begun,
        failures=len(outcomes.failures),
        first_failure=first_of(outcomes.failures),
    )
    return Phase(outcomes, played, record)


_NOTHING = Outcomes(np.zeros(0, np.float64), np.zeros(0, np.int64))


def _played(genomes: Sequence[Genome], outcomes: Outcomes) -> Played:
    """What genomes achieved, from the outcomes of their episodes, in order. SimulationError: all episodes failed."""
    fitness = without_overflow(lambda returns: returns.mean(axis=1), outcomes.counted.reshape(len(genomes), -1))
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
