"""Section `engines` of `make bench`: the native core's lanes compared with TensorFlow graphs."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio, ours

_PLAYED = {"frostbite": "large_model", "pong": "model", "HalfCheetah-v5": "mlp", "hard_maze": "mlp"}


def engines(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure steps/s of rollouts with the native core's lanes and with TensorFlow graphs, and their memory.

    outside: processor time per step outside environments and networks; "?" if other programs used the cores.
    """
    results: dict[str, Any] = {}
    table = Table("environment", "network", "native steps/s", "ratio", "outside us", "MB", title="native / tensorflow")
    for game, network in _PLAYED.items():
        with ExitStack() as stack:
            options = {"game": game, "network": network, "threads": threads, "device": "cpu"}
            programs = {
                engine: stack.enter_context(ours("rollout", **options, engine=engine))
                for engine in ("native", "tensorflow")
            }
            measure = {name: lambda program=program: program.measure(seconds) for name, program in programs.items()}
            results[game] = found = in_turns(measure, rounds)
        rates = [[one["steps_per_s"] for one in each] for each in found.values()]
        cells = []
        for key, digits in (("outside_us", 1), ("resident_mb", 0)):
            known = [[one[key] for one in each if one[key] is not None] for each in found.values()]
            cells.append(" / ".join(f"{statistics.median(each):.{digits}f}" if each else "?" for each in known))
        table.add_row(game, network, f"{statistics.median(rates[0]):,.0f}", f"{median_ratio(*rates):.2f}", *cells)
    Console(width=120, highlight=False).print(table)
    return results
