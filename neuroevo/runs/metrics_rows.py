"""Reads metrics.jsonl: a row for every finished generation, as metrics_files.py writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuroevo.runs.json_lines import DamagedLine, lines
from neuroevo.runs.paths import METRICS
from neuroevo.training.record import COLUMNS


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


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Reads all that `rows` yields.

    Args:
        folder: The run's folder.

    Returns:
        A row per finished generation.
    """
    return list(rows(folder))


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
    if not (isinstance(fitness, list) and (has_sum or all(_is_number(value) for value in fitness))):
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
