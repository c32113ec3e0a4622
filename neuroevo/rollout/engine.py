"""What a pipeline is built on: environments, rows of weights, and lanes that play episodes from a queue.

There are two. With "native" the lanes are threads of the native core; with "tensorflow" they are TensorFlow graphs, by
custom ops over the same core. Every episode's outcome is the same, bit for bit. The protocols here are what both have
in common; neuroevo/native/{env_pool,population,rollout}.py say more about each method.
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
    """Environments, one for each slot; as native.env_pool.EnvPool."""

    observation_dtype: np.dtype
    observation_shape: tuple[int, ...]
    action_dtype: np.dtype
    num_actions: int
    frame_skip: int
    behavior_dtype: np.dtype
    behavior_size: int
    retries: bool

    def record_behaviors(self, every: int, samples: int) -> None:
        """Records the behavior of every episode; before the first reset."""

    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """What environments take, from networks' outputs float32 [K, W]."""

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normalizer known; mean, std float64 [n]."""

    def drop_normalizers(self, numbers: Ints) -> None:
        """Forgets normalizers."""


class EnginePopulation(Protocol):
    """Rows of weights; as native.population.Population."""

    dimensions: list[int]

    def init(self, rows: Ints, networks: Ints, seeds: Ints) -> None:
        """Puts initial weights into rows [K]."""

    def assign(self, rows: Ints, networks: Ints, thetas: np.ndarray) -> None:
        """Puts thetas [K, max D] into rows [K]."""

    def read(self, rows: Ints) -> np.ndarray:
        """The weights of rows [K], float32 [K, max D]."""

    def perturb(
        self, dst: Ints, src: Ints, seeds: Ints, scales: Sequence[float] | np.ndarray, spreads: Ints | None = None
    ) -> None:
        """Add noise, in order: theta of dst = theta of src + scale * spread * noise(seed); all [K]."""

    def set_reference(self, observations: np.ndarray) -> None:
        """Says what vbn layers take their statistics of, once; [B, ...]."""

    def prepare(self, rows: Ints) -> None:
        """Makes the statistics of rows' vbn layers."""


class EngineRollout(Protocol):
    """Lanes at play; as native.rollout.Rollout."""

    total_steps: int

    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Appends episodes."""

    def results(self, count: int = 0, seconds: float = 0.0) -> EpisodeResults:
        """What has ended since the last call."""

    def close(self) -> None:
        """Ends the lanes within a step."""


class Engine(Protocol):
    """Makes the three. NativeError: what they are asked for is not possible."""

    def make_env_pool(self, env: EnvSpec, slots: int) -> EnginePool:
        """Makes environments."""

    def make_population(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str,
        dtype: str,
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ) -> EnginePopulation:
        """Makes rows."""

    def start(self, pool: Any, population: Any, lanes: int, slots: int, first_row: int) -> EngineRollout:
        """Starts lanes over a pool and a population that this engine has made."""


class NativeEngine:
    """Lanes are threads of the native core. TensorFlow is not imported."""

    def make_env_pool(self, env: EnvSpec, slots: int) -> EnvPool:
        """Makes environments."""
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
        """Makes rows."""
        return Population(networks, rows, backend, dtype, float_rows, kind)

    def start(self, pool: EnvPool, population: Population, lanes: int, slots: int, first_row: int) -> Rollout:
        """Starts lanes."""
        return Rollout(pool, population, lanes=lanes, slots=slots, first_row=first_row)


def chosen_engine(name: str, device: str) -> str:
    """What a choice of users means: the native core on the CPU, TensorFlow for networks on a GPU.

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
    """Makes the engine of a name. That of TensorFlow imports it, which takes seconds.

    Args:
        name: As chosen_engine() takes it.
        device: Where networks are evaluated, "cpu" or "gpu".
        lanes: How many lanes it will run.

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
