"""Table of generations on a terminal: the columns that fit its width, with a repeated header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from neuroevo.system.console import clock

Row: TypeAlias = Mapping[str, Any]

_ROWS_BELOW_A_HEADER = 20


def _number(value: float | None, tenths_below: float = 10_000) -> str:
    """Format a number, such as 3.14, 1,234.5 and 12,345; - for None. Tenths are shown below `tenths_below`."""
    if value is None:
        return "-"
    return f"{value:,.{2 if abs(value) < 9.995 else 1 if abs(value) < tenths_below - 0.05 else 0}f}"


def _count(value: int) -> str:
    """Format a count, such as 99,999, 1.23M and 250M."""
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:,}"


def _test(row: Row) -> str:
    error = row["test_standard_error"]
    return _number(row["test_mean"]) + ("" if error is None else f" ± {_number(error, 1000)}")


@dataclass(frozen=True)
class _Column:
    """Column of the table; if not all fit, those with the largest `left_out` are dropped first, those with 0 never."""

    name: str
    width: int
    show: Callable[[Row], str]
    left_out: int
    means: str = ""


_NOVELTY = _Column("novelty", 7, lambda row: _number(row["novelty_mean"]), 0, "mean novelty of the population")
_COLUMNS = (
    _Column("gen", 4, lambda row: str(row["generation"]), 0),
    _Column("mean", 8, lambda row: _number(row["fitness_mean"]), 2, "mean fitness of the population"),
    _Column("max", 8, lambda row: _number(row["fitness_max"]), 1),
    _Column("valid.", 8, lambda row: _number(row["validation_mean"]), 0, "the elite's mean return in validation"),
    _Column("test", 16, _test, 0, "mean in test episodes ± standard error"),
    _Column("steps", 7, lambda row: _count(row["steps_total"]), 3),
    _Column("steps/s", 7, lambda row: f"{row['steps_per_s']:,.0f}", 4),
    _Column("idle", 5, lambda row: f"{row['idle_share']:.1%}", 5, "share of the threads' time without work"),
    _Column("time", 9, lambda row: clock(row["seconds_total"]), 0),
)


class GenerationTable:
    """Formatter of the table's lines, one generation after another."""

    def __init__(self) -> None:
        self._width = 0
        self._columns: list[_Column] = []
        self._since_header = 0

    def lines(self, row: Row, width: int) -> list[str]:
        """Return the lines of a generation: its row, preceded by the header if it is due or the width has changed.

        Args:
            row: The generation's numbers, as returned by Record.row().
            width: Number of characters per line.
        """
        lines = []
        if width != self._width:
            columns = _fitting(row, width)
            if not self._columns:
                lines += _legend(columns, width)
            if columns != self._columns:
                self._since_header = 0
            self._width, self._columns = width, columns
        if self._since_header % _ROWS_BELOW_A_HEADER == 0:
            lines.append(" ".join(f"{each.name:>{each.width}}" for each in self._columns))
        self._since_header += 1
        return [*lines, " ".join(f"{each.show(row):>{each.width}}" for each in self._columns)]


def _fitting(row: Row, width: int) -> list[_Column]:
    """Return the columns that fit, including novelty if the algorithm selects by it."""
    columns = list(_COLUMNS)
    if "novelty_mean" in row:
        columns.insert(1, _NOVELTY)
    while sum(each.width + 1 for each in columns) - 1 > width and any(each.left_out for each in columns):
        columns.remove(max(columns, key=lambda each: each.left_out))
    return columns


def _legend(columns: Iterable[_Column], width: int) -> list[str]:
    """Describe the columns in lines of at most `width` characters."""
    lines = [""]
    for each in columns:
        if each.means:
            text = f"{each.name}: {each.means}; "
            if len(lines[-1]) + len(text) - 1 > width and lines[-1]:
                lines.append("")
            lines[-1] += text
    return [line.rstrip("; ") + ("" if line is lines[-1] else ";") for line in lines]
