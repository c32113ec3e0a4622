"""The files that grow by a line with every finished generation.

metrics.jsonl   one JSON object per generation: a Record's row, fitness of every genome included
metrics.csv     the same numbers without the list of fitness, for spreadsheets
elites.jsonl    the elite of every generation as a genome, relative to the line before (see genome_json); and, where
                observations are normalized, the mean and standard deviation of each of an observation's numbers
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.files import write_atomically
from neuroevo.genome import Genome
from neuroevo.genome_json import genome_from_json, genome_to_json
from neuroevo.metrics import Record
from neuroevo.normalization import Normalizer

METRICS, CSV, ELITES = "metrics.jsonl", "metrics.csv", "elites.jsonl"


@dataclass(frozen=True)
class Elite:
    """Who was the best of a generation, and what its networks see observations through; None: as they are."""

    genome: Genome
    normalizer: Normalizer | None = None


class MetricsFiles:
    """Appends to the files in a folder. A checkpoint remembers their lengths, and resuming cuts them back to those.

    lengths: bytes of complete generations in each file.
    """

    def __init__(self, folder: Path, lengths: Mapping[str, int] | None = None):
        """Cuts the files back to `lengths` bytes, which check() has accepted; by default to nothing. OSError."""
        self._folder = folder
        self.lengths = {name: (lengths or {}).get(name, 0) for name in (METRICS, ELITES)}
        for name, length in self.lengths.items():
            with (folder / name).open("ab") as file:
                file.truncate(length)
        self._elite: Genome | None = None
        for elite in elites(folder):
            self._elite = elite.genome
        self._columns: list[str] = []
        for row in rows(folder, fitness=False):  # lines of an older version may lack some
            self._columns = list(dict.fromkeys([*self._columns, *_columns(row)]))
        self._write_csv()

    def append(self, record: Record) -> dict[str, int]:
        """Adds a line to each file; their new lengths in bytes, for a checkpoint. OSError."""
        row = record.row()
        elite: dict[str, Any] = {"generation": record.generation, "elite": genome_to_json(record.elite, self._elite)}
        if record.normalizer is not None:
            elite["normalizer"] = {name: getattr(record.normalizer, name).tolist() for name in ("mean", "std")}
        lines = {METRICS: _line(row), ELITES: _line(elite)}
        for name, line in lines.items():
            with (self._folder / name).open("ab") as file:
                file.write(line)
        if set(_columns(row)) <= set(self._columns):
            with (self._folder / CSV).open("ab") as file:
                file.write(_csv([row], self._columns))
        else:
            self._columns = list(dict.fromkeys([*self._columns, *_columns(row)]))
            self._write_csv()
        self.lengths = {name: length + len(lines[name]) for name, length in self.lengths.items()}
        self._elite = record.elite
        return self.lengths

    def _write_csv(self) -> None:
        head = ",".join(self._columns) + "\n" if self._columns else ""
        lines = _csv(rows(self._folder, fitness=False), self._columns)
        write_atomically(self._folder / CSV, head.encode() + lines)

    def flush(self) -> None:
        """Makes what was appended survive a power failure. OSError."""
        for name in (METRICS, ELITES):
            with (self._folder / name).open("rb") as file:
                os.fsync(file.fileno())


def check(folder: Path, lengths: Mapping[str, int]) -> None:
    """ValueError when a file is missing, shorter than a checkpoint remembers, or damaged before that."""
    for name, items in ((METRICS, rows), (ELITES, elites)):
        path = folder / name
        size = path.stat().st_size if path.is_file() else 0
        if size < lengths[name]:
            raise ValueError(f"{path} has {size:,} bytes, expected at least the {lengths[name]:,} of the checkpoint")
        for _ in items(folder, length=lengths[name]):
            pass


def rows(folder: Path, fitness: bool = True, length: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of metrics.jsonl, one per finished generation; without the lists of fitness if they are not wanted.

    length: bytes to read. ValueError: the file does not hold what was written into it.
    """
    for row in _read(folder / METRICS, length):
        if not fitness:
            row.pop("fitness", None)
        yield row


def elites(folder: Path, length: int | None = None) -> Iterator[Elite]:
    """The elite of each finished generation. ValueError: elites.jsonl does not hold what was written into it."""
    genome = None
    for row in _read(folder / ELITES, length):
        try:
            genome = genome_from_json(row["elite"], genome)
            elite = Elite(genome, _normalizer(row))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{folder / ELITES} is damaged: {error}") from None
        yield elite


def _normalizer(row: Mapping[str, Any]) -> Normalizer | None:
    values = row.get("normalizer")
    if values is None:
        return None
    mean, std = (np.array(values[name], np.float64) for name in ("mean", "std"))
    if mean.ndim != 1 or mean.shape != std.shape or not (np.isfinite(mean).all() and (std > 0).all()):
        raise ValueError(f"this is not a normalizer: {str(values)[:80]}")
    return Normalizer(row["generation"], mean, std)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """rows() as a list."""
    return list(rows(folder))


def read_elites(folder: Path) -> list[Elite]:
    """elites() as a list, which takes memory that grows with the square of the generations."""
    return list(elites(folder))


def _read(path: Path, length: int | None) -> Iterator[dict[str, Any]]:
    """The complete lines of a JSON lines file; a last one without its end was being written when the run was killed."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n") or (length is not None and file.tell() > length):
                return
            try:
                row = json.loads(line)
            except ValueError:
                raise ValueError(f"line {number} of {path} is not JSON: {line[:80]!r}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number} of {path} is not a JSON object: {line[:80]!r}")
            yield row


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def _columns(row: Mapping[str, Any]) -> list[str]:
    return [name for name, value in row.items() if not isinstance(value, list)]


def _csv(rows: Iterable[dict[str, Any]], columns: list[str]) -> bytes:
    """A line for each row, with nothing where it has no such column."""
    text = io.StringIO()
    csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
