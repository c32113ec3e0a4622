"""Storage of episode outcomes in run.db, so that a resumed run does not repeat finished episodes."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from neuroevo.core.episode import DIGEST_BYTES, EpisodeResults
from neuroevo.core.errors import DiskError, UserError
from neuroevo.runs.database import Database
from neuroevo.runs.values import DamagedError, Number, array_of, checksum
from neuroevo.runs.writer import Writer
from neuroevo.training.journal import Journal

log = logging.getLogger("neuroevo")
_COLUMNS = ("digest", "return", "steps", "retries", "failure", "sums", "dtype", "behavior")
_INSERT = f"INSERT OR REPLACE INTO episodes ({', '.join(_COLUMNS)}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ROW = tuple[bytes, Number, int, int | None, str, bytes, str, bytes, int]
_MOST_STEPS = 1 << 40  # of an episode; small enough that the sums of all episodes cannot overflow


class EpisodeRows(Journal):
    """Journal of a run. Its errors are logged and do not stop the run.

    Args:
        database: The run's database.
        seconds: Wall time of the run so far.

    Attributes:
        known_episodes: Outcomes from earlier sessions by episode digest.
    """

    def __init__(self, database: Writer, seconds: float):
        self._database: Writer | None = database
        self._seconds, self._opened = seconds, time.perf_counter()
        self.known_episodes: dict[bytes, tuple[object, ...]] = {}
        query = f"SELECT {', '.join(_COLUMNS)}, checksum FROM episodes"
        try:
            for row in database.rows(_ROW, query):
                if checksum(*row[:-1]) == row[-1] and len(row[0]) == DIGEST_BYTES and 1 <= row[2] <= _MOST_STEPS:
                    self.known_episodes[row[0]] = row[1:-1]
                else:
                    log.warning("the outcome of an episode in %s is damaged; replaying the episode", database.file)
        except DamagedError as error:
            log.warning("%s; ignoring its episode outcomes", error)

    @override
    def known(self, digests: Sequence[bytes]) -> list[EpisodeResults]:
        found: dict[tuple[object, ...], list[int]] = {}
        for index, digest in enumerate(digests):
            if digest in self.known_episodes:
                _, _, retries, _, sums, dtype, behavior = row = self.known_episodes[digest]
                assert isinstance(sums, bytes) and isinstance(behavior, bytes) and len(row) == 7
                found.setdefault((retries is None, len(sums), dtype, len(behavior)), []).append(index)
        results = []
        for (no_retries, _, dtype, _), indices in found.items():
            rows = [self.known_episodes[digests[index]] for index in indices]
            try:
                results.append(_results(rows, indices, bool(no_retries), str(dtype)))
            except DamagedError as error:
                log.warning("outcomes of episodes are damaged: %s; replaying the episodes", error)
        for digest in digests:
            self.known_episodes.pop(digest, None)
        return results

    @override
    def add(self, digests: Sequence[bytes], results: EpisodeResults) -> None:
        if self._database is None or not len(results):
            return
        try:
            with self._database.transaction():
                for row in _rows(digests, results):
                    if math.isfinite(row[1]):  # a return that is not finite ends the run
                        self._database.execute(_INSERT, row)
                self._database.set_seconds(self.seconds())
        except (DiskError, UserError) as error:
            log.warning("outcomes of episodes cannot be kept (%s); a resumed run will replay the episodes", error)
            self._database = None

    def seconds(self) -> float:
        """Return the wall time of the run."""
        return self._seconds + time.perf_counter() - self._opened


def forget_episodes(database: Database) -> None:
    """Delete all outcomes, in a transaction."""
    database.execute("DELETE FROM episodes")


def _rows(digests: Sequence[bytes], results: EpisodeResults) -> list[tuple[Any, ...]]:
    sums, behaviors = results.observation_sums, results.behaviors
    dtype = behaviors.dtype.newbyteorder("<").str
    rows: list[tuple[Any, ...]] = []
    for place, digest in enumerate(digests):
        retries = None if results.retries is None else int(results.retries[place])
        row = (
            digest,
            float(results.returns[place]),
            int(results.steps[place]),
            retries,
            results.failures[place].encode(errors="replace").decode(),
            np.asarray(sums[place], "<f8").tobytes(),
            dtype,
            np.asarray(behaviors[place], dtype).tobytes(),
        )
        rows.append((*row, checksum(*row)))
    return rows


def _results(rows: Sequence[Sequence[object]], ids: Sequence[int], no_retries: bool, dtype: str) -> EpisodeResults:
    """Combine rows into results. DamagedError: an array is invalid."""
    returns, steps, retries, failures, sums, _, behaviors = zip(*rows, strict=True)

    def stacked(kind: str, parts: Sequence[bytes]) -> np.ndarray:
        size = np.dtype(kind).itemsize if kind in ("|u1", "<f4", "<f8") else 0
        if not size:
            raise DamagedError(f"a behavior has dtype {kind[:20]}")
        return array_of(kind, [len(parts), len(parts[0]) // size], b"".join(parts))

    counts = None if no_retries else np.array(retries, np.int64)
    return EpisodeResults(
        np.array(ids),
        np.array(returns, np.float64),
        np.array(steps, np.int64),
        list(failures),
        stacked("<f8", sums),
        stacked(dtype, behaviors),
        counts,
    )
