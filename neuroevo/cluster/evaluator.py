"""Evaluator that plays a run's episodes on a Ray cluster, with outcomes identical to those on one machine."""

from __future__ import annotations

import atexit
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import ray

from neuroevo.cluster.connection import join, leave
from neuroevo.cluster.dispatcher import Dispatcher, Sent
from neuroevo.cluster.last_words import LastWords
from neuroevo.cluster.machines import Machines
from neuroevo.cluster.table import table_of
from neuroevo.config.schema import Cluster
from neuroevo.core.closing import Closing
from neuroevo.core.episode import Batch, Episode, OnResults, Outcomes
from neuroevo.core.evaluator import Progress, Work
from neuroevo.core.genome import Center
from neuroevo.native.weights import NativeWeights
from neuroevo.system.signals import deferred_signals

_WAIT_SECONDS = 0.05  # maximal time between checks of signals and progress
_CENTERS = 8  # number of cached references
_ENDED_BY_RAY = (
    "neuroevo: this process was terminated from outside: by a signal, or by Ray, which terminates it when the raylet "
    "of this machine or the cluster's head is lost; to resume: neuroevo train --resume RUN"
)


class ClusterEvaluator(Closing):
    """Evaluator on the machines of a Ray cluster; satisfies the Evaluator protocol.

    Args:
        cluster: The cluster's settings.
        machines: The cluster's machines.

    Attributes:
        device: Device that evaluates networks, "cpu" or "gpu", the same on every machine.
        behavior_size: Number of behavior values recorded per episode.

    Raises:
        UserError: The cluster cannot be joined, or no machine can play.
    """

    def __init__(self, cluster: Cluster, machines: Machines):
        self._machines = machines
        self._dispatcher = Dispatcher(cluster, self._machines)
        self._centers: dict[str, Any] = {}  # Ray's references to the last few, by name
        self._next_batch = 0
        self._leaves, self._closed = join(cluster.address), False
        self._last_words = LastWords(_ENDED_BY_RAY) if self._leaves else None
        atexit.register(self.close)
        with self._closed_on_failure():
            facts = self._dispatcher.wait_for_machines()
        self.device, self.frame_skip, self.num_actions = facts.device, facts.frame_skip, facts.num_actions
        self.observation_size, self.behavior_size = facts.observation_size, facts.behavior_size
        self._behavior_dtype = np.dtype(facts.behavior_dtype)
        self.weights = NativeWeights([facts.network_text], reference_batch=machines.reference_batch)
        self.dimension = self.weights.dimension(0)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play all episodes and return their outcomes in order: submit() and wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def submit(self, episodes: Sequence[Episode], priority: int = 0, on_results: OnResults | None = None) -> Batch:
        """Dispatch episodes and return immediately. Batches of a lower priority number are played first.

        Args:
            episodes: The episodes to play.
            priority: See the Evaluator protocol.
            on_results: Likewise.

        Returns:
            The batch, to be passed to wait().

        Raises:
            EnvironmentFailure: An environment failed on one of the machines. This exception and KeyboardInterrupt close
                the evaluator.
        """
        batch = Batch(len(episodes), self.behavior_size, self._behavior_dtype, on_results)
        if not episodes:
            return batch
        with self._closed_on_failure(), deferred_signals():
            self._require_open()
            table = table_of(episodes)
            vectors = [self._reference(center) for center in table.tree.centers]
            where = ray.put(replace(table, tree=table.tree.without_weights())), vectors
            number, self._next_batch = self._next_batch, self._next_batch + 1
            self._dispatcher.add(number, Sent(batch, episodes, priority, where))
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """Wait until a batch is finished, at most `seconds`, and return its outcomes in the order of its episodes.

        It raises the exceptions of submit().
        """
        end = time.perf_counter() + seconds
        # Signals are deferred because Ray's code converts or loses exceptions raised by signal handlers.
        with self._closed_on_failure(), deferred_signals() as arrived:
            while batch.left and not arrived and time.perf_counter() < end:
                self._require_open()
                self._dispatcher.collect(_WAIT_SECONDS)
                if on_progress is not None:
                    on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def work(self) -> Work:
        """Return the work done so far."""
        return self._dispatcher.work()

    @property
    def calls(self) -> int:
        """Number of completed calls of players."""
        return self._dispatcher.calls

    def close(self) -> None:
        """Release the players and leave the cluster. May be called more than once."""
        atexit.unregister(self.close)
        if self._closed:
            return
        self._closed = True
        self._machines.close()
        if self._leaves:
            leave()
        if self._last_words is not None:
            self._last_words.withdraw()

    def _reference(self, center: Center) -> Any:
        """Return Ray's reference to a center's vector, which is sent once even if several batches need it."""
        reference = self._centers.pop(center.name, None) or ray.put(center.vector)
        self._centers[center.name] = reference  # now the most recent
        while len(self._centers) > _CENTERS:
            del self._centers[next(iter(self._centers))]
        return reference

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the evaluator is closed: it plays nothing after close() or a failure")
