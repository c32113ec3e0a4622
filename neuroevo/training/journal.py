"""Episodes that are played once: their outcomes are noted as they come, and known again where a run goes on."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

import numpy as np

from neuroevo.core.episode import Batch, Episode, EpisodeResults, Outcomes
from neuroevo.core.evaluator import Evaluator, Progress

TEST = "test"  # the phase of which neither sums nor behaviors are noted
_NUMBERS = struct.Struct("<Qq")  # of an episode: its seed and its cut-off


@dataclass(frozen=True)
class Part:
    """Episodes of a run that belong together.

    Attributes:
        generation: Their generation's number.
        phase: "population", "validation" or "test".
        digest: SHA-256 sum, in hexadecimal digits, of what the episodes are: genomes, seeds, cut-offs and normalizers.
    """

    generation: int
    phase: str
    digest: str


class Journal(Protocol):
    """Keeps outcomes of episodes until a checkpoint has what follows from them."""

    def known(self, part: Part, problem_of: Callable[[EpisodeResults], str | None]) -> Sequence[EpisodeResults]:
        """What was noted of a part in an earlier session; ids are indices in the part.

        Args:
            part: The part.
            problem_of: Says of what was noted why it cannot be of this part; None: it can. What cannot is left out.
        """

    def add(self, part: Part, results: EpisodeResults) -> None:
        """Notes what has come of a part; ids are indices in it."""


def part_of(generation: int, phase: str, episodes: Sequence[Episode]) -> Part:
    """Names the episodes of a phase.

    Args:
        generation: Its number.
        phase: "population", "validation" or "test".
        episodes: All of the phase, in order.
    """
    digest = hashlib.sha256()
    for normalizer in dict.fromkeys(episode.normalizer for episode in episodes):
        if normalizer is not None:
            digest.update(normalizer.mean.tobytes() + normalizer.std.tobytes())
    for episode in episodes:
        digest.update(episode.genome.digest + _NUMBERS.pack(episode.seed, episode.max_steps))
    return Part(generation, phase, digest.hexdigest())


class Playing:
    """Episodes at play, as far as nothing is known of them yet.

    Attributes:
        batch: All of the episodes.
        missing: int64 [M], indices of those that were not known and are played.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        episodes: Sequence[Episode],
        priority: int,
        known: Sequence[EpisodeResults] = (),
        journal: Journal | None = None,
        part: Part | None = None,
    ):
        """Submits the episodes of which nothing is known.

        Args:
            evaluator: Plays them.
            episodes: All of the part.
            priority: As Evaluator.submit() takes it.
            known: What is known without the journal.
            journal: Knows more, and gets what comes; None: there is none.
            part: What the journal calls them.
        """
        self._evaluator, self._journal, self._part = evaluator, journal, part
        noted = () if journal is None or part is None else journal.known(part, self._problem_of)
        before = Batch(len(episodes))
        for results in (*known, *noted):
            _book_once(before, results)
        self.missing: np.ndarray = np.flatnonzero(~before.is_over)
        self._steps_before: int | None = None  # of what was played when it was waited for first
        if before.over:
            self.batch = before
            self._played = evaluator.submit([episodes[i] for i in self.missing], priority, self._book)
        else:  # one batch is enough: behaviors may take much memory
            self.batch = self._played = evaluator.submit(episodes, priority, self._note)

    def wait(self, on_progress: Progress | None = None, seconds: float = inf) -> Outcomes:
        """Waits until all are over, or the time is; as Evaluator.wait().

        Progress has all episodes that are over, but only the steps since the first time that they were waited for: what
        was known before, or was played beside something else, took none of this time.
        """
        known = len(self.batch.steps) - len(self.missing)
        if self._steps_before is None:
            self._steps_before = int(self._played.steps.sum())
        before = self._steps_before

        def tell(finished: int, steps: int) -> None:
            if on_progress is not None:
                on_progress(known + finished, steps - before)

        self._evaluator.wait(self._played, tell, seconds)
        return self.batch.outcomes

    def _problem_of(self, results: EpisodeResults) -> str | None:
        """Why results are of another environment or another algorithm, whoever wrote them."""
        like = self._evaluator.submit([]).behaviors  # [0, B]
        sums, behaviors = results.observation_sums.shape[1], results.behaviors
        most = 1 + 2 * self._evaluator.observation_size
        if sums not in (0, most):
            return f"of observations it has {sums} sums, expected {most}, or none"
        if self._part is not None and self._part.phase == TEST:
            like = None  # nobody asks for it
        expected = 0 if like is None else like.shape[1]
        if behaviors.shape[1] != expected or (like is not None and behaviors.dtype != like.dtype):
            of = "" if like is None else f" of {like.dtype}"
            return f"a behavior has {behaviors.shape[1]} numbers of {behaviors.dtype}, expected {expected}{of}"
        return None

    def _book(self, results: EpisodeResults) -> None:
        own = replace(results, ids=self.missing[results.ids])
        self.batch.book(own)
        self._note(own)

    def _note(self, results: EpisodeResults) -> None:
        if self._journal is not None and self._part is not None:
            self._journal.add(self._part, results)


def _book_once(batch: Batch, results: EpisodeResults) -> None:
    """Books the results of episodes of a batch that are not over."""
    ids, first = np.unique(results.ids, return_index=True)
    new = first[(ids >= 0) & (ids < len(batch.steps))]
    batch.book(results.at(new[~batch.is_over[results.ids[new]]]))
