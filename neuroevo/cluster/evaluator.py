"""Evaluator of a run that plays on the machines of a Ray cluster; the outcomes are those of one machine."""

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

_WAIT_SECONDS = 0.05  # the longest time without a look at signals and at the progress
_CENTERS = 8  # references that are kept for later batches
_ENDED_BY_RAY = (
    "neuroevo: this process has been ended from outside: by a signal, or by Ray, which ends it when the raylet of this "
    "machine or the cluster's head is lost; to resume: neuroevo train --resume RUN"
)


class ClusterEvaluator(Closing):
    """Evaluator on the machines of a Ray cluster; satisfies the Evaluator protocol.

    Args:
        cluster: How machines are found and used.
        machines: Those of the cluster, or the one that is shared with others.
        network: Which of the players' networks is network 0 of genomes.

    Attributes:
        device: Where networks are evaluated, "cpu" or "gpu", the same on every machine.
        behavior_size: Number of values recorded of an episode.

    Raises:
        UserError: There is no cluster, or no machine can play.
    """

    def __init__(self, cluster: Cluster, machines: Machines, network: int = 0):
        self._machines, self._network = machines, network
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
        self.weights = NativeWeights(
            facts.network_texts[network : network + 1], reference_batch=machines.reference_batch
        )
        self.dimension = self.weights.dimension(0)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play all episodes and return their outcomes in order: submit() and wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def submit(self, episodes: Sequence[Episode], priority: int = 0, on_results: OnResults | None = None) -> Batch:
        """Send the episodes and return at once. Those of a lower priority number are played first.

        Args:
            episodes: What to play.
            priority: See the Evaluator protocol.
            on_results: Likewise.

        Returns:
            The batch, which wait() takes.

        Raises:
            EnvironmentFailure: An environment failed on one of the machines. This and KeyboardInterrupt leave the
                evaluator closed.
        """
        batch = Batch(len(episodes), self.behavior_size, self._behavior_dtype, on_results)
        if not episodes:
            return batch
        with self._closed_on_failure(), deferred_signals():
            self._require_open()
            table = table_of(episodes, self._network)
            vectors = [self._reference(center) for center in table.tree.centers]
            where = ray.put(replace(table, tree=table.tree.without_weights())), vectors
            number, self._next_batch = self._next_batch, self._next_batch + 1
            self._dispatcher.add(number, Sent(batch, episodes, priority, where))
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """Return a batch's outcomes in the order of its episodes: when all are over, or those known after `seconds`.

        It raises the exceptions of submit().
        """
        end = time.perf_counter() + seconds
        # Signals are deferred, as Ray's code makes other exceptions of those of handlers, or loses them.
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
        """Number of calls of players that have been answered."""
        return self._dispatcher.calls

    def close(self) -> None:
        """End the players and leave the cluster. May be called more than once."""
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
        self._centers[center.name] = reference  # now the last
        while len(self._centers) > _CENTERS:
            del self._centers[next(iter(self._centers))]
        return reference

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the evaluator is closed: it plays nothing after close() or a failure")
