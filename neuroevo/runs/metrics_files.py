"""Writes the files that grow by a line with every finished generation; metrics_rows.py and elites.py read them.

metrics.jsonl   one JSON object per generation: a Record's row, fitness of every genome included; with a checksum of the
                line as its last key, as a line of elites.jsonl has (see json_lines)
metrics.csv     the same numbers without the list of fitness, for spreadsheets; names are quoted where CSV needs it
elites.jsonl    the elite of every generation as a genome, relative to the line before (see genome_json); and, where
                observations are normalized, the mean and standard deviation of each of an observation's numbers
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroevo.core.genome import Genome
from neuroevo.runs.elites import newest_elite
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.json_lines import sealed
from neuroevo.runs.metrics_csv import columns_of, csv_lines
from neuroevo.runs.metrics_rows import rows
from neuroevo.runs.paths import CSV, ELITES, METRICS
from neuroevo.system.appended_file import AppendedFile
from neuroevo.system.directory import Directory
from neuroevo.training.record import Record

log = logging.getLogger("neuroevo")


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
