"""Engines: environments, rows of weights, and lanes that play episodes from a queue.

There are two engines. With "native" the lanes are threads of the native core; with "tensorflow" they are TensorFlow
graphs, by custom ops over the same core. Every episode's outcome is bit-identical with both. The protocols here contain
what both have in common; neuroevo/native/{env_pool,population,rollout}.py document each method in detail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import EpisodeResults
from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Kind
from neuroevo.core.problems import did_you_mean
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.rollout import Rollout
from neuroevo.native.submission import Submission

ENGINES = ("auto", "native", "tensorflow")
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

    def init(self, rows: Ints, networks: Ints, seeds: Ints) -> None:
        """Put initial weights into rows [K]."""

    def assign(self, rows: Ints, networks: Ints, thetas: np.ndarray) -> None:
        """Put thetas [K, max D] into rows [K]."""

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


class Engine(Protocol):
    """Factory of environments, rows and lanes, all of which raise NativeError if a request is not possible."""

    def make_env_pool(self, env: EnvSpec, slots: int) -> EnginePool:
        """Make environments."""

    def make_population(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str,
        dtype: str,
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ) -> EnginePopulation:
        """Make rows."""

    def start(self, pool: Any, population: Any, lanes: int, slots: int, first_row: int) -> EngineRollout:
        """Start lanes over a pool and a population that this engine has made."""


class NativeEngine:
    """Engine whose lanes are threads of the native core. TensorFlow is not imported."""

    def make_env_pool(self, env: EnvSpec, slots: int) -> EnvPool:
        """Make environments."""
        return EnvPool(env, slots)

    def make_population(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str,
        dtype: str,
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ) -> Population:
        """Make rows."""
        return Population(networks, rows, backend, dtype, float_rows, kind)

    def start(self, pool: EnvPool, population: Population, lanes: int, slots: int, first_row: int) -> Rollout:
        """Start lanes."""
        return Rollout(pool, population, lanes=lanes, slots=slots, first_row=first_row)


def chosen_engine(name: str, device: str) -> str:
    """Resolve the name of an engine: "auto" is the native core on the CPU, TensorFlow for networks on a GPU.

    Args:
        name: "auto", "native" or "tensorflow".
        device: Where networks are evaluated, "cpu" or "gpu".

    Returns:
        "native" or "tensorflow".

    Raises:
        UserError: There is no such engine.
    """
    if name not in ENGINES:
        raise UserError(f"engine '{name}' is unknown{did_you_mean(name, ENGINES)}, expected auto, native or tensorflow")
    if name == "auto":
        return "native" if device == "cpu" else "tensorflow"
    return name


def make_engine(name: str, device: str, lanes: int) -> Engine:
    """Make the engine with a name. The TensorFlow engine imports TensorFlow, which takes seconds.

    Args:
        name: As chosen_engine() takes it.
        device: Where networks are evaluated, "cpu" or "gpu".
        lanes: Number of lanes that it will run.

    Raises:
        UserError: There is no such engine.
        ImportError: TensorFlow cannot be imported.
    """
    if chosen_engine(name, device) == "native":
        return NativeEngine()
    from neuroevo.system.tensorflow_import import load_tensorflow

    load_tensorflow()
    from neuroevo.rollout.tensorflow.engine import TensorFlowEngine

    return TensorFlowEngine(lanes)
