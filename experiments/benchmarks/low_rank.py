"""Section `low_rank` of `make bench`: members of one center, as in low_rank_es."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio, ours, peer

PEER_WAYS = {"torch": ("grouped", "unfold", "vmap", "threads"), "jax": ("vmap", "patches")}
_IN_FLIGHT = 64
_EMULATORS = ("neuroevo", "ale")
_console = Console(width=120, highlight=False)


def low_rank(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure LargeModel on Frostbite with 64 concurrent members of one center.

    Compared in the same rounds with one network in all slots, environments alone, and PyTorch and JAX with EnvPool;
    also with ALE's chips, which take twice as long.
    """
    slots = max(1, _IN_FLIGHT // threads)
    peers = [(library, way) for library, ways in PEER_WAYS.items() for way in ways]
    common = {"game": "frostbite", "network": "large_model", "threads": threads}
    with ExitStack() as stack:
        programs = {}
        for emulator in _EMULATORS:
            options = {"env_options": {"emulator": emulator}}
            for genomes in ("low_rank", "same"):
                own = ours("rollout", **common, **options, genomes=genomes, lanes=threads, slots=slots)
                programs[genomes, emulator] = stack.enter_context(own)
            env = ours("env", name="frostbite", envs=threads * slots, threads=threads, **options)
            programs["env", emulator] = stack.enter_context(env)
        programs["random", "neuroevo"] = stack.enter_context(ours("rollout", **common))
        for library, way in peers:
            other = peer(f"{library}_low_rank.py", way, "large_model", "frostbite", threads * slots, threads)
            programs[library, way] = stack.enter_context(other)
        measured = {key: lambda each=each: each.measure(seconds)["frames_per_s"] for key, each in programs.items()}
        found = in_turns(measured, rounds)
    best = max(peers, key=lambda each: statistics.median(found[each]))
    columns = "emulator", "low rank", "one network", "ratio", "environments alone", "ratio", "best peer", "ratio"
    table = Table(*columns, title=f"{threads * slots} members in flight, frames/s")
    result: dict[str, Any] = {"rounds": {" ".join(key): values for key, values in found.items()}}
    for emulator in _EMULATORS:
        others = {"same": found["same", emulator], "env": found["env", emulator], "peer": found[best]}
        row: dict[str, Any] = {"low_rank": statistics.median(found["low_rank", emulator])}
        for name, rates in others.items():
            row[name], row[f"of_{name}"] = statistics.median(rates), median_ratio(found["low_rank", emulator], rates)
        result[emulator] = row
        cells = [f"{row['same']:,.0f}", f"{row['of_same']:.2f}", f"{row['env']:,.0f}", f"{row['of_env']:.2f}"]
        cells += [f"{row['peer']:,.0f} ({' '.join(best)})", f"{row['of_peer']:.2f} x"]
        table.add_row(emulator, f"{row['low_rank']:,.0f}", *cells)
    result["of_random"] = median_ratio(found["low_rank", "neuroevo"], found["random", "neuroevo"])
    _console.print(table)
    print(f"low rank is {result['of_random']:.2f} times as fast as a different network in every slot")
    return result
