"""Play a phase of a generation, in which genomes play equally many episodes each, and summarize it for each genome."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.schema import Training
from neuroevo.core.episode import Episode, Outcomes, first_of
from neuroevo.core.evaluator import Evaluator, Progress
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.core.statistics import without_overflow
from neuroevo.training.record import PhaseRecord


def population_seeds(training: Training, generation: int, genomes: int) -> list[list[int]]:
    """Draw the seeds of a population's episodes.

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
    """Draw the seeds of a validation's episodes.

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
    on_progress: Progress | None = None,
) -> tuple[Outcomes, PhaseRecord]:
    """Play a phase's episodes.

    Args:
        evaluator: Plays them.
        genomes: N genomes, whose networks play.
        seeds: Seeds of the episodes of each genome, [N, E].
        max_episode_steps: Cut-off of the episodes in steps; 0: the environment's own.
        normalizer: Normalizer of the observations; None: they are not normalized.
        priority: Priority of the episodes, as Evaluator.submit() takes it.
        on_progress: Called a few times a second with the number of finished episodes and the steps they took.

    Returns:
        The outcomes of the N * E episodes, genome by genome, and what the generation's record keeps of them; both are
        empty where there are no episodes.

    Raises:
        SimulationError: All episodes failed.
    """
    pairs = [(genome, seed) for genome, own in zip(genomes, seeds, strict=True) for seed in own]
    episodes = [Episode(genome, seed, max_episode_steps, normalizer) for genome, seed in pairs]
    if not episodes:
        return Outcomes(np.zeros(0), np.zeros(0, np.int64)), PhaseRecord(episodes=0, steps=0, seconds=0.0)
    begun = time.perf_counter()
    outcomes = evaluator.wait(evaluator.submit(episodes, priority), on_progress)
    record = PhaseRecord(
        episodes=len(episodes),
        steps=int(np.sum(outcomes.steps)),
        seconds=time.perf_counter() - begun,
        failures=len(outcomes.failures),
        first_failure=first_of(outcomes.failures),
    )
    return outcomes, record


def played_by(genomes: Sequence[Genome], outcomes: Outcomes) -> EvaluatedPopulation:
    """Summarize outcomes for each genome.

    Args:
        genomes: N genomes.
        outcomes: Outcomes of their episodes, equally many for each, genome by genome; possibly of no episodes.

    Raises:
        SimulationError: All episodes failed.
    """
    if not len(outcomes.steps):
        return EvaluatedPopulation([], np.zeros(0))
    fitness = without_overflow(lambda returns: returns.mean(axis=1), outcomes.counted.reshape(len(genomes), -1))
    steps, behaviors = int(np.sum(outcomes.steps)), outcomes.behaviors
    if behaviors is not None:
        behaviors = behaviors.astype(np.float32 if behaviors.dtype == np.uint8 else np.float64)
        behaviors[list(outcomes.failures)] = np.nan
        if len(behaviors) > len(genomes):
            behaviors = _means(behaviors.reshape(len(genomes), -1, behaviors.shape[1]))
    return EvaluatedPopulation(genomes, fitness, steps, behaviors)


def _means(behaviors: np.ndarray) -> np.ndarray:
    """Return means over E of the behaviors [N, E, B] that are not NaN, [N, B]; NaN where all are."""
    known = ~np.isnan(behaviors)
    with np.errstate(invalid="ignore"):
        means: np.ndarray = np.where(known, behaviors, 0).sum(axis=1) / known.sum(axis=1).astype(behaviors.dtype)
    return means
