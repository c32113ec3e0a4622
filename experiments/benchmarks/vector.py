"""Section `vector` of `make bench`, and neuroevo's measurement as a process that measures on request.

    python -m experiments.benchmarks.vector GAME ENVS THREADS

For a number of seconds (see programs.Program) it returns {"frames_per_s": emulator frames, four per step}.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from contextlib import ExitStack
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import Program, in_turns, median_ratio, peer

_PEERS = ("envpool", "alevec")
_FRAME_SKIP = 4
_console = Console(width=120, highlight=False)


def vector(seconds: float, rounds: int, threads: int, games: tuple[str, ...], envs: int) -> dict[str, Any]:
    """Measure frames/s of stepping environments through gymnasium.vector.VectorEnv's interface, random actions.

    All make uint8 [84, 84, 4] (the peers [4, 84, 84]) and reset by themselves; none clips rewards.
    """
    results: dict[str, Any] = {}
    table = Table(
        "game", "neuroevo", "EnvPool", "AtariVectorEnv", "faster peer", title=f"{envs} Gymnasium vector environments"
    )
    for game in games:
        with ExitStack() as stack:
            programs = {"ours": Program([sys.executable, "-m", "experiments.benchmarks.vector", game, envs, threads])}
            programs |= {name: peer("atari_stepping.py", name, game, envs, threads) for name in _PEERS}
            for program in programs.values():
                stack.enter_context(program)
            measurements = {
                name: lambda program=program: program.measure(seconds)["frames_per_s"]
                for name, program in programs.items()
            }
            found = in_turns(measurements, rounds)
        row = {name: statistics.median(values) for name, values in found.items()}
        row["ratio_faster_peer"] = min(median_ratio(found["ours"], found[name]) for name in _PEERS)
        results[game] = {**row, "rounds": found}
        table.add_row(game, *(f"{row[name]:,.0f}" for name in programs), f"{row['ratio_faster_peer']:.2f} x")
    ratios = [results[game]["ratio_faster_peer"] for game in games]
    results["geometric_mean"] = float(np.exp(np.mean(np.log(ratios))))
    _console.print(table)
    _console.print(f"geometric mean of the ratios to the faster peer: {results['geometric_mean']:.2f}")
    return results


def main() -> None:
    from neuroevo.envs.vector import make_vec

    game, num_envs, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    env = make_vec(game, num_envs, num_threads=threads)
    env.reset(seed=0)
    actions, rng = env.single_action_space.n, np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, began = 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            env.step(rng.integers(actions, size=num_envs, dtype=np.int32))
            steps += num_envs
        return _FRAME_SKIP * steps / (time.perf_counter() - began)

    measure(0.5)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps({"frames_per_s": measure(float(line))}), flush=True)


if __name__ == "__main__":
    main()
