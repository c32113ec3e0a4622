"""Kills a run with SIGKILL again and again, resumes it each time, and compares it with a run that was left alone.

    python -m tests.support.kill_resume CONFIG --kills 50 [--within SECONDS] [--seed S] [--set KEY=VALUE ...]

A fifth of the kills come at a random moment of a process's first 3 seconds, in which it starts; the others at a random
moment `within` so many seconds after that, in its generations and the files that it writes between them; by default the
time in which the run that is left alone plays three.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from neuroevo.runs.paths import METRICS
from tests.support.runs import read_rows, results

ROOT = Path(__file__).parents[2]


def kill_and_resume(
    config: Path, out: Path, kills: int, seed: int = 0, overrides: tuple[str, ...] = (), within: float | None = None
) -> list[int]:
    """Trains into out/"whole", and into out/"killed", which is killed `kills` times; both to their end.

    Returns the number of lines of metrics.jsonl at each kill. AssertionError: a process ended in another way, by
    finishing the run before the last kill, for example.
    """
    rng = random.Random(seed)
    killed, whole = out / "killed", out / "whole"
    settings = [argument for override in overrides for argument in ("--set", override)]
    _train_to_the_end(config, whole, settings)
    if within is None:
        rows = read_rows(whole)
        within = 3 * rows[-1]["seconds_total"] / len(rows)
    lines = []
    while len(lines) < kills:
        process = _train(config, killed, settings)
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0, 3))
        else:
            _wait_until_it_plays(process)
            time.sleep(rng.uniform(0, within))
        process.kill()
        stderr = process.communicate()[1]
        assert process.returncode == -9, f"ended before kill {len(lines)}: {process.returncode} {stderr}"
        lines.append((killed / METRICS).read_bytes().count(b"\n") if (killed / METRICS).exists() else 0)
    _train_to_the_end(config, killed, settings)
    return lines


def _train_to_the_end(config: Path, path: Path, settings: list[str]) -> None:
    process = _train(config, path, settings)
    stderr = process.communicate()[1]
    assert process.returncode == 0, stderr


def _train(config: Path, path: Path, settings: list[str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "neuroevo", "train", str(config), "--resume", str(path), *settings]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait_until_it_plays(process: subprocess.Popen) -> None:
    """Waits for the first line, which comes when the libraries are loaded and the folder is open."""
    assert process.stdout.readline(), process.stderr.read()


def main(
    config: Path,
    kills: Annotated[int, typer.Option(min=1)] = 50,
    within: float | None = None,
    seed: int = 0,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE")] = None,
) -> None:
    """Prints how far each kill came, and whether the two runs are equal."""
    with tempfile.TemporaryDirectory() as out:
        lines = kill_and_resume(config, Path(out), kills, seed, tuple(overrides or ()), within)
        one, other = results(Path(out) / "killed"), results(Path(out) / "whole")
        print(f"finished generations at each of the {kills} kills: {lines}")
        print(f"{len(one['rows'])} generations; {'equal' if one == other else 'DIFFERENT'}")
        raise typer.Exit(int(one != other))


if __name__ == "__main__":
    typer.run(main)
