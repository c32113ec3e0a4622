"""Sections of `make bench`: each function prints a table and returns its numbers."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.accelerated import accelerated
from experiments.benchmarks.changes import changes
from experiments.benchmarks.cluster import cluster
from experiments.benchmarks.emulator import emulator
from experiments.benchmarks.engines import engines
from experiments.benchmarks.low_rank import low_rank
from experiments.benchmarks.mujoco import mujoco
from experiments.benchmarks.programs import Program, in_turns, median_ratio, native, ours, peer
from experiments.benchmarks.recurrent import recurrent
from experiments.benchmarks.updates import updates
from experiments.benchmarks.vector import vector

STEPPING_PEERS = ("envpool", "envpool_async", "alevec")
DTYPES = ("float32", "int8")
TORCH_WAYS = ("grouped", "unfold", "threads", "threads, one each")
_NETWORKS = 16  # networks that torch evaluates per thread; "one each" keeps a network in its core's share of the cache
_FRAME_SKIP = 4
_console = Console(width=120, highlight=False)


def limits(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure the limits of this machine: multiply-adds, reading and copying memory."""
    found = native("limits")
    table = Table("limit", "one core", "all cores", title="limits")
    for name, value in found["one_core"].items():
        table.add_row(name, f"{value:,.1f}", f"{found['all_cores'][name]:,.1f}")
    _console.print(table)
    return found


def env(seconds: float, rounds: int, threads: int, games: tuple[str, ...], envs: int) -> dict[str, Any]:
    """Measure frames/s of stepping environments to uint8 [84, 84, 4] with random actions.

    bare ALE: ALE's emulator alone, compiled like ours, one per thread.
    """
    results: dict[str, Any] = {}
    columns = (
        "game",
        "neuroevo's ops",
        "EnvPool",
        "EnvPool async",
        "AtariVectorEnv",
        "faster peer",
        "bare ALE",
        "of bare",
    )
    table = Table(*columns, title=f"stepping {envs} environments")
    for game in games:
        with ExitStack() as stack:
            own = stack.enter_context(ours("env", name=game, envs=envs, threads=threads))
            measurements = {"ours": lambda own=own: own.measure(seconds)["frames_per_s"]}
            for name in STEPPING_PEERS:
                other = stack.enter_context(peer("atari_stepping.py", name, game, envs, threads))
                measurements[name] = lambda other=other: other.measure(seconds)["frames_per_s"]
            measurements["bare_ale"] = lambda game=game: bare_ale(game, seconds, threads)["bare_frames_per_s"]
            found = in_turns(measurements, rounds)
        row = {name: statistics.median(values) for name, values in found.items()}
        row |= {f"ratio_{name}": median_ratio(found["ours"], found[name]) for name in STEPPING_PEERS}
        row["ratio_faster_peer"] = min(row[f"ratio_{name}"] for name in STEPPING_PEERS)
        row["of_bare_ale"] = median_ratio(found["ours"], found["bare_ale"])
        results[game] = {**row, "rounds": found}
        rates = (f"{row[name]:,.0f}" for name in ("ours", *STEPPING_PEERS))
        ratios = f"{row['ratio_faster_peer']:.2f} x", f"{row['bare_ale']:,.0f}", f"{row['of_bare_ale']:.2f}"
        table.add_row(game, *rates, *ratios)
    ratios = [results[game]["ratio_faster_peer"] for game in games]
    results["geometric_mean"] = float(np.exp(np.mean(np.log(ratios))))
    _console.print(table)
    _console.print(f"geometric mean of the ratios to the faster peer: {results['geometric_mean']:.2f}")
    return results


def forward(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure the networks' layers on one core against their limits, and decoding of weights against copying."""
    from experiments.benchmarks.ours import observations_of

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "observations"
        observations_of("frostbite", 64).tofile(file)
        found = native("forward_bench", "--json", "--observations", file)
    table = Table("network", "layer", "weights from", "us", "limit", "share", title="population forward, one core")
    for layer in found["layers"]:
        cells = (layer["network"], layer["layer"], layer["weights_from"])
        table.add_row(*cells, f"{layer['us']:.1f}", layer["limit"], f"{layer['share']:.0%}")
    _console.print(table)
    for each in found["making"]:
        ratios = f"perturb {each['perturb_ms'] / each['copy_ms']:.2f} x, init {each['init_ms'] / each['copy_ms']:.2f} x"
        print(f"making 4M weights on {each['threads']} threads: copying {each['copy_ms']:.2f} ms, {ratios} that")
    return found


def rollout(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure frames/s of whole rollouts on Frostbite, a different network in every slot, against torch + EnvPool.

    The column "step us" is the time per step and thread, "alone us" that of only the emulator plus only the network,
    measured in the same rounds.
    """
    results: dict[str, Any] = {}
    columns = ("network", "dtype", "frames/s", "best torch", "ratio", "step us", "alone us", "step / alone", "of bare")
    table = Table(*columns, title="rollout")
    for network in ("large_model", "model"):
        found = _rollouts(network, seconds, rounds, threads)
        best = max(TORCH_WAYS, key=lambda way: statistics.median(found[way]))  # noqa: B023 (used at once)
        emulator = [_step_us(rate, threads) for rate in found["emulator"]]
        for dtype in DTYPES:
            step = [_step_us(rate, threads) for rate in found[dtype]]
            alone = [a + b for a, b in zip(emulator, found[f"{dtype} network"], strict=True)]
            row = {
                "frames_per_s": statistics.median(found[dtype]),
                "best_torch": best,
                "torch_frames_per_s": statistics.median(found[best]),
                "ratio_torch": median_ratio(found[dtype], found[best]),
                "ratio_grouped": median_ratio(found[dtype], found["grouped"]),
                "step_us": statistics.median(step),
                "emulator_us": statistics.median(emulator),
                "network_us": statistics.median(found[f"{dtype} network"]),
                "step_over_alone": median_ratio(step, alone),
                "of_bare_ale": median_ratio(found[dtype], found["bare_ale"]),
            }
            results[f"{network} {dtype}"] = row
            cells = [f"{row[name]:,.0f}" for name in ("step_us",)]
            cells += [f"{row['emulator_us']:,.0f} + {row['network_us']:,.0f}"]
            table.add_row(
                network, dtype, f"{row['frames_per_s']:,.0f}", f"{row['torch_frames_per_s']:,.0f} ({best})",
                f"{row['ratio_torch']:.2f} x", *cells, f"{row['step_over_alone']:.2f}", f"{row['of_bare_ale']:.2f}",
            )  # fmt: skip
        results[f"{network} rounds"] = found
    _console.print(table)
    return results


def layout(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure steps/s of LargeModel on Frostbite by lanes and slots, relative to one lane of one slot per thread.

    More slots than threads need more rows of weights, which at some number exceed the last-level cache.
    """
    layouts = [(threads, 1), (threads, 2), (threads, 4), (threads, 8), (2 * threads, 1), (1, threads), (1, 4 * threads)]
    both = {"game": "frostbite", "network": "large_model", "threads": threads, "dtype": "float32"}
    with ExitStack() as stack:
        programs = {
            f"{lanes} x {slots}": stack.enter_context(ours("rollout", **both, lanes=lanes, slots=slots))
            for lanes, slots in layouts
        }
        found = in_turns(
            {
                name: lambda program=program: program.measure(seconds)["steps_per_s"]
                for name, program in programs.items()
            },
            rounds,
        )
    first = next(iter(found.values()))
    table = Table("lanes x slots", "steps/s", "ratio", title="layout")
    for name, rates in found.items():
        table.add_row(name, f"{statistics.median(rates):,.0f}", f"{median_ratio(rates, first):.2f}")
    _console.print(table)
    return found


def generation(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure a GA's generations against steady rollouts: population 200, 100 validation and 100 test episodes each.

    Two generations, including the wait for the last tests; steady: a new random genome per episode.
    Both on Frostbite with LargeModel; rates are steps/s. idle: share of the worker threads' time without work. outside:
    processor time per step of the lanes' loop, the queue and Python.
    """
    table = Table("what", "steps/s", "idle", "outside us", "of a step's time", title="GA generations")
    with (
        ours("rollout", game="frostbite", network="large_model", threads=threads, dtype="float32") as steady,
        ours("generations", threads=threads) as generations,
    ):
        found = in_turns(
            {"steady": lambda: steady.measure(4 * seconds), "generation": lambda: generations.measure(4 * seconds)},
            rounds,
        )
    medians = {}
    for name, each in found.items():
        keys = ("steps_per_s", "idle_share", "outside_us", "outside_share")
        row = medians[name] = {key: _median_of_known([one[key] for one in each]) for key in keys}
        outside = [
            "-" if row[key] is None else f"{row[key]:{how}}" for key, how in (("outside_us", ".1f"), (keys[-1], ".1%"))
        ]
        table.add_row(name, f"{row['steps_per_s']:,.0f}", f"{row['idle_share']:.1%}", *outside)
    rates = [[one["steps_per_s"] for one in found[name]] for name in ("generation", "steady")]
    ratio = median_ratio(*rates)
    _console.print(table)
    print(f"a generation runs at {ratio:.2f} of the steady rate")
    return {**medians, "ratio": ratio, "rounds": found}


def memory(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure the resident memory of a GA with LargeModel by population, in 10^6 bytes; offspring are seeds."""
    found = {}
    for population in (1000, 10_000):
        with ours("memory", population=population) as program:
            found[str(population)] = program.measure(seconds)["resident_mb"]
        print(f"population {population:,}: {found[str(population)]:,.0f} MB", flush=True)
    return found


def bare_ale(game: str, seconds: float, threads: int, slots: int = 8) -> dict[str, float]:
    """Measure the emulator alone on `threads` threads, in turns with as many lanes of a pool (see ale_bench.cc)."""
    from ale_py import roms

    found = native("ale_bench", roms.get_rom_path(game), seconds, threads, slots)
    return {**found, "bare_frames_per_s": threads * found["bare_frames_per_s_per_core"]}


def _rollouts(network: str, seconds: float, rounds: int, threads: int) -> dict[str, list[float]]:
    """Measure frames/s of neuroevo by dtype, torch, bare ALE and environments alone; microseconds per network."""
    both = {"game": "frostbite", "network": network, "threads": threads}
    ale: dict[str, float] = {}

    def measured(program: Program, key: str) -> Callable[[], float]:
        return lambda: program.measure(seconds)[key]

    def emulator(key: str) -> Callable[[], float]:
        def measure() -> float:
            if key == "bare_frames_per_s":  # one run of the program gives both
                ale.update(bare_ale("frostbite", 2 * seconds, threads, slots=1))  # as a lane of a rollout has
            return ale[key]

        return measure

    with ExitStack() as stack:
        measurements = {"bare_ale": emulator("bare_frames_per_s"), "emulator": emulator("pool_frames_per_s")}
        for dtype in DTYPES:
            own = stack.enter_context(ours("rollout", **both, dtype=dtype))
            measurements[dtype] = measured(own, "frames_per_s")
            alone = stack.enter_context(ours("network", **both, dtype=dtype))
            measurements[f"{dtype} network"] = measured(alone, "network_us")
        for way in TORCH_WAYS:
            each = 1 if way.endswith("one each") else _NETWORKS
            torch = peer("torch_population.py", way.split(",")[0], network, "frostbite", each * threads, threads)
            measurements[way] = measured(stack.enter_context(torch), "frames_per_s")
        return in_turns(measurements, rounds)


def _median_of_known(values: list[float | None]) -> float | None:
    """Return the median of the measured values, None without any."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _step_us(frames_per_s: float, threads: int) -> float:
    """Return the microseconds per step on one thread."""
    return 1e6 * threads * _FRAME_SKIP / frames_per_s


SECTIONS = {
    "limits": limits,
    "emulator": emulator,
    "env": env,
    "vector": vector,
    "mujoco": mujoco,
    "forward": forward,
    "rollout": rollout,
    "recurrent": recurrent,
    "low_rank": low_rank,
    "updates": updates,
    "changes": changes,
    "layout": layout,
    "engines": engines,
    "generation": generation,
    "memory": memory,
    "cluster": cluster,
    "accelerated": accelerated,
}
