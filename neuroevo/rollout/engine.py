"""Interface of the engines: environments, rows of weights, and lanes that play episodes from a queue.

neuroevo/native/{env_pool,population,rollout}.py document each method in detail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import EpisodeResults
from neuroevo.native.submission import Submission

Ints = Sequence[int] | np.ndarray


class EnginePool(Protocol):
    """Environments, one for each slot; see native.env_pool.EnvPool."""

    observation_dtype: np.dtype
    observation_shape: tuple[int, ...]
    action_dtype: np.dtype
    num_actions: int
    frame_skip: int
    behavior_dtype: np.dtype
    behavior_size: int
    retries: bool

    def record_behaviors(self, every: int, samples: int) -> None:
        """Record the behavior of every episode; call this before the first reset."""

    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """Convert networks' outputs, float32 [K, W], to the environments' actions."""

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Register a normalizer; mean, std float64 [n]."""

    def drop_normalizers(self, numbers: Ints) -> None:
        """Remove normalizers."""


class EnginePopulation(Protocol):
    """Rows of weights; see native.population.Population."""

    dimensions: list[int]

    def replace(self, index: int, network: str) -> None:
        """Replace the network with an index; rows of the old network become empty."""

    def init(self, rows: Ints, networks: Ints, seeds: Ints) -> None:
        """Fill rows [K] with initial weights."""

    def assign(self, rows: Ints, networks: Ints, thetas: np.ndarray) -> None:
        """Fill rows [K] with thetas [K, max D]."""

    def read(self, rows: Ints) -> np.ndarray:
        """Return the weights of rows [K], float32 [K, max D]."""

    def perturb(
        self, dst: Ints, src: Ints, seeds: Ints, scales: Sequence[float] | np.ndarray, spreads: Ints | None = None
    ) -> None:
        """Add noise, in order: theta of dst = theta of src + scale * spread * noise(seed); all [K]."""

    def set_reference(self, observations: np.ndarray) -> None:
        """Set the reference batch, [B, ...], from which vbn layers take their statistics, once."""

    def prepare(self, rows: Ints) -> None:
        """Compute the statistics of rows' vbn layers."""


class EngineRollout(Protocol):
    """Running lanes; see native.rollout.Rollout."""

    total_steps: int

    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Append episodes to the queue."""

    def results(self, count: int = 0, seconds: float = 0.0) -> EpisodeResults:
        """Return the results of the episodes that have ended since the last call."""

    def close(self) -> None:
        """End the lanes within a step."""


@dataclass(frozen=True)
class Engine:
    """Factory of environments, rows and lanes. All functions raise NativeError for invalid arguments.

    Attributes:
        env_pool: Creates environments from an EnvSpec and a number of slots.
        population: Creates rows; its arguments are those of native.population.Population.
        rollout: Starts lanes over a pool and a population of this engine, with keywords lanes, slots and first_row.
    """

    env_pool: Callable[[EnvSpec, int], EnginePool]
    population: Callable[..., EnginePopulation]
    rollout: Callable[..., EngineRollout]
