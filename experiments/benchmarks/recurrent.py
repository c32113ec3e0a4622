"""LargeModel with an LSTM in neuroevo and in PyTorch: the forward pass alone, and whole rollouts."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio, ours, peer

TORCH_WAYS = ("grouped", "unfold", "threads")
_NETWORK = "experiments.examples.networks:large_model_lstm"
_NETWORKS = 16  # networks that torch evaluates per thread
_console = Console(width=120, highlight=False)


def recurrent(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure LargeModel with an LSTM of 256 units on Frostbite, a different network per slot, and torch + EnvPool.

    A network's time is per step and thread, while all threads evaluate networks.
    """
    common = {"game": "frostbite", "network": _NETWORK, "threads": threads, "dtype": "float32"}
    with ExitStack() as stack:
        programs = {"network": stack.enter_context(ours("network", **common))}
        programs["rollout"] = stack.enter_context(ours("rollout", **common))
        for way in TORCH_WAYS:
            script = "torch_population.py", way, "large_model_lstm", "frostbite", _NETWORKS * threads, threads
            programs[way] = stack.enter_context(peer(*script))
        found = in_turns({name: lambda each=each: each.measure(seconds) for name, each in programs.items()}, rounds)

    def values(name: str, key: str) -> list[float]:
        return [each[key] for each in found[name]]

    times = {way: values(way, "network_us") for way in TORCH_WAYS}
    rates = {way: values(way, "frames_per_s") for way in TORCH_WAYS}
    quickest = min(times, key=lambda way: statistics.median(times[way]))
    fastest = max(rates, key=lambda way: statistics.median(rates[way]))
    own_us, own_rate = values("network", "network_us"), values("rollout", "frames_per_s")
    result = {
        "network_us": statistics.median(own_us),
        "torch_network_us": statistics.median(times[quickest]),
        "ratio_network": median_ratio(times[quickest], own_us),
        "frames_per_s": statistics.median(own_rate),
        "torch_frames_per_s": statistics.median(rates[fastest]),
        "ratio_rollout": median_ratio(own_rate, rates[fastest]),
        "rounds": {"own_us": own_us, "own_rate": own_rate, "torch_us": times, "torch_rate": rates},
    }
    table = Table("what", "neuroevo", "best torch", "ratio", title="LargeModel with an LSTM")
    torch_us, torch_rate = f"{result['torch_network_us']:,.0f} us ({quickest})", result["torch_frames_per_s"]
    table.add_row("network", f"{result['network_us']:,.0f} us", torch_us, f"{result['ratio_network']:.2f} x")
    cells = f"{result['frames_per_s']:,.0f} frames/s", f"{torch_rate:,.0f} ({fastest})"
    table.add_row("rollout", *cells, f"{result['ratio_rollout']:.2f} x")
    _console.print(table)
    return result
