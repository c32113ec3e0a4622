"""Lanes as TensorFlow graphs: a thread for each runs the graph of lane_graph.py until the episode queue is closed."""

from __future__ import annotations

import threading

import numpy as np
import tensorflow as tf

from neuroevo.core.episode import EpisodeResults
from neuroevo.native.library import end_stuck_environments
from neuroevo.native.submission import Submission
from neuroevo.rollout.tensorflow.env_pool import OpEnvPool
from neuroevo.rollout.tensorflow.lane_graph import lane_function
from neuroevo.rollout.tensorflow.ops import in_core_words, int64, load_ops, raises_native_errors
from neuroevo.rollout.tensorflow.population import OpPopulation
from neuroevo.system.signals import deferred_signals

_PATIENCE = 2.0  # seconds that a step may take once the queue is closed, before its worker process is ended


class GraphRollout:
    """Running lanes as TensorFlow graphs; see native.rollout.Rollout for the methods.

    Args:
        pool: Env pool with an environment for each slot.
        population: Population with a row for each slot, starting at first_row.
        lanes: Number of graphs that run concurrently.
        slots: Number of slots per lane.
        first_row: First row of the slots; genomes may start from the rows before it.
    """

    @raises_native_errors
    def __init__(self, pool: OpEnvPool, population: OpPopulation, *, lanes: int, slots: int, first_row: int):
        self.total_steps = 0
        self._failure: BaseException | None = None  # error of the first lane that failed
        self._behavior_dtype, self._retries = pool.behavior_dtype, pool.retries
        with tf.device("/cpu:0"):
            self._queue = load_ops().episode_queue_make(lanes=lanes, slots_per_lane=slots, first_row=first_row)
        self._handles: tuple[tf.Tensor, ...] = pool.handle, population.handle, self._queue
        numbers = pool.observation_dtype != np.uint8
        dtypes = tf.float32 if numbers else tf.uint8, pool.observation_shape, tf.as_dtype(pool.action_dtype)
        with deferred_signals():  # TensorFlow loses or converts exceptions raised during tracing
            run = lane_function(*dtypes, population.has_reference, population.recurrent)
        self._threads: list[threading.Thread] = []
        for lane in range(lanes):
            thread = threading.Thread(target=self._run, args=(run, lane), name=f"lane {lane}", daemon=True)
            self._threads.append(thread)
            thread.start()

    @raises_native_errors
    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Append episodes to the queue.

        Raises:
            NativeError: An episode is invalid.
            BaseException: The error of a lane that failed.
        """
        self._check()
        with tf.device("/cpu:0"):
            load_ops().episode_queue_submit(self._queue, **submission.arrays(), priority=int64(priority))

    @raises_native_errors
    def results(self, count: int = 0, seconds: float = 0.0) -> EpisodeResults:
        """Return the results of the episodes that have ended since the last call.

        Raises:
            BaseException: The error of a lane that failed.
        """
        with tf.device("/cpu:0"):
            results = load_ops().episode_queue_results(self._queue, int64(count), int64(1000 * seconds))
        self._check()
        ids, returns, steps, failures, retries, sums, behaviors, total_steps = (out.numpy() for out in results)
        self.total_steps = int(total_steps)
        behaviors = behaviors.view(self._behavior_dtype).reshape(len(ids), -1 if behaviors.size else 0)
        reasons = [failure.decode() for failure in failures]
        return EpisodeResults(ids, returns, steps, reasons, sums, behaviors, retries if self._retries else None)

    def close(self) -> None:
        """End the lanes within a step. Stuck Gymnasium processes are ended."""
        with tf.device("/cpu:0"):
            load_ops().episode_queue_close(self._queue)
        for thread in self._threads:
            thread.join(_PATIENCE)
            while thread.is_alive():
                end_stuck_environments(_PATIENCE)
                thread.join(_PATIENCE)
        self._threads, self._handles = [], ()

    def _check(self) -> None:
        """Raise the error of a lane that failed; the lane has closed the queue for the other lanes."""
        if self._failure is not None:
            raise self._failure

    def _run(self, run: tf.types.experimental.ConcreteFunction, lane: int) -> None:
        # The handles must not be local variables: a failure's traceback would keep their resources alive.
        try:
            with tf.device("/cpu:0"):
                run(tf.constant(lane, tf.int64), *self._handles)
        except BaseException as failure:  # reported to the evaluator's caller by _check()
            self._failure = self._failure or in_core_words(failure)
            with tf.device("/cpu:0"):
                load_ops().episode_queue_close(self._queue)
