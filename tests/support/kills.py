"""Kill runs of each kind and a sweep repeatedly, and compare all files with those of uninterrupted runs.

    python -m tests.support.kills --kills 200 [--kind KIND ...] [--seed S]

Two kinds are tested concurrently, one per core, by kill_resume.py and kill_sweep.py, which define the moments and the
comparison. Prints a line for each kind; exits with 1 if anything failed or differed, and keeps those folders.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.support.runs import config

ROOT = Path(__file__).parents[2]
MOST_PER_KILL = 3  # generations between two kills of a run
_SHORT = {"max_episode_steps": 16, "test_episodes": 0, "validation_episodes": 2}
_GA = {"name": "ga", "population": 8, "parents": 3, "sigma": 0.01, "validation_candidates": 2}
_GAME: dict[str, Any] = {"env": {"name": "riverraid"}, "training": _SHORT}
_MAZE: dict[str, Any] = {
    "env": {"name": "HardMaze-v0"},
    "network": {"name": "mlp", "hidden": [6]},
    "training": {**_SHORT, "test_episodes": 2},
}
KINDS: dict[str, dict[str, Any]] = {  # for tests.support.runs.config()
    "ga int8": {**_GAME, "network": {"name": "model", "dtype": "int8"}, "algorithm": _GA},
    "es vbn": {**_GAME, "network": {"name": "virtual_bn"}, "algorithm": {"name": "es", "population": 8}},
    "ns_es": {**_MAZE, "algorithm": {"name": "ns_es", "population": 8, "centers": 2, "k": 3}},
    "cma_es": {**_MAZE, "algorithm": {"name": "experiments.examples.cma_es:CMAES", "population": 8}},
    "workers": {  # processes that play for the run
        "env": {"name": "gymnasium:Pendulum-v1", "options": {"workers": 2}},
        "network": {"name": "mlp", "hidden": [6], "normalize_observations": True},
        "training": {**_SHORT, "test_episodes": 2},
        "algorithm": _GA,
    },
}
SWEEP = "sweep"
GENERATIONS_OF_A_SWEEP = 20


def write_config(folder: Path, kind: str, kills: int) -> Path:
    """The configuration of a kind, whose run is long enough for so many kills."""
    changes = KINDS[kind]
    training = {**changes["training"], "generations": MOST_PER_KILL * kills + 5}
    more = {"hardware": {"threads": 1}, "checkpoints": {"keep_last": 2, "keep_every": 25}}
    file = folder / "config.toml"
    file.write_text(
        config(**{**changes, **more, "training": training, "logging": {"trackers": ["tensorboard"]}}).toml()
    )
    return file


def write_sweep(folder: Path) -> Path:
    """Write a grid of two configurations and two seeds, with two concurrent trials."""
    for name, algorithm in (("ga", _GA), ("es", {"name": "es", "population": 8})):
        training = {**_MAZE["training"], "generations": GENERATIONS_OF_A_SWEEP}
        made = config(**{**_MAZE, "training": training, "algorithm": algorithm, "hardware": {"threads": 1}})
        (folder / f"{name}.toml").write_text(made.toml())
    file = folder / "sweep.toml"
    file.write_text('[sweep]\nconfigs = ["ga.toml", "es.toml"]\nseeds = 2\nparallel = 2\n')
    return file


def start(folder: Path, kind: str, kills: int, seed: int) -> subprocess.Popen[str]:
    """A process that kills runs of this kind, or sweeps, in a new folder, and prints what it found."""
    folder.mkdir()
    if kind == SWEEP:
        command = ["-m", "tests.support.kill_sweep", write_sweep(folder)]
    else:
        command = ["-m", "tests.support.kill_resume", write_config(folder, kind, kills)]
    options = ["--kills", str(kills), "--seed", str(seed), "--out", folder / "runs"]
    variables = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}  # a separate key, which signs data of cma_es
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *command, *options], cwd=ROOT, env=variables, stdout=pipe, stderr=pipe, text=True
    )


def shares(kills: int, kinds: list[str]) -> dict[str, int]:
    """Divide the kills among the kinds."""
    return {kind: kills // len(kinds) + (place < kills % len(kinds)) for place, kind in enumerate(kinds)}


def kill_all(folder: Path, counts: dict[str, int], seed: int = 0) -> dict[str, dict[str, Any]]:
    """What the processes of start() found, by kind: what they printed, or `failed`, the end of their standard error."""
    started: list[subprocess.Popen[str]] = []

    def found(kind: str) -> dict[str, Any]:
        process = start(folder / kind.replace(" ", "_"), kind, counts[kind], seed)
        started.append(process)
        stdout, stderr = process.communicate()
        return json.loads(stdout) if stdout else {"failed": stderr.strip().splitlines()[-5:]}

    with ThreadPoolExecutor(2) as pool:
        try:
            return dict(zip(counts, pool.map(found, counts), strict=True))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.kill()


def main(
    kills: Annotated[int, typer.Option(min=1, help="In all.")] = 200,
    kind: Annotated[list[str] | None, typer.Option(help="One of the kinds; all if not given.")] = None,
    seed: int = 0,
) -> None:
    """Kills, compares, and prints a line for each kind."""
    counts = shares(kills, kind or [SWEEP, *KINDS])
    folder, failed = Path(tempfile.mkdtemp(prefix="neuroevo-kills-")), False
    for each, told in kill_all(folder, counts, seed).items():
        good = told.get("different") == []
        failed |= not good
        print(
            f"{each}: {counts[each]} kills, {'every file equal' if good else 'FAILED'}: {json.dumps(told)}", flush=True
        )
    if failed:
        print(f"the folders are in {folder}")
        raise typer.Exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    typer.run(main)
