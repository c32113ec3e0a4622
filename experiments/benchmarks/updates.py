"""Section `updates` of `make bench`: the algorithms' updates between generations, without episodes."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio, ours
from neuroevo.algorithms.registry import ALGORITHMS

_POPULATION = 1000
# Algorithms for networks of any size, without behaviors, whose distances would dominate the cost.
_ALGORITHMS = [name for name, kind in ALGORITHMS.items() if name != "cma_es" and kind().behavior is None]
_console = Console(width=120, highlight=False)


def updates(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure an update of LargeModel, 4,052,658 weights, with 1,000 members: seconds, and memory beyond the genomes.

    Each algorithm runs in a separate process with its default settings, regardless of the seconds; ratios to es are
    taken per round.
    """
    with ExitStack() as stack:
        programs = {
            name: stack.enter_context(ours("update", algorithm=name, population=_POPULATION, threads=threads))
            for name in _ALGORITHMS
        }
        found = in_turns({name: lambda each=each: each.measure(seconds) for name, each in programs.items()}, rounds)
    table = Table("algorithm", "seconds", "of es", "memory, MB")
    result: dict[str, Any] = {}
    of_es = [row["seconds"] for row in found["es"]]
    for name, rows in found.items():
        row = {key: round(statistics.median(each[key] for each in rows), 4) for key in ("seconds", "memory_mb")}
        row["of_es"] = round(median_ratio([each["seconds"] for each in rows], of_es), 3)
        result[name] = row
        table.add_row(name, f"{row['seconds']:.2f}", f"{row['of_es']:.2f}", f"{row['memory_mb']:,.0f}")
    _console.print(table)
    return result
