"""`make bench`: what this machine reaches now, each figure beside a limit or a peer measured in the same run, in pairs.

    python -m experiments.bench [--seconds S] [--pairs N] [--peer COMMAND] [--only SECTION]

Sections: forward (cost of a call against live slots K and rows R), loop (what a step costs beside emulator and
network), env (stepping through the ops against bare ALE from Python on as many processes),
rollout (LargeModel on Frostbite; with --peer against a command that ends with a JSON line holding frames_per_s).
Everything is printed as text, and as one JSON object on the last line.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

GAMES = ("frostbite", "breakout", "pong", "seaquest")


def bench(
    seconds: Annotated[float, typer.Option(min=0.5, help="Wall time of each measurement.")] = 5.0,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs (ours, other) of each comparison.")] = 5,
    peer: Annotated[
        str | None, typer.Option(help="Command of a peer for the rollout, ending with a JSON line.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Run one section: forward, loop, env, rollout.")] = None,
) -> None:
    """Measure forward, loop, env and rollout."""
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "forward": forward,
        "loop": lambda: loop(seconds, pairs),
        "env": lambda: env(seconds, pairs),
        "rollout": lambda: rollout(seconds, pairs, peer),
    }
    if only is not None and only not in sections:
        raise typer.BadParameter(f"section '{only}' is unknown, expected one of {', '.join(sections)}")
    results = {}
    for name, section in sections.items():
        if only in (None, name):
            print(f"\n{name}: {globals()[name].__doc__}", flush=True)
            results[name] = section()
    print(json.dumps(results))


def forward() -> dict[str, Any]:
    """Milliseconds of one LargeModel Forward call on one thread: grows with K, not with S or R."""
    from neuroevo import native, networks, ops

    ops.set_threads(1)
    text = networks.to_text(networks.large_model(networks.input_line("uint8", (84, 84, 4)), 18))
    rng, results = np.random.default_rng(0), {}
    print(f"{'rows R':>8}{'live K':>8}{'ms':>9}{'ms / K':>9}")
    for rows in (16, 128):
        population = native.Population([text], rows)
        population.init(np.arange(rows), np.zeros(rows), np.arange(rows))
        for live in (1, 2, 4, 8, 16):
            observations = rng.integers(0, 256, (live, 84, 84, 4), np.uint8)
            which = rng.permutation(rows)[:live]
            ms = 1e3 * _median_seconds(lambda p=population, w=which, o=observations: p.forward(w, o, 18))
            results[f"rows={rows} live={live}"] = ms
            print(f"{rows:8}{live:8}{ms:9.3f}{ms / live:9.3f}")
    ops.set_threads(multiprocessing.cpu_count())
    return results


def loop(seconds: float, pairs: int) -> dict[str, Any]:
    """Microseconds of processor time a step that is spent outside the workers: TensorFlow's loop, queue, Python."""
    from neuroevo.episodes import Episode
    from neuroevo.evaluator import LocalEvaluator
    from neuroevo.genome import Genome

    episodes = [Episode(Genome(seed), seed, 300) for seed in range(max(4, int(seconds * 8)))]
    figures = []
    with LocalEvaluator("frostbite", "large_model") as evaluator:
        evaluator.evaluate(episodes[:4])
        for _ in range(pairs):
            workers, everything = _worker_cpu_seconds(), time.process_time()
            steps = int(evaluator.evaluate(episodes).steps.sum())
            workers, everything = _worker_cpu_seconds() - workers, time.process_time() - everything
            figures.append((1e6 * (everything - workers) / steps, 1e6 * everything / steps))
    outside, total = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"{outside:.1f} us of {total:.1f} us a step, {100 * outside / total:.1f}%")
    return {"outside_us": outside, "total_us": total}


def env(seconds: float, pairs: int) -> dict[str, Any]:
    """Frames/s of stepping 16 environments through the ops, against bare ALE from Python, one process a core."""
    from neuroevo import bench as measure

    cores, results = multiprocessing.cpu_count(), {}
    for game in GAMES:
        figures = []
        for _ in range(pairs):
            ours = measure.env(game, 16, cores, seconds)["frames_per_s"]
            figures.append((ours, _bare_ale(game, cores, seconds)))
        results[game] = _pair(game, figures, f"bare ALE on {cores} cores")
    return results


def rollout(seconds: float, pairs: int, peer: str | None) -> dict[str, Any]:
    """Frames/s of LargeModel on Frostbite, a different random genome for every episode."""
    command = [sys.executable, "-m", "neuroevo", "bench", "rollout", "--seconds", str(seconds), "--json"]
    runs, figures = [], []
    for _ in range(pairs):
        runs.append(_last_json(command))
        if peer is not None:
            figures.append((runs[-1]["frames_per_s"], _last_json(shlex.split(peer))["frames_per_s"]))
    facts = {key: runs[-1][key] for key in ("resident_mb", "lanes", "slots")}
    if peer is not None:
        return {**_pair("frostbite", figures, peer), **facts}
    ours = statistics.median(run["frames_per_s"] for run in runs)
    print(f"frostbite: ours {ours:,.0f} (--peer COMMAND measures another beside it)", flush=True)
    return {"ours": ours, **facts}


def _pair(name: str, figures: list[tuple[float, float]], other: str) -> dict[str, Any]:
    """Prints and returns the medians of a column of (ours, other) and of the ratios pair by pair."""
    ours, theirs = (statistics.median(column) for column in zip(*figures, strict=True))
    ratio = statistics.median(a / b for a, b in figures)
    print(f"{name}: ours {ours:,.0f}, {other} {theirs:,.0f}, ratio {ratio:.2f}", flush=True)
    return {"ours": ours, "other": theirs, "ratio": ratio, "pairs": figures}


def _median_seconds(call: Callable[[], object], repeats: int = 40) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _worker_cpu_seconds() -> float:
    """Processor time so far of the threads that the native core calls neuroevo."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        if name == "neuroevo":
            ticks += sum(map(int, fields.split()[11:13]))  # user, system
    return ticks / os.sysconf("SC_CLK_TCK")


def _last_json(command: list[str]) -> dict[str, Any]:
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def _bare_ale(game: str, processes: int, seconds: float) -> float:
    """Frames/s of random actions in ale-py, nothing else, summed over processes."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return sum(pool.starmap(_bare_ale_process, [(game, seconds, seed) for seed in range(processes)]))


def _bare_ale_process(game: str, seconds: float, seed: int) -> float:
    from ale_py import ALEInterface, LoggerMode, roms

    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path(game))
    actions, rng = ale.getMinimalActionSet(), np.random.default_rng(seed)
    frames, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        for choice in rng.integers(len(actions), size=100):
            for _ in range(4):
                ale.act(actions[choice])
            frames += 4
            if ale.game_over():
                ale.reset_game()
    return frames / (time.perf_counter() - began)


if __name__ == "__main__":
    from neuroevo.quiet import load_tensorflow

    load_tensorflow()
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(bench)
    app()
