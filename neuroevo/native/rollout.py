"""Rollouts by the native core without TensorFlow: lanes that play episodes from a queue, one thread each."""

from __future__ import annotations

import ctypes

import numpy as np

from neuroevo.core.episode import EpisodeResults
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.ffi import Results, ref
from neuroevo.native.library import call, core, end_stuck_environments
from neuroevo.native.population import Population
from neuroevo.native.submission import Submission

_PATIENCE = 2.0  # seconds that a step may take once the queue is closed, before its worker process is ended


class Rollout:
    """Lanes of slots that play submitted episodes until close(). Several threads may use it.

    It keeps the native environments and networks alive. In a forked child process it has no lanes: close() returns, and
    the other methods raise NativeError.

    Attributes:
        total_steps: Steps of all lanes so far, including unfinished episodes, as of the last results().
    """

    def __init__(self, pool: EnvPool, population: Population, *, lanes: int, slots: int, first_row: int = 0):
        """Start the lanes. They wait, without using a core, until episodes are submitted.

        Args:
            pool: Env pool with an environment for each slot.
            population: Population with a row for each slot, starting at first_row.
            lanes: Number of lanes, which are threads that step slots.
            slots: Number of slots per lane.
            first_row: First row of the slots; genomes may start from the rows before it.

        Raises:
            NativeError: These arguments do not match each other.
        """
        self._handle, self._free = ctypes.c_void_p(), core().neuroevo_rollout_free
        self._pool = pool
        call("rollout_start", pool.handle, population.handle, lanes, slots, first_row, ref(self._handle))
        self.total_steps = 0

    def __del__(self) -> None:
        """Free the rollout once no thread is in one of its methods."""
        if self._handle.value:
            self._free(self._handle)

    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Append episodes to the queue.

        Args:
            submission: The episodes, with ids that no episode has had before.
            priority: Episodes of a lower number are played first.

        Raises:
            NativeError: The submission is invalid, or a lane has failed; the message is then that of its error.
        """
        call("rollout_submit", self._handle, ref(submission.for_c()), priority)

    def results(self, count: int = 0, seconds: float = 0.0) -> EpisodeResults:
        """Return the results of the episodes that have ended since the last call.

        Waits for `count` results or until the time has passed; no signal is handled meanwhile. If several threads call
        this, each result is returned to one of them.

        Args:
            count: Number of results to wait for.
            seconds: Maximum time to wait, at most a minute.

        Returns:
            Results in the order in which the episodes ended.

        Raises:
            NativeError: A lane has failed; the message is that of its error.
        """
        pointer = ctypes.POINTER(Results)()
        call("rollout_results", self._handle, count, int(1000 * seconds), ref(pointer))
        try:
            results = pointer.contents
            count, sums, behavior = results.count, results.observation_sums_size, results.behavior_bytes
            self.total_steps = results.total_steps
            dtype, behaviors = self._pool.behavior_dtype, _copied(results.behaviors, (count, behavior), np.uint8)
            return EpisodeResults(
                _copied(results.ids, (count,), np.int64),
                _copied(results.returns, (count,), np.float64),
                _copied(results.steps, (count,), np.int64),
                [failure.decode() for failure in results.failures[:count]],
                _copied(results.observation_sums, (count, sums), np.float64),
                behaviors.view(dtype) if behavior else np.zeros((count, 0), dtype),
                _copied(results.retries, (count,), np.int64) if self._pool.retries else None,
            )
        finally:
            core().neuroevo_results_free(pointer)

    def close(self) -> None:
        """End the lanes within a step, dropping unfinished episodes. Stuck Gymnasium processes are ended."""
        call("rollout_close", self._handle)
        ended = ctypes.c_int()
        while True:
            call("rollout_wait_for_end", self._handle, int(1000 * _PATIENCE), ref(ended))
            if ended.value:
                break
            end_stuck_environments(_PATIENCE)


def _copied(pointer: ctypes._Pointer, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Copy the values behind a pointer to an array; the pointer may be null if there are no values."""
    out: np.ndarray = np.zeros(shape, dtype)
    if out.nbytes:
        ctypes.memmove(out.ctypes.data, pointer, out.nbytes)
    return out
