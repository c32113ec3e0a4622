"""The files that grow by a line with every finished generation.

metrics.jsonl   one JSON object per generation: a Record's row, fitness of every genome included; with a checksum of the
                line as its last key, as a line of elites.jsonl has (see json_lines)
metrics.csv     the same numbers without the list of fitness, for spreadsheets; names are quoted where CSV needs it
elites.jsonl    the elite of every generation as a genome, relative to the line before (see genome_json); and, where
                observations are normalized, the mean and standard deviation of each of an observation's numbers
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.genome_json import GenomeReader, genome_to_json
from neuroevo.runs.json_lines import DamagedLine, lines, sealed
from neuroevo.runs.metrics_csv import columns_of, csv_lines
from neuroevo.runs.paths import CSV, ELITES, METRICS
from neuroevo.system.appended_file import AppendedFile
from neuroevo.system.directory import Directory
from neuroevo.training.record import COLUMNS, Record

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
            ValueError: One is damaged.
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
        newest = newest_elite(self._folder.path)[1]
        self._elite: Genome | None = None if newest is None else newest.genome
        self._columns: list[str] = []
        for row in rows(self._folder.path, fitness=False):  # not every generation need have the same metrics
            self._columns = list(dict.fromkeys([*self._columns, *columns_of(row)]))
        self._write_csv()

    def append(self, records: Sequence[Record]) -> dict[str, int]:
        """Adds generations to metrics.jsonl and elites.jsonl: all of them to both, or none.

        Args:
            records: The records of the next generations, in order.

        Returns:
            The new `lengths`, for a checkpoint.

        Raises:
            LostFile: Somebody else has changed the files; nothing was added to them.
            OSError: The files cannot be written.
        """
        added, last = {METRICS: b"", ELITES: b""}, self._elite
        for record in records:
            elite: dict[str, Any] = {"generation": record.generation, "elite": genome_to_json(record.elite, last)}
            if record.normalizer is not None:
                elite["normalizer"] = {name: getattr(record.normalizer, name).tolist() for name in ("mean", "std")}
            added[METRICS] += sealed(record.row())
            added[ELITES] += sealed(elite)
            last = record.elite
        for name in added:
            self._files[name].check()
        self._files[METRICS].append(added[METRICS])
        try:
            self._files[ELITES].append(added[ELITES])
        except BaseException:
            self._files[METRICS].cut(self.lengths[METRICS])
            raise
        self.lengths = {name: length + len(added[name]) for name, length in self.lengths.items()}
        self._elite = last
        return self.lengths

    def append_csv(self, records: Sequence[Record]) -> None:
        """Adds the same generations to metrics.csv, which can be made of metrics.jsonl at any time.

        Args:
            records: What append() was given.

        Raises:
            OSError: The file cannot be written.
        """
        new = [record.row() for record in records]
        before, names = self._columns, [name for row in new for name in columns_of(row)]
        self._columns = list(dict.fromkeys([*before, *names]))
        if not self._files[CSV].intact():
            log.warning("%s was deleted or changed meanwhile; it is written again", self._files[CSV].path)
            self._write_csv()
        elif before != self._columns:
            self._write_csv()
        else:
            self._files[CSV].append(csv_lines(new, self._columns))

    def _write_csv(self) -> None:
        """Writes metrics.csv of metrics.jsonl."""
        text = csv_lines(rows(self._folder.path, fitness=False), self._columns, header=bool(self._columns))
        self._folder.write(CSV, text)
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


def check(folder: Path, lengths: Mapping[str, int], count: int) -> None:
    """Checks that a run can go on from files.

    Args:
        folder: The run's folder.
        lengths: Bytes of each file that a checkpoint remembers.
        count: How many generations those are.

    Raises:
        ValueError: A file is missing, shorter than that, damaged before that length, or of other generations.
    """
    for name in (METRICS, ELITES):
        path = folder / name
        size = path.stat().st_size if path.is_file() else 0
        if size < lengths[name]:
            raise ValueError(f"{path} has {size:,} bytes, expected at least the {lengths[name]:,} of the checkpoint")
        if name == METRICS:
            found = sum(1 for _ in rows(folder, length=lengths[name]))
        else:
            found = newest_elite(folder, length=lengths[name])[0] + 1
        if found != count:
            raise ValueError(f"{path} has {found} generations in {lengths[name]:,} bytes, the checkpoint {count}")


def rows(
    folder: Path, fitness: bool = True, length: int | None = None, after: tuple[int, int] = (0, 0)
) -> Iterator[dict[str, Any]]:
    """Reads metrics.jsonl.

    Args:
        folder: The run's folder.
        fitness: Whether the rows have the list of every genome's fitness.
        length: Bytes to read, from the beginning of the file; None reads all complete lines.
        after: How many rows were read before, and how many bytes these have: it goes on behind them.

    Yields:
        A row per finished generation, as `Record.row` made it.

    Raises:
        OSError: The file cannot be read.
        DamagedLine: The file is damaged.
    """
    for number, row, has_sum in lines(folder / METRICS, length, after):
        try:
            _check_row(row, has_sum)
        except ValueError as error:
            raise DamagedLine(folder / METRICS, number, error) from None
        if not fitness:
            row.pop("fitness", None)
        yield row


def elites(folder: Path, length: int | None = None) -> Iterator[Elite]:
    """Reads elites.jsonl.

    Args:
        folder: The run's folder.
        length: Bytes to read; None reads all complete lines.

    Yields:
        The elite of each finished generation. Of one that was made from a center the center's name alone is known.

    Raises:
        OSError: The file cannot be read.
        DamagedLine: The file is damaged.
    """
    for _, reader, normalizer in _elites(folder, length):
        yield Elite(reader.genome, normalizer)


def newest_elite(folder: Path, generation: int | None = None, length: int | None = None) -> tuple[int, Elite | None]:
    """Reads elites.jsonl for one elite, in time and memory for what is written there.

    Args:
        folder: The run's folder.
        generation: That of the elite; None is the last one.
        length: Bytes to read; None reads all complete lines.

    Returns:
        The last generation, -1 before there is one, and the elite; None where there is none of that generation.

    Raises:
        OSError: The file cannot be read.
        DamagedLine: The file is damaged.
    """
    last, found = -1, None
    for number, reader, normalizer in _elites(folder, length):
        last = number - 1
        if last == generation:
            found = Elite(reader.genome, normalizer)
    if generation is None and last >= 0:
        found = Elite(reader.genome, normalizer)
    return last, found


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


_Elites = Iterator[tuple[int, GenomeReader, Normalizer | None]]


def _elites(folder: Path, length: int | None) -> _Elites:
    """Yields each line's number, a reader that has just read its genome, and its normalizer."""
    reader = GenomeReader()
    for number, row, _ in lines(folder / ELITES, length):
        try:
            if not {"generation", "elite"} <= row.keys() <= {"generation", "elite", "normalizer"}:
                raise ValueError(f"it has {', '.join(row)}, expected generation, elite and perhaps normalizer")
            reader.read(row["elite"])
            normalizer = _normalizer(row)
        except ValueError as error:
            raise DamagedLine(folder / ELITES, number, error) from None
        yield number, reader, normalizer


def _normalizer(row: Mapping[str, Any]) -> Normalizer | None:
    values = row.get("normalizer")
    if values is None:
        return None
    if not isinstance(values, dict) or values.keys() != {"mean", "std"}:
        raise ValueError(f"this is not a normalizer: {str(values)[:80]}, expected mean and std")
    for name, numbers in values.items():
        if not isinstance(numbers, list) or not all(type(each) in (float, int) for each in numbers):
            raise ValueError(f"{name} of a normalizer is {str(numbers)[:80]}, expected numbers")
    try:
        normalizer = Normalizer(row["generation"], *(np.array(values[name], np.float64) for name in ("mean", "std")))
    except OverflowError as error:  # a whole number of hundreds of digits
        raise ValueError(f"this is not a normalizer: {error}") from None
    normalizer.check_state()
    return normalizer


def _check_row(row: Mapping[str, Any], has_sum: bool) -> None:
    """ValueError: a row is not as Record.row() has it. The values of one with a sum are."""
    missing = [name for name in COLUMNS if name not in row]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    fitness = row["fitness"]
    for name, value in row.items():
        if name == "fitness":
            continue
        if not _is_text(name):
            raise ValueError(f"it has a name with half a pair of surrogates, {name!r}, expected text")
        if isinstance(value, str | list | dict) or not (has_sum or value is None or _is_number(value)):
            raise ValueError(f"{name} is {str(value)[:80]!r}, expected a finite number, or null where it is not known")
    if not has_sum and not (isinstance(fitness, list) and all(_is_number(value) for value in fitness)):
        raise ValueError(f"fitness is {str(fitness)[:80]}, expected a list of finite numbers")


def _is_text(name: str) -> bool:
    """False where it has half a pair of surrogates, as JSON can write it, which no file can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
