"""Section `mujoco` of `make bench`."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import in_turns, median_ratio, native_program, ours, peer
from neuroevo.envs.mujoco import TASKS, model_path

# Number of steps that are repeated: about a tenth of a second of play, in whole iterations of replay.py.
STEPS = {
    "HalfCheetah": 500,
    "Ant": 100,
    "Hopper": 300,
    "Walker2d": 200,
    "Humanoid": 100,
    "HumanoidStandup": 100,
    "Swimmer": 500,
    "Reacher": 1000,
    "Pusher": 500,
    "InvertedPendulum": 1000,
    "InvertedDoublePendulum": 500,
}
PEERS = ("envpool", "envpool_async", "gymnasium")
_SLOTS = 16  # environments, shared out over the threads
_console = Console(width=140, highlight=False)


def mujoco(seconds: float, rounds: int, threads: int, tasks: Sequence[str] = tuple(STEPS)) -> dict[str, Any]:
    """Measure steps/s of MuJoCo's tasks, random actions: 16 environments through the ops, bare MuJoCo, and peers.

    "bare" is mj_step (with mj_rnePostConstraint where the task needs it) of the same library on as many threads,
    replaying the same actions and resets; "pool" is our pool without TensorFlow, likewise. Both end in the
    same states as the ops.
    """
    results: dict[str, Any] = {}
    columns = "task", "ops", "bare", "ops / bare", "pool / bare", "EnvPool", "EnvPool async", "AsyncVectorEnv"
    table = Table(*columns, title="MuJoCo, steps/s")
    for task in tasks:
        found = _rates(task, STEPS[task], seconds, rounds, threads)
        row = {name: statistics.median(values) for name, values in found.items()}
        row |= {f"ratio_{name}": median_ratio(found["ours"], found[name]) for name in ("bare", *PEERS)}
        row["pool_of_bare"] = median_ratio(found["pool"], found["bare"])
        results[task] = {**row, "rounds": found}
        of_bare = f"{row['ratio_bare']:.3f} {_spread(found['ours'], found['bare'])}"
        cells = [f"{row['ours']:,.0f}", f"{row['bare']:,.0f}", of_bare, f"{row['pool_of_bare']:.3f}"]
        table.add_row(task, *cells, *(f"{row[name]:,.0f} ({row[f'ratio_{name}']:.2f} x)" for name in PEERS))
    _console.print(table)
    _console.print("in brackets: the lowest and the highest ratio of a round; for peers, the ops relative to them")
    return results


def _spread(ours: Sequence[float], theirs: Sequence[float]) -> str:
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"({min(ratios):.2f}-{max(ratios):.2f})"


def _rates(task: str, steps: int, seconds: float, rounds: int, threads: int) -> dict[str, list[float]]:
    """Return steps/s in each round of the ops, of bare MuJoCo and the pool, and of the peers."""
    slots = max(1, _SLOTS // threads)
    with ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "actions"
        model = model_path(TASKS[task]().xml_file)
        bare = stack.enter_context(native_program("mujoco_bench", task, model, threads, slots, steps, file))
        own = stack.enter_context(ours("replay", name=task, actions=str(file), slots=slots, threads=threads))
        others = {
            name: stack.enter_context(peer("mujoco_stepping.py", name, f"{task}-v5", threads * slots, threads))
            for name in PEERS
        }
        last: dict[str, Any] = {}

        def measure_bare() -> float:
            last.update(bare.measure(2 * seconds))  # half of it is the pool's
            return last["bare_steps_per_s"]

        def measure_ours() -> float:
            measured = own.measure(seconds)
            if measured["last_observations"] != last["last_observations"]:
                raise RuntimeError(f"the ops and bare MuJoCo have not played the same {task}: {measured}, {last}")
            return measured["steps_per_s"]

        measurements = {"bare": measure_bare, "ours": measure_ours, "pool": lambda: last["pool_steps_per_s"]}
        for name, other in others.items():
            measurements[name] = lambda other=other: other.measure(seconds)["steps_per_s"]
        return in_turns(measurements, rounds)
