"""`make bench`: measure this machine's limits, peers and neuroevo in turns; report medians and ratios over rounds.

    python -m experiments.benchmarks [--only SECTION] [--task TASK] [--game GAME] [--envs N] [--seconds S]
        [--rounds N] [--threads T] [--json FILE]

Sections: limits, emulator, env, vector, mujoco, forward, rollout, recurrent, low_rank, updates, changes, layout,
engines, generation, memory, cluster, accelerated. The peers (EnvPool, ale-py's vector environment, Gymnasium,
PyTorch) are installed in build/peers by `make bench`; evosax is part of the package's extra `compare`. Close other
programs, because they distort individual rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from experiments.benchmarks.emulator import GAMES
from experiments.benchmarks.mujoco import STEPS, mujoco
from experiments.benchmarks.programs import PEERS_PYTHON, ROOT
from experiments.benchmarks.sections import SECTIONS, env
from experiments.benchmarks.vector import vector
from neuroevo.cli.common import finite
from neuroevo.system.processes import usable_cores

_FEW_GAMES = ("frostbite", "breakout", "pong", "seaquest")
_WITH_PEERS = ("env", "vector", "mujoco", "rollout", "recurrent", "low_rank")


def bench(
    only: Annotated[list[str] | None, typer.Option(help="Sections to run [default: all].")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Tasks of the section mujoco [default: all].")] = None,
    game: Annotated[
        list[str] | None,
        typer.Option(help=f"Games of env and vector, 'all' for those of emulator [default: {', '.join(_FEW_GAMES)}]."),
    ] = None,
    envs: Annotated[int | None, typer.Option(min=1, help="Environments [default: env 16, vector 64].")] = None,
    seconds: Annotated[float, typer.Option(min=0.2, callback=finite, help="Wall time of each measurement.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds of measurements.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of everybody.")] = usable_cores(),
    json_file: Annotated[Path | None, typer.Option("--json", help="File for all numbers.")] = None,
) -> None:
    """Measure neuroevo, peers and the machine's limits."""
    names = only or list(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            raise typer.BadParameter(f"section '{name}' is unknown, expected one of {', '.join(SECTIONS)}")
    for name in task or []:
        if name not in STEPS:
            raise typer.BadParameter(f"task '{name}' is unknown, expected one of {', '.join(STEPS)}")
    games = GAMES if game == ["all"] else tuple(game or _FEW_GAMES)
    sections = SECTIONS | {
        "mujoco": partial(mujoco, tasks=task or tuple(STEPS)),
        "env": partial(env, games=games, envs=envs or 16),
        "vector": partial(vector, games=games, envs=envs or 64),
    }
    if set(names) & set(_WITH_PEERS) and not PEERS_PYTHON.exists():
        sys.exit(f"there is no {PEERS_PYTHON}: `make bench` installs the peers")
    results = {"machine": _machine(), "seconds": seconds, "rounds": rounds, "threads": threads}
    for name in names:
        print(f"\n{name}: {SECTIONS[name].__doc__.strip()}\n", flush=True)
        results[name] = sections[name](seconds, rounds, threads)
        if json_file is not None:
            json_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _machine() -> dict[str, object]:
    """Return properties of this machine and the software that affect the numbers."""
    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return {
        "cpu": models[0] if models else "unknown",
        "cores": os.cpu_count(),
        "commit": commit.stdout.strip(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_before": os.getloadavg()[0],
    }


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(bench)
    app()
