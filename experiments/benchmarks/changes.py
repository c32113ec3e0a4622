"""Section `changes` of `make bench`: the speedup from recomputing only the changed parts of a slot's screen."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.emulator import GAMES
from experiments.benchmarks.programs import in_turns, median_ratio, ours

_DTYPES = ("float32", "int8")
_console = Console(width=120, highlight=False)


def changes(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure LargeModel's microseconds per screen of random play, with every screen computed in full.

    It is compared with incremental computation from each slot's last screen. Only networks run, one per thread.
    """
    columns = [f"{dtype} {what}" for dtype in _DTYPES for what in ("full", "changes", "ratio")]
    table = Table("game", *columns, title="LargeModel, us a step")
    results: dict[str, Any] = {}
    for game in GAMES:
        row: dict[str, Any] = {}
        for dtype in _DTYPES:
            common = {"game": game, "network": "large_model", "threads": threads, "dtype": dtype}
            with ExitStack() as stack:
                programs = {
                    "full": stack.enter_context(ours("network", **common, slots=False)),
                    "changes": stack.enter_context(ours("network", **common)),
                }
                found = in_turns(
                    {name: lambda each=each: each.measure(seconds)["network_us"] for name, each in programs.items()},
                    rounds,
                )
            row |= {f"{dtype} {name}": statistics.median(values) for name, values in found.items()}
            row[f"{dtype} ratio"] = median_ratio(found["changes"], found["full"])
            row[f"{dtype} rounds"] = found
        results[game] = row
        table.add_row(game, *(f"{row[name]:.2f}" if name.endswith("ratio") else f"{row[name]:.0f}" for name in columns))
    for dtype in _DTYPES:
        mean = float(np.exp(np.mean(np.log([results[game][f"{dtype} ratio"] for game in GAMES]))))
        results[f"geometric_mean_{dtype}"] = mean
    _console.print(table)
    _console.print(
        "geometric means of the ratios: "
        + ", ".join(f"{dtype} {results[f'geometric_mean_{dtype}']:.2f}" for dtype in _DTYPES)
    )
    return results
