"""Evaluator that stores outcomes in a journal, so that a resumed run plays no episode twice.

The outcome of an episode depends only on the episode, so the journal stores outcomes by the episode's digest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Protocol

import numpy as np

from neuroevo.core.episode import Batch, Episode, EpisodeResults, OnResults, Outcomes
from neuroevo.core.evaluator import Evaluator, Progress, Weights, Work

log = logging.getLogger("neuroevo")


class Journal(Protocol):
    """Storage of episode outcomes until a checkpoint includes their results."""

    def known(self, digests: Sequence[bytes]) -> Sequence[EpisodeResults]:
        """Return the outcomes that earlier sessions have stored.

        Args:
            digests: Digests of episodes, [N].

        Returns:
            The stored outcomes; ids are indices into the digests, each at most once.
        """

    def add(self, digests: Sequence[bytes], results: EpisodeResults) -> None:
        """Store outcomes.

        Args:
            digests: Digests of the episodes, [E].
            results: Results of the same episodes, in the same order.
        """


class JournaledEvaluator:
    """Evaluator that stores outcomes in a journal, and plays only episodes that the journal does not contain.

    Args:
        evaluator: Evaluator that plays the episodes; the caller closes it.
        journal: Journal that stores their outcomes.
    """

    def __init__(self, evaluator: Evaluator, journal: Journal):
        self._evaluator, self._journal = evaluator, journal
        self._missing: dict[Batch, Batch] = {}  # batch with known episodes -> batch of its other episodes
        self.frame_skip, self.observation_size = evaluator.frame_skip, evaluator.observation_size
        self.device = evaluator.device

    @property
    def weights(self) -> Weights:
        """Layout of the weights of the evaluator's networks."""
        return self._evaluator.weights

    def submit(self, episodes: Sequence[Episode], priority: int = 0, on_results: OnResults | None = None) -> Batch:
        """Submit the episodes that the journal does not contain; see the protocol Evaluator."""
        digests = [episode.digest for episode in episodes]

        def store(results: EpisodeResults) -> None:
            self._journal.add([digests[i] for i in results.ids], results)
            if on_results is not None:
                on_results(results)

        known = [each for each in self._journal.known(digests) if self._fits(each)]
        if not known:
            return self._evaluator.submit(episodes, priority, store)
        batch = Batch(len(episodes), on_results=on_results)
        for results in known:
            batch.book(results)
        missing = np.flatnonzero(~batch.is_over)

        def book(results: EpisodeResults) -> None:
            own = replace(results, ids=missing[results.ids])
            self._journal.add([digests[i] for i in own.ids], own)
            batch.book(own)
            if not batch.left:
                self._missing.pop(batch, None)

        if batch.left:
            self._missing[batch] = self._evaluator.submit([episodes[i] for i in missing.tolist()], priority, book)
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = inf) -> Outcomes:
        """Wait for a batch; the steps passed to on_progress exclude the episodes found in the journal."""
        if not batch.left:
            return batch.outcomes
        missing = self._missing.get(batch, batch)
        known = len(batch.steps) - len(missing.steps)

        def report(finished: int, steps: int) -> None:
            if on_progress is not None:
                on_progress(known + finished, steps)

        self._evaluator.wait(missing, report, seconds)
        return batch.outcomes

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play episodes: submit(), then wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def work(self) -> Work:
        """Return the work of the evaluator, which excludes episodes found in the journal."""
        return self._evaluator.work()

    def close(self) -> None:
        """Close the evaluator."""
        self._evaluator.close()

    def _fits(self, results: EpisodeResults) -> bool:
        """Return whether outcomes have the evaluator's shapes and dtypes; warn if not, since the file may be forged."""
        like = self._evaluator.submit([]).behaviors  # [0, B]
        shape, dtype = (0, results.behaviors.dtype) if like is None else (like.shape[1], like.dtype)
        sums = results.observation_sums.shape[1]
        most = 1 + 2 * self._evaluator.observation_size
        if sums in (0, most) and results.behaviors.shape[1] == shape and results.behaviors.dtype == dtype:
            return True
        log.warning(
            "the journal has outcomes of another run: %d sums of observations and behaviors of %d numbers of %s, "
            "expected 0 or %d sums and %d numbers of %s; these episodes are played again",
            *(sums, results.behaviors.shape[1], results.behaviors.dtype, most, shape, dtype),
        )
        return False
