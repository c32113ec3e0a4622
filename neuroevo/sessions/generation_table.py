"""The table of generations on a terminal: what fits its width, under a header that comes again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from neuroevo.system.console import clock

Row: TypeAlias = Mapping[str, Any]

_ROWS_BELOW_A_HEADER = 20


def _number(value: float | None, tenths_below: float = 10_000) -> str:
    """Such as 3.14, 1,234.5 and 12,345; - for None. Tenths are shown below 10,000 or another limit."""
    if value is None:
        return "-"
    return f"{value:,.{2 if abs(value) < 9.995 else 1 if abs(value) < tenths_below - 0.05 else 0}f}"


def _count(value: int) -> str:
    """Such as 99,999, 1.23M and 250M."""
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:,}"


def _test(row: Row) -> str:
    error = row["test_standard_error"]
    return _number(row["test_mean"]) + ("" if error is None else f" ± {_number(error, 1000)}")


@dataclass(frozen=True)
class _Column:
    """left_out: the larger this number, the earlier the column goes where not all fit; 0: never."""

    name: str
    width: int
    show: Callable[[Row], str]
    left_out: int
    means: str = ""


_NOVELTY = _Column("novelty", 7, lambda row: _number(row["novelty_mean"]), 0, "mean of the population's")
_COLUMNS = (
    _Column("gen", 4, lambda row: str(row["generation"]), 0),
    _Column("mean", 8, lambda row: _number(row["fitness_mean"]), 2, "of the population's fitness"),
    _Column("max", 8, lambda row: _number(row["fitness_max"]), 1),
    _Column("valid.", 8, lambda row: _number(row["validation_mean"]), 0, "the elite's mean return in validation"),
    _Column("test", 16, _test, 0, "the same in test episodes ± standard error"),
    _Column("steps", 7, lambda row: _count(row["steps_total"]), 3),
    _Column("steps/s", 7, lambda row: f"{row['steps_per_s']:,.0f}", 4),
    _Column("idle", 5, lambda row: f"{row['idle_share']:.1%}", 5, "share of the threads' time without work"),
    _Column("time", 9, lambda row: clock(row["seconds_total"]), 0),
)


class GenerationTable:
    """Makes a table's lines one generation after another."""

    def __init__(self, width: int):
        """Choose the columns when the first row comes.

        Args:
            width: Characters that fit a line.
        """
        self._width = width
        self._columns: list[_Column] = []
        self._since_header = 0

    def lines(self, row: Row) -> list[str]:
        """Return the lines of a generation: its row, and above it the header where one is due.

        Args:
            row: The generation's numbers, as Record.row() has them.
        """
        lines = []
        if not self._columns:
            self._columns = _fitting(row, self._width)
            lines += _legend(self._columns, self._width)
        if self._since_header % _ROWS_BELOW_A_HEADER == 0:
            lines.append(" ".join(f"{each.name:>{each.width}}" for each in self._columns))
        self._since_header += 1
        return [*lines, " ".join(f"{each.show(row):>{each.width}}" for each in self._columns)]


def _fitting(row: Row, width: int) -> list[_Column]:
    """Return the columns that fit; one of novelty where an algorithm selects by it."""
    columns = list(_COLUMNS)
    if "novelty_mean" in row:
        columns.insert(1, _NOVELTY)
    while sum(each.width + 1 for each in columns) - 1 > width and any(each.left_out for each in columns):
        columns.remove(max(columns, key=lambda each: each.left_out))
    return columns


def _legend(columns: Iterable[_Column], width: int) -> list[str]:
    """Describe the columns, in lines that fit."""
    lines = [""]
    for each in columns:
        if each.means:
            text = f"{each.name}: {each.means}; "
            if len(lines[-1]) + len(text) - 1 > width and lines[-1]:
                lines.append("")
            lines[-1] += text
    return [line.rstrip("; ") + ("" if line is lines[-1] else ";") for line in lines]
