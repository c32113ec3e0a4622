"""Play a phase of a generation, with the same number of episodes per genome, and summarize it per genome."""

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
        training: Settings: the run's seed, and the number E of episodes per genome.
        generation: Index of the generation.
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
        training: Settings: the run's seed, and the number V of validation episodes.
        generation: Index of the generation.
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
        evaluator: Evaluator that plays the episodes.
        genomes: N genomes.
        seeds: Seeds of each genome's episodes, [N, E].
        max_episode_steps: Cut-off of the episodes in steps; 0: the environment's own limit.
        normalizer: Normalizer of the observations; None: no normalization.
        priority: Priority of the episodes, as for Evaluator.submit().
        on_progress: Function called a few times per second with the number of finished episodes and their steps.

    Returns:
        The outcomes of the N * E episodes, genome by genome, and their summary for the generation's record; both are
        empty if there are no episodes.

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
    """Summarize outcomes per genome.

    Args:
        genomes: N genomes.
        outcomes: Outcomes of the episodes, genome by genome, the same number for each genome; may be empty.

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
    """Return the means over E of behaviors [N, E, B], ignoring NaN, [N, B]; NaN if all are NaN."""
    known = ~np.isnan(behaviors)
    with np.errstate(invalid="ignore"):
        means: np.ndarray = np.where(known, behaviors, 0).sum(axis=1) / known.sum(axis=1).astype(behaviors.dtype)
    return means
