"""The threads that run the lanes of a pipeline, one each, until the episode queue is closed."""

from __future__ import annotations

import threading
from contextlib import suppress

import tensorflow as tf

from neuroevo.native.library import end_stuck_environments
from neuroevo.rollout.tf_ops import in_core_words, load_ops
from neuroevo.system.cores import usable_cores

_PATIENCE = 2.0  # seconds that a step may take once the queue is closed, if a process can be ended for it


class LaneThreads:
    """One thread per lane. failure: what stopped the first lane that was stopped, or None."""

    def __init__(self, lanes: int):
        self.failure: BaseException | None = None
        self._lanes = lanes
        self._threads: list[threading.Thread] = []
        self._handles: tuple[tf.Tensor, ...] = ()
        _let_lanes_run_at_once(lanes)

    def start(
        self, run: tf.types.experimental.ConcreteFunction, env_pool: tf.Tensor, population: tf.Tensor, queue: tf.Tensor
    ) -> None:
        """Runs what lane_function() made, for each lane. One that fails closes the queue for the others."""
        self._handles = env_pool, population, queue
        for lane in range(self._lanes):
            thread = threading.Thread(target=self._run, args=(run, lane), name=f"lane {lane}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        """Waits for the lanes to end, after the queue was closed. Environments that do not end a step are ended."""
        for thread in self._threads:
            thread.join(_PATIENCE)
            while thread.is_alive():
                end_stuck_environments(_PATIENCE)
                thread.join(_PATIENCE)
        self._threads, self._handles = [], ()

    def _run(self, run: tf.types.experimental.ConcreteFunction, lane: int) -> None:
        # The handles are no variables here: a failure's traceback would keep what they stand for.
        try:
            with tf.device("/cpu:0"):
                run(tf.constant(lane, tf.int64), *self._handles)
        except BaseException as failure:  # reaches the pipeline's caller
            self.failure = self.failure or in_core_words(failure)
            with tf.device("/cpu:0"):
                load_ops().episode_queue_close(self._handles[-1])


def _let_lanes_run_at_once(lanes: int) -> None:
    """Gives TensorFlow a thread for each lane, if it has fewer: some lanes would wait until others have no episodes."""
    threading_config = tf.config.threading
    if lanes > (threading_config.get_inter_op_parallelism_threads() or usable_cores()):
        with suppress(RuntimeError):  # it is at work already, and keeps those that it has
            threading_config.set_inter_op_parallelism_threads(lanes)
