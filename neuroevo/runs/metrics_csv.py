"""metrics.csv of a run: how rows become lines, and what others read of it while the run goes on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroevo.runs.paths import CSV
from neuroevo.system.reading import read_regular


def columns_of(row: Mapping[str, Any]) -> list[str]:
    """The names of a row that have a column: all but the list of fitness."""
    return [name for name, value in row.items() if not isinstance(value, list)]


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], header: bool = False) -> bytes:
    """Writes lines.

    Args:
        rows: Their values by name; an empty value stands where a row lacks a column.
        columns: The names of the columns.
        header: Whether a line with the names comes first.

    Returns:
        The lines; names are quoted where CSV needs it.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    if header:
        every = any("\r" in name for name in columns)  # which ends a line for readers, and csv does not know it
        csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL).writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


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
    try:
        text = read_regular(path).decode().split("\n")[:-1]
        header = csv.reader((f"{line}\n" for line in text), strict=True)  # a metric's name may go over several lines
        columns = next(header, [])
        if header.line_num == len(text):
            return None
        (values,) = csv.reader(text[-1:], strict=True)  # a row is numbers, which do not
        return dict(zip(columns, values, strict=True))
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
