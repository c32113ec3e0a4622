"""One evolution strategy on one task, as every contender of a comparison runs it, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Experiment:
    """What is evolved: antithetic pairs around one center, centered ranks, Adam.

    Attributes:
        task: Brax's name of the environment.
        backend: Its physics.
        seed: Everything random follows from it.
        population: N, an even number: genomes per generation, each of which plays one episode.
        sigma: Standard deviation of the noise.
        learning_rate: Adam's.
        hidden: Units of the network's hidden layers, with tanh after each and after the output.
        normalize_observations: Whether the mean of what was seen is subtracted, and divided by its deviation.
        episode_length: Steps after which an episode is cut off.
        generations: G.
        test_episodes: Episodes of the center after each generation.
        devices: How many of JAX's devices to use; where there is no GPU, cores.
        lanes: How many episodes our evaluator plays side by side; None: one for each genome.
    """

    task: str
    backend: str
    seed: int
    population: int
    sigma: float
    learning_rate: float
    hidden: tuple[int, ...]
    normalize_observations: bool
    episode_length: int
    generations: int
    test_episodes: int
    devices: int
    lanes: int | None = None


@dataclass(frozen=True)
class Generation:
    """What a contender reports after each generation. All but the generation's number and mean add up from the start.

    Attributes:
        generation: Its number, from 1.
        test_mean: Mean return of the center after it.
        steps: Of the population's episodes, to their ends.
        test_steps: Likewise of the test's.
        seconds: Wall time since training began, compiling included.
        compile_seconds: How much of it JAX traced and compiled.
    """

    generation: int
    test_mean: float
    steps: int
    test_steps: int
    seconds: float
    compile_seconds: float


Report = Callable[[Generation], None]
