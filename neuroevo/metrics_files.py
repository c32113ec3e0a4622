"""The files that grow by a line with every finished generation.

metrics.jsonl   one JSON object per generation: a Record's row, fitness of every genome included
metrics.csv     the same numbers without the list of fitness, for spreadsheets
elites.jsonl    the elite of every generation as a genome, relative to the line before (see genome_json)
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuroevo.files import write_atomically
from neuroevo.genome import Genome
from neuroevo.genome_json import genome_from_json, genome_to_json
from neuroevo.metrics import Record

METRICS, CSV, ELITES = "metrics.jsonl", "metrics.csv", "elites.jsonl"


class MetricsFiles:
    """Appends to the files in a folder. A checkpoint remembers their lengths, and resuming cuts them back to those.

    lengths: bytes of complete generations in each file.
    """

    def __init__(self, folder: Path, lengths: Mapping[str, int] | None = None):
        """Cuts the files back to their first `lengths` bytes, by default to nothing. OSError; ValueError: see check."""
        self._folder = folder
        check(folder, lengths or {})
        self.lengths = {name: (lengths or {}).get(name, 0) for name in (METRICS, ELITES)}
        for name, length in self.lengths.items():
            with (folder / name).open("ab") as file:
                file.truncate(length)
        self._elite: Genome | None = next(iter(read_elites(folder)[-1:]), None)
        write_atomically(folder / CSV, _csv(read_rows(folder), header=True))

    def append(self, record: Record) -> dict[str, int]:
        """Adds a line to each file; their new lengths in bytes, for a checkpoint. OSError."""
        row = record.row()
        elite = {"generation": record.generation, "elite": genome_to_json(record.elite, self._elite)}
        lines = {METRICS: _line(row), ELITES: _line(elite), CSV: _csv([row], header=record.generation == 0)}
        for name, line in lines.items():
            with (self._folder / name).open("ab") as file:
                file.write(line)
        self.lengths = {name: length + len(lines[name]) for name, length in self.lengths.items()}
        self._elite = record.elite
        return self.lengths

    def flush(self) -> None:
        """Makes what was appended survive a power failure. OSError."""
        for name in (METRICS, ELITES):
            with (self._folder / name).open("rb") as file:
                os.fsync(file.fileno())


def check(folder: Path, lengths: Mapping[str, int]) -> None:
    """ValueError when a file is missing or shorter than a checkpoint remembers."""
    for name in (METRICS, ELITES):
        path = folder / name
        size = path.stat().st_size if path.is_file() else 0
        if size < lengths.get(name, 0):
            raise ValueError(f"{path} has {size:,} bytes, expected at least the {lengths[name]:,} of the checkpoint")


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl, one per finished generation."""
    return _read(folder / METRICS)


def read_elites(folder: Path) -> list[Genome]:
    """The elite of each finished generation. ValueError: elites.jsonl does not hold what was written into it."""
    elites: list[Genome] = []
    for row in _read(folder / ELITES):
        elites.append(genome_from_json(row["elite"], elites[-1] if elites else None))
    return elites


def _read(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a JSON lines file; a last one without its end was being written when the run was killed."""
    lines = path.read_bytes().split(b"\n")[:-1]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise ValueError(f"line {number} of {path} is not JSON: {line[:80]!r}") from None
    return rows


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def _csv(rows: list[dict[str, Any]], header: bool) -> bytes:
    text = io.StringIO()
    names = [name for name, value in rows[0].items() if not isinstance(value, list)] if rows else []
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    if header and rows:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
