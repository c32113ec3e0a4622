"""Section `sharing` of `make bench`: time and memory of four trials in one shared pipeline and one after another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import ROOT, median_ratio
from neuroevo.runs.database import DATABASE
from neuroevo.runs.reader import RunReader

_SLOTS, _TRIALS = 32, 4
_CONFIG = f"""
[env]
name = "gymnasium:experiments.benchmarks.sleeping:Sleeping-v0"
options = {{workers = {_SLOTS}}}
[network]
name = "mlp"
hidden = [16]
[algorithm]
name = "ga"
population = 8
parents = 4
validation_candidates = 2
[training]
generations = 30
validation_episodes = 4
test_episodes = 0
[hardware]
device = "cpu"
threads = {_SLOTS}
lanes = {_SLOTS}
slots = 1
"""
_SWEEP = """
[sweep]
configs = "sleeping.toml"
parallel = {parallel}
shared = {shared}
[sweep.space]
"algorithm.sigma" = [{values}]
"""
_VALUES = "0.1, 0.2, 0.4, 0.8"
_console = Console(width=120, highlight=False)


def sharing(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure four trials of population 8 on 32 slots of a sleeping environment: in one pipeline, and sequentially."""
    ways = {
        "one after another": dict(parallel=1, shared="false", values=_VALUES),
        "together": dict(parallel=_TRIALS, shared="true", values=_VALUES),
        "one trial": dict(parallel=1, shared="true", values="0.1"),
        "one trial with its own pipeline": dict(parallel=1, shared="false", values="0.1"),
    }
    found: dict[str, Any] = {way: {"seconds": [], "megabytes": []} for way in ways}
    rows: dict[str, Any] = {}
    for _ in range(rounds):
        for way, options in ways.items():
            took, most, fitness = _sweep(**options)
            found[way]["seconds"].append(took)
            found[way]["megabytes"].append(most)
            assert rows.setdefault(len(fitness), fitness) == fitness, "trials differ"
    table = Table(
        "sweep", "s", "MB", title=f"whole command, start included; memory of all its processes, {rounds} rounds"
    )
    for way in ways:
        table.add_row(way, *(f"{median(found[way][what]):,.1f}" for what in ("seconds", "megabytes")))
    _console.print(table)
    found["speedup"] = median_ratio(found["one after another"]["seconds"], found["together"]["seconds"])
    alone, own = (found[way]["megabytes"] for way in ("one trial", "one trial with its own pipeline"))
    found["memory"] = median_ratio(found["together"]["megabytes"], alone)
    found["memory_own_pipeline"] = median_ratio(found["together"]["megabytes"], own)
    _console.print(
        f"together {found['speedup']:.2f} times as fast as one after another, with {found['memory']:.2f} times the "
        f"memory of one trial by the same command, {found['memory_own_pipeline']:.2f} times that of one with a "
        "pipeline in its own process; the results are the same"
    )
    return found


def _sweep(**options: Any) -> tuple[float, float, list[Any]]:
    """Return the seconds and peak megabytes of a sweep, and the fitness in its trials' generations."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "sleeping.toml").write_text(_CONFIG)
        (folder / "sweep.toml").write_text(_SWEEP.format(**options))
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "neuroevo", "sweep", str(folder / "sweep.toml"), "--out", str(folder / "out")]
        begun, most = time.perf_counter(), 0.0
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while process.poll() is None:
                most = max(most, _megabytes(process.pid))
                time.sleep(0.5)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()
        took = time.perf_counter() - begun
        if process.returncode:
            sys.exit(f"the sweep failed with {process.returncode}")
        runs = sorted(file.parent for file in (folder / "out").rglob(DATABASE))
        return (
            took,
            most,
            [[[float(value) for value in row["fitness"]] for row in RunReader(run).rows()] for run in runs],
        )


def _megabytes(root: int) -> float:
    """Return the proportional set size of a process and all its descendants, in 10^6 bytes."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
    own, added = {root}, True
    while added:
        more = {pid for pid, parent in parents.items() if parent in own} - own
        own, added = own | more, bool(more)
    return sum(map(_proportional, own)) / 1e6


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
