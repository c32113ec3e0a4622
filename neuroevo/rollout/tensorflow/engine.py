"""Engine whose lanes are TensorFlow graphs over custom ops."""

from __future__ import annotations

from contextlib import suppress

import tensorflow as tf

from neuroevo.rollout.engine import Engine
from neuroevo.rollout.tensorflow.env_pool import OpEnvPool
from neuroevo.rollout.tensorflow.population import OpPopulation
from neuroevo.rollout.tensorflow.rollout import GraphRollout
from neuroevo.system.processes import usable_cores


def tensorflow_engine(lanes: int) -> Engine:
    """Create the engine whose lanes are TensorFlow graphs.

    Args:
        lanes: Number of lanes that the engine will run.
    """
    _let_lanes_run_at_once(lanes)
    return Engine(OpEnvPool, OpPopulation, GraphRollout)


def _let_lanes_run_at_once(lanes: int) -> None:
    """Give TensorFlow at least one thread per lane: otherwise, some lanes would wait until other lanes have ended."""
    threading_config = tf.config.threading
    if lanes > (threading_config.get_inter_op_parallelism_threads() or usable_cores()):
        with suppress(RuntimeError):  # TensorFlow is initialized already, and its threads are fixed
            threading_config.set_inter_op_parallelism_threads(lanes)
