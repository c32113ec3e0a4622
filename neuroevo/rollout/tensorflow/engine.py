"""The engine whose lanes are TensorFlow graphs over custom ops."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import tensorflow as tf

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.genome import GAUSSIAN, Kind
from neuroevo.rollout.tensorflow.env_pool import OpEnvPool
from neuroevo.rollout.tensorflow.population import OpPopulation
from neuroevo.rollout.tensorflow.rollout import GraphRollout
from neuroevo.system.cores import usable_cores


class TensorFlowEngine:
    """Engine whose lanes are TensorFlow graphs; see the protocol rollout.engine.Engine.

    Args:
        lanes: Number of lanes that it will run.
        population_device: TensorFlow's device of the population's ops, as OpPopulation has it.
    """

    def __init__(self, lanes: int, population_device: str = "/cpu:0"):
        self._population_device = population_device
        _let_lanes_run_at_once(lanes)

    def make_env_pool(self, env: EnvSpec, slots: int) -> OpEnvPool:
        """Make environments."""
        return OpEnvPool(env, slots)

    def make_population(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str,
        dtype: str,
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ) -> OpPopulation:
        """Make rows."""
        return OpPopulation(networks, rows, backend, dtype, float_rows, self._population_device, kind)

    def start(self, pool: OpEnvPool, population: OpPopulation, lanes: int, slots: int, first_row: int) -> GraphRollout:
        """Start lanes."""
        return GraphRollout(pool, population, lanes=lanes, slots=slots, first_row=first_row)


def _let_lanes_run_at_once(lanes: int) -> None:
    """Give TensorFlow a thread per lane if it has fewer: some lanes would wait until others have no episodes."""
    threading_config = tf.config.threading
    if lanes > (threading_config.get_inter_op_parallelism_threads() or usable_cores()):
        with suppress(RuntimeError):  # it is at work already, and keeps those that it has
            threading_config.set_inter_op_parallelism_threads(lanes)
