"""The files that grow by a line with every finished generation.

metrics.jsonl   one JSON object per generation: a Record's row, fitness of every genome included
metrics.csv     the same numbers without the list of fitness, for spreadsheets; names are quoted where CSV needs it
elites.jsonl    the elite of every generation as a genome, relative to the line before (see genome_json); and, where
                observations are normalized, the mean and standard deviation of each of an observation's numbers
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.genome_json import genome_from_json, genome_to_json
from neuroevo.runs.paths import CSV, ELITES, METRICS
from neuroevo.system.appended_file import AppendedFile
from neuroevo.system.directory import Directory
from neuroevo.training.record import Record

log = logging.getLogger("neuroevo")


@dataclass(frozen=True)
class Elite:
    """The best genome of a generation.

    Attributes:
        genome: The genome.
        normalizer: What its networks see observations through; None: they see them as they are.
    """

    genome: Genome
    normalizer: Normalizer | None = None


class MetricsFiles:
    """Appends generations to the files in a run's folder.

    A checkpoint remembers the lengths of the files, and a resumed run cuts them back to those.

    Attributes:
        lengths: Bytes of complete generations in metrics.jsonl and elites.jsonl, by name.
    """

    def __init__(self, folder: Directory, lengths: Mapping[str, int] | None = None):
        """Cuts the files back, or creates them.

        Args:
            folder: The run's folder, which stays open as long as these files.
            lengths: Bytes to keep of each file, which `check` has accepted; None keeps nothing.

        Raises:
            OSError: They cannot be written.
            UserError: One of them is a link.
        """
        self._folder = folder
        self.lengths = {name: (lengths or {}).get(name, 0) for name in (METRICS, ELITES)}
        self._files: dict[str, AppendedFile] = {}
        try:
            for name, length in self.lengths.items():
                self._files[name] = AppendedFile(folder, name, length)
            self._read_back()
        except BaseException:
            self.close()
            raise

    def _read_back(self) -> None:
        self._elite: Genome | None = None
        for elite in elites(self._folder.path):
            self._elite = elite.genome
        self._columns: list[str] = []
        for row in rows(
            self._folder.path, fitness=False
        ):  # an algorithm need not name the same metrics in every generation
            self._columns = list(dict.fromkeys([*self._columns, *_columns(row)]))
        self._write_csv()

    def append(self, record: Record) -> dict[str, int]:
        """Adds a generation.

        Args:
            record: The generation's complete record.

        Returns:
            The new `lengths`, for a checkpoint.

        Raises:
            LostFile: Somebody else has changed the files; nothing was added to them.
            OSError: The files cannot be written.
        """
        row = record.row()
        elite: dict[str, Any] = {"generation": record.generation, "elite": genome_to_json(record.elite, self._elite)}
        if record.normalizer is not None:
            elite["normalizer"] = {name: getattr(record.normalizer, name).tolist() for name in ("mean", "std")}
        lines = {METRICS: _line(row), ELITES: _line(elite)}
        for name in lines:
            self._files[name].check()
        for name, line in lines.items():
            self._files[name].append(line)
        before, self._columns = self._columns, list(dict.fromkeys([*self._columns, *_columns(row)]))
        if not self._files[CSV].intact():
            log.warning("%s was deleted or changed meanwhile; it is written again", self._files[CSV].path)
            self._write_csv()
        elif before != self._columns:
            self._write_csv()
        else:
            self._files[CSV].append(_csv([row], self._columns))
        self.lengths = {name: length + len(lines[name]) for name, length in self.lengths.items()}
        self._elite = record.elite
        return self.lengths

    def _write_csv(self) -> None:
        """Writes metrics.csv of metrics.jsonl."""
        lines = _csv(rows(self._folder.path, fitness=False), self._columns, header=bool(self._columns))
        self._folder.write(CSV, lines)
        if CSV in self._files:
            self._files.pop(CSV).close()
        self._files[CSV] = AppendedFile(self._folder, CSV)

    def flush(self) -> None:
        """Makes what was appended survive a power failure.

        Raises:
            LostFile: Somebody else has changed the files.
            OSError: They cannot be written.
        """
        for name in (METRICS, ELITES):
            self._files[name].flush()

    def close(self) -> None:
        """Closes the files."""
        while self._files:
            self._files.popitem()[1].close()


def check(folder: Path, lengths: Mapping[str, int]) -> None:
    """Checks that a run can go on from files.

    Args:
        folder: The run's folder.
        lengths: Bytes of each file that a checkpoint remembers.

    Raises:
        ValueError: A file is missing, shorter than that, or damaged before that length.
    """
    readers: dict[str, Callable[..., Iterator[Any]]] = {METRICS: rows, ELITES: elites}
    for name, items in readers.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else 0
        if size < lengths[name]:
            raise ValueError(f"{path} has {size:,} bytes, expected at least the {lengths[name]:,} of the checkpoint")
        for _ in items(folder, length=lengths[name]):
            pass


def rows(folder: Path, fitness: bool = True, length: int | None = None) -> Iterator[dict[str, Any]]:
    """Reads metrics.jsonl.

    Args:
        folder: The run's folder.
        fitness: Whether the rows have the list of every genome's fitness.
        length: Bytes to read; None reads all complete lines.

    Yields:
        A row per finished generation, as `Record.row` made it.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged.
    """
    for row in _read(folder / METRICS, length):
        if not fitness:
            row.pop("fitness", None)
        yield row


def last_csv_row(folder: Path) -> dict[str, str] | None:
    """Reads the last complete row of metrics.csv, which is small where metrics.jsonl is large.

    Args:
        folder: The run's folder; the run may be writing into it.

    Returns:
        Values as text by column, "" where a generation has none; None before there is a row.

    Raises:
        OSError: The file cannot be read.
        ValueError: The header or the last row is damaged.
    """
    path = folder / CSV
    with path.open(encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")[:-1]
    header = csv.reader((f"{line}\n" for line in lines), strict=True)  # a metric's name may go over several lines
    try:
        columns = next(header, [])
        if header.line_num == len(lines):
            return None
        (values,) = csv.reader(lines[-1:], strict=True)  # a row is numbers, which do not
        return dict(zip(columns, values, strict=True))
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def elites(folder: Path, length: int | None = None) -> Iterator[Elite]:
    """Reads elites.jsonl.

    Args:
        folder: The run's folder.
        length: Bytes to read; None reads all complete lines.

    Yields:
        The elite of each finished generation. Of one that was made from a center the center's name alone is known.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged.
    """
    genome = None
    for row in _read(folder / ELITES, length):
        try:
            genome = genome_from_json(row["elite"], genome)
            elite = Elite(genome, _normalizer(row))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{folder / ELITES} is damaged: {error}") from None
        yield elite


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Reads all that `rows` yields.

    Args:
        folder: The run's folder.

    Returns:
        A row per finished generation.
    """
    return list(rows(folder))


def read_elites(folder: Path) -> list[Elite]:
    """Reads all that `elites` yields, which takes memory that grows with the square of the generations.

    Args:
        folder: The run's folder.

    Returns:
        The elite of each finished generation.
    """
    return list(elites(folder))


def _normalizer(row: Mapping[str, Any]) -> Normalizer | None:
    values = row.get("normalizer")
    if values is None:
        return None
    mean, std = (np.array(values[name], np.float64) for name in ("mean", "std"))
    if mean.ndim != 1 or mean.shape != std.shape or not (np.isfinite(mean).all() and (std > 0).all()):
        raise ValueError(f"this is not a normalizer: {str(values)[:80]}")
    return Normalizer(row["generation"], mean, std)


def _read(path: Path, length: int | None) -> Iterator[dict[str, Any]]:
    """Yields the objects of a JSON lines file, without a last line that a killed run had not finished writing."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if file.tell() - len(line) == length or (length is None and not line.endswith(b"\n")):
                return
            if not line.endswith(b"\n") or (length is not None and file.tell() > length):
                raise ValueError(f"line {number} of {path} goes to byte {file.tell():,}, expected an end at {length:,}")
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


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], header: bool = False) -> bytes:
    """Lines of CSV, with an empty value where a row lacks a column."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
