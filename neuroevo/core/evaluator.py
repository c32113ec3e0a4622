"""Protocols of evaluators, which play episodes for training, and of their networks, which algorithms compute with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from neuroevo.core.episode import Batch, Episode, OnResults, Outcomes
from neuroevo.core.genome import GAUSSIAN, Genome, Kind


@dataclass(frozen=True)
class Work:
    """Work that an evaluator has done since it was created.

    Attributes:
        steps: Played steps, including those of unfinished episodes; episodes of a genome may share steps:
            custom_ops/rollout/shared_plays.h.
        busy_seconds: Time that the worker threads spent working, in seconds, summed over the threads.
        thread_seconds: Time that the worker threads have existed, in seconds, summed over the threads.
    """

    steps: int = 0
    busy_seconds: float = 0.0
    thread_seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.steps + other.steps,
            self.busy_seconds + other.busy_seconds,
            self.thread_seconds + other.thread_seconds,
        )

    def __sub__(self, other: Work) -> Work:
        return self + Work(-other.steps, -other.busy_seconds, -other.thread_seconds)

    @property
    def idle_share(self) -> float:
        """Share of the threads' time without work, in [0, 1]; 1 without threads."""
        if self.thread_seconds <= 0:
            return 1.0
        return max(0.0, 1 - self.busy_seconds / self.thread_seconds)  # a task counts as work when it ends


Progress = Callable[[int, int], None]  # (finished episodes, their steps), called a few times per second


class Evaluator(Protocol):
    """Protocol for playing episodes; the outcome of an episode depends on the episode alone.

    Attributes:
        frame_skip: Emulator frames per step.
        observation_size: Length of an observation as a flat vector.
        device: Where networks are evaluated, "cpu" or "gpu".
    """

    frame_skip: int
    observation_size: int
    device: str

    @property
    def weights(self) -> Weights:
        """The weights of the evaluator's networks."""

    def submit(self, episodes: Sequence[Episode], priority: int = 0, on_results: OnResults | None = None) -> Batch:
        """Queue episodes and return immediately.

        Args:
            episodes: Episodes to play.
            priority: Episodes with a lower number are played first. Episodes with a higher number fill slots that
                would otherwise be idle while the last urgent episodes finish.
            on_results: Called with results as episodes finish, in the thread that submits and waits.

        Returns:
            The batch to pass to wait().
        """

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = inf) -> Outcomes:
        """Wait until all episodes of a batch are finished, or until the time is up.

        Args:
            batch: A batch that submit() returned.
            on_progress: Called a few times per second with the number of finished episodes and their steps.
            seconds: Maximum time to wait.

        Returns:
            The outcomes in the order of the episodes; after a timeout, the outcomes so far.
        """

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play episodes: submit(), then wait().

        Args:
            episodes: Episodes to play.
            on_progress: Called a few times per second with the number of finished episodes and their steps.

        Returns:
            The outcomes in the order of the episodes.
        """

    def work(self) -> Work:
        """Return the work that the evaluator has done so far."""

    def close(self) -> None:
        """Stop the workers and free the memory."""


@dataclass(frozen=True)
class OwnNetworkLimits:
    """Limits of genomes' own networks, which replace the configured network.

    Attributes:
        count: Maximum number of different networks in a population.
        weights: Maximum number of weights of a network, D.
        units: Maximum number of lstm units of a network.
        integers: Whether int8 supports all kinds of layers that the networks may have.
        graphs: Whether networks may have graph layers, which only the CPU supports.
    """

    count: int
    weights: int
    units: int = 0
    integers: bool = False
    graphs: bool = False


class Weights(Protocol):
    """The weights of genomes, for algorithms that compute with vectors.

    Attributes:
        networks: The texts of the configured networks (custom_ops/networks/network.h).
    """

    networks: Sequence[str]

    def dimension(self, network: int | str) -> int:
        """Return the number of weights of a genome's network, D."""

    def theta(self, genome: Genome) -> np.ndarray:
        """Return the weights of a genome, float32 [D]."""

    def noise_sum(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        network: int | str = 0,
        kind: Kind = GAUSSIAN,
    ) -> np.ndarray:
        """Return the sum of factors[i] * noise(seeds[i]), with the noise that mutations with these seeds add.

        Args:
            seeds: Noise seeds, [N].
            factors: Factor of each noise vector, [N].
            network: The network to mutate.
            kind: Kind of the noise. The noise of a scaled mutation is summed before it is scaled.

        Returns:
            float32 [D of the network].
        """

    def noise_sums(
        self,
        seeds: Sequence[int],
        factors: Sequence[float] | np.ndarray,
        square_factors: Sequence[float] | np.ndarray,
        network: int | str = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return noise_sum() and the sum of square_factors[i] * (noise(seeds[i])**2 - 1).

        The second sum is the gradient with respect to the noise's scale. Low-rank noise is not supported.

        Args:
            seeds: Noise seeds, [N].
            factors: Factor of each noise vector, [N].
            square_factors: Factor of each squared noise vector minus 1, [N].
            network: The network to mutate.

        Returns:
            Both float32 [D of the network].
        """

    def output_change(self, parent: Genome) -> Callable[[int, float], float]:
        """Return a function of a Gaussian mutation's seed and scale that measures the change of the network's outputs.

        Args:
            parent: The genome to mutate.

        Returns:
            The function. It returns the mean squared difference between the outputs of the mutated network and of its
            parent for the environment's reference batch, in float32 except for the mean.

        Raises:
            UserError: There is no reference batch.
        """
