"""journal.bin of a run: the outcomes of the episodes that are over and that no checkpoint knows of yet.

A record is a line of JSON with the wall time of the run and the number of values of each outcome, and then these
values, little-endian: digests [E, 16 bytes], returns float64 [E], steps int64 [E], retries int64 [E] if they are
counted, observation sums float64 [E, S], behaviors [E, B] in their own dtype. An outcome is found by the digest of its
episode, whichever checkpoint the run is resumed from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from typing_extensions import override

from neuroevo.core import version
from neuroevo.core.episode import DIGEST_BYTES, EpisodeResults
from neuroevo.core.errors import UserError
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.journal_file import JournalFile
from neuroevo.runs.paths import JOURNAL
from neuroevo.system.directory import Directory
from neuroevo.training.journal import Journal

log = logging.getLogger("neuroevo")
_MOST_EPISODES = 10_000_000  # of a record
_MOST_NUMBERS = 1 << 28  # of an episode
_MOST_SECONDS = 1e10
_MOST_STEPS = 1 << 40  # of an episode; far from where the sums of all episodes end to be numbers
_BEHAVIORS = ("|u1", "<f4", "<f8")  # dtypes


class RunJournal(Journal):
    """As the protocol neuroevo.training.journal.Journal. What goes wrong with it is logged, and ends no run.

    Attributes:
        seconds: Wall time of the run at the start of this session, up to the last outcome of earlier ones.
    """

    def __init__(
        self, folder: Directory, origin: Mapping[str, Any], reference_batch: np.ndarray | None, seconds: float = 0.0
    ):
        """Reads what an earlier session has left.

        Args:
            folder: The run's, which stays open as long as the journal.
            origin: What of the run's configuration results depend on, and what is recorded of episodes.
            reference_batch: That of the run's networks, on which they depend, too.
            seconds: Wall time of the run up to the checkpoint that it goes on from.
        """
        self._path = path = folder.path / JOURNAL
        self.seconds, self._opened = seconds, time.perf_counter()
        self._known: dict[bytes, tuple[EpisodeResults, int]] = {}  # by the episode's digest: results, place in them
        self._file: JournalFile | None = None
        owner = json.dumps([version.VERSION, origin], sort_keys=True).encode()
        if reference_batch is not None:
            owner += reference_batch.tobytes()
        try:
            self._file = JournalFile(folder, JOURNAL, hashlib.sha256(owner).hexdigest())
        except (OSError, UserError) as error:
            self._give_up(error)
            return
        problem = self._file.problem
        for record in self._file.records:
            try:
                digests, results, then = _decode(record)
                self.seconds = max(self.seconds, then)
                self._known.update((digest, (results, place)) for place, digest in enumerate(digests))
            except (ValueError, RecursionError) as error:
                problem = f"has a record that is none: {error}"
        if problem is not None:
            log.warning("%s %s; what it lost is played again", path, problem)
        self._file.records.clear()

    @property
    def episodes(self) -> int:
        """How many outcomes are known from an earlier session."""
        return len(self._known)

    @override
    def known(self, digests: Sequence[bytes]) -> list[EpisodeResults]:
        found: dict[int, tuple[EpisodeResults, list[int], list[int]]] = {}  # by id() of the record's results
        for index, digest in enumerate(digests):
            if digest in self._known:
                results, place = self._known[digest]
                _, places, indices = found.setdefault(id(results), (results, [], []))
                places.append(place)
                indices.append(index)
        for digest in digests:
            self._known.pop(digest, None)
        return [
            replace(results.at(np.array(places)), ids=np.array(indices)) for results, places, indices in found.values()
        ]

    @override
    def add(self, digests: Sequence[bytes], results: EpisodeResults) -> None:
        if self._file is None or not len(results):
            return
        try:
            now = self.seconds + time.perf_counter() - self._opened
            if not self._file.append(_encode(digests, results, now)):
                log.warning("%s is full; a run that is resumed plays what comes now again", self._path)
                self._close()
        except OSError as error:
            self._give_up(error)

    def empty(self) -> None:
        """Forgets everything: a checkpoint has it."""
        self._known.clear()
        try:
            if self._file is not None:
                self._file.empty()
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Closes the file; there is none afterwards if nothing is in it."""
        self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _give_up(self, error: Exception) -> None:
        log.warning("%s cannot be used (%s); a run that is resumed plays its generation again", self._path, error)
        self._close()


def open_journal(folder: RunFolder) -> RunJournal | None:
    """Opens the journal of a run.

    Args:
        folder: The run's, which is open.

    Returns:
        The journal. None where simulators run on the accelerator: the outcome of an episode may then depend on which
        others are played beside it, so that what is missing could not be played alone.
    """
    if folder.config.environment.accelerated:
        return None
    recorded = folder.config.recorded_behavior
    origin = {**folder.origin, "recorded": None if recorded is None else asdict(recorded)}
    journal = RunJournal(folder.directory, origin, folder.reference_batch, folder.state.seconds)
    if journal.episodes:
        known = folder.path / JOURNAL, journal.episodes
        log.info("%s knows the outcomes of %d episodes, which are not played again", *known)
    return journal


def _encode(digests: Sequence[bytes], results: EpisodeResults, seconds: float) -> bytes:
    behaviors = results.behaviors
    head = {
        "seconds": seconds,
        "episodes": len(results),
        "retries": results.retries is not None,
        "sums": results.observation_sums.shape[1],
        "behaviors": behaviors.shape[1],
        "dtype": behaviors.dtype.newbyteorder("<").str,
        "failures": {str(place): text for place, text in enumerate(results.failures) if text},
    }
    arrays = [
        np.frombuffer(b"".join(digests), np.uint8),
        np.asarray(results.returns, "<f8"),
        np.asarray(results.steps, "<i8"),
        *([] if results.retries is None else [np.asarray(results.retries, "<i8")]),
        np.asarray(results.observation_sums, "<f8"),
        np.asarray(behaviors, head["dtype"]),
    ]
    return b"".join([json.dumps(head).encode(), b"\n", *(array.tobytes() for array in arrays)])


def _decode(record: bytes) -> tuple[list[bytes], EpisodeResults, float]:
    """ValueError: it is not what _encode() makes."""
    first, _, data = record.partition(b"\n")
    head = json.loads(first)
    if not isinstance(head, dict):
        raise ValueError(f"its first line is {str(head)[:80]}, expected an object")
    episodes = _number(head, "episodes", _MOST_EPISODES)
    sums, width = _number(head, "sums", _MOST_NUMBERS), _number(head, "behaviors", _MOST_NUMBERS)
    dtype, failures, seconds = head.get("dtype"), head.get("failures"), head.get("seconds")
    if not isinstance(seconds, float) or not 0 <= seconds < _MOST_SECONDS:
        raise ValueError(f"seconds is {str(seconds)[:40]}, expected a number from 0 to {_MOST_SECONDS:g}")
    if dtype not in _BEHAVIORS or not isinstance(failures, dict) or type(head.get("retries")) is not bool:
        raise ValueError(f"its first line is {str(head)[:80]}")
    at = 0

    def read(kind: str, *shape: int) -> np.ndarray:
        nonlocal at
        count = int(np.prod(shape, dtype=object))
        if at + count * np.dtype(kind).itemsize > len(data):
            raise ValueError(f"it has {len(data):,} bytes of numbers, expected more")
        array: np.ndarray = np.frombuffer(data, kind, count, at).reshape(shape)
        at += array.nbytes
        return array.astype(array.dtype.newbyteorder("="))

    digests = read("|u1", episodes, DIGEST_BYTES)
    returns, steps = read("<f8", episodes), read("<i8", episodes)
    retries = read("<i8", episodes) if head["retries"] else None
    observation_sums, behaviors = read("<f8", episodes, sums), read(dtype, episodes, width)
    counts = [(steps, 1), *([] if retries is None else [(retries, 0)])]
    wrong = any((values < least).any() or (values > _MOST_STEPS).any() for values, least in counts)
    if at < len(data) or not np.isfinite(returns).all() or wrong:
        raise ValueError("its numbers are none of episodes that are over")
    texts = [failures.get(str(place), "") for place in range(episodes)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a reason of a failure is not text")
    results = EpisodeResults(np.arange(episodes), returns, steps, texts, observation_sums, behaviors, retries)
    return [digest.tobytes() for digest in digests], results, seconds


def _number(head: Mapping[str, Any], key: str, most: int) -> int:
    value = head.get(key)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{key} is {str(value)[:40]}, expected a number from 0 to {most:,}")
    return value
