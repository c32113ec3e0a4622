"""Kill a sweep repeatedly with SIGKILL, restart it each time, and compare it with an uninterrupted sweep.

    python -m tests.support.kill_sweep FILE --kills 20 [--seed S] [--toys]

Each kill is of one of three kinds: of the sweep's process, whose trials then end by themselves; of a trial's process,
which the sweep starts again; or of all of them at once. A fifth of them come in the sweep's first second, the others at
a random moment soon after its trials have finished up to MOST more generations. When a sweep is finished before the
last kill, another one is begun in a folder of its own; the last one runs to its end. No trial begins from scratch that
had a state. All are compared, as run_files.py says.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from neuroevo.runs.database import DATABASE
from tests.support import orphans
from tests.support.databases import info_of
from tests.support.kill_resume import ROOT, watched
from tests.support.run_files import differences, sweep_contents
from tests.support.runs import count_rows

COMMAND = (sys.executable, "-m", "neuroevo")
TOYS = (sys.executable, "-m", "tests.support.toy_sweep")
KINDS = ("sweep", "trial", "all")
MOST = 10  # generations between two kills


def kill_and_start_again(
    file: Path, out: Path, kills: int, seed: int = 0, command: Sequence[str] = COMMAND
) -> tuple[Counter[str], list[Path]]:
    """Runs the sweep into out/"whole", and into out/"killed0", ..., which are killed `kills` times together.

    Returns how many kills were of which kind, and the folders. AssertionError: a sweep failed, left something, or
    had a trial begin from scratch.
    """
    rng, counts, folders = random.Random(seed), Counter[str](), [out / "killed0"]
    begun: dict[Path, object] = {}
    _end(_start(command, file, out / "whole"), 0)
    while counts.total() < kills:
        _check_begun(folders[-1], begun)
        before, process = _generations(folders[-1]), _start(command, file, folders[-1])
        early = rng.random() < 0.2
        if not early:
            _wait_for(folders[-1], before + rng.randint(1, MOST), process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, 1 if early else 0.05))
        if process.poll() is not None:
            _end(process, 0, 1)  # 1: a trial was killed too often; it resumes with the sweep
            folders += [out / f"killed{len(folders)}"] if process.returncode == 0 else []
            continue
        kind, trials = rng.choice(KINDS), _trials(process)
        if kind == "trial" and not trials:
            kind = "sweep"
        for number in rng.sample(trials, 1) if kind == "trial" else trials if kind == "all" else []:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(number, signal.SIGKILL)
        counts[kind] += 1
        if kind == "trial":
            _end(process, 0, 1)
            folders += [out / f"killed{len(folders)}"] if process.returncode == 0 else []
        else:
            process.kill()
            _end(process, -9)
    _check_begun(folders[-1], begun)
    _end(_start(command, file, folders[-1]), 0)
    _check_begun(folders[-1], begun)
    return counts, folders


def _check_begun(out: Path, begun: dict[Path, object]) -> None:
    """Add when each run has begun. AssertionError: one has begun another time than before."""
    now = {each.parent: info_of(each.parent)["started"] for each in out.rglob(DATABASE)}
    again = [str(each) for each, started in begun.items() if out in each.parents and now.get(each) != started]
    assert not again, f"begun from scratch: {again}"
    begun |= now


def _start(command: Sequence[str], file: Path, out: Path) -> subprocess.Popen[str]:
    words = [*command, "sweep", str(file), "--out", str(out)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str], *expected: int) -> None:
    """Waits for the process, then for those that it leaves. AssertionError: it ends with another code."""
    stderr = process.communicate()[1]
    assert process.returncode in expected, f"{process.returncode} {stderr}"
    assert process.returncode == 1 or stderr == "", stderr
    orphans.expect_none()


def _generations(out: Path) -> int:
    """How many the sweep's trials have finished together."""
    return sum(count_rows(each.parent) for each in out.rglob(DATABASE))


def _wait_for(out: Path, generations: int, process: subprocess.Popen[str]) -> None:
    """Waits until the sweep's trials have so many, or its process has ended."""
    while _generations(out) < generations and process.poll() is None:
        time.sleep(0.05)  # it opens every database


def _trials(process: subprocess.Popen[str]) -> list[int]:
    """Ids of the processes of its trials."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    return []


def main(
    file: Path,
    kills: Annotated[int, typer.Option(min=1)] = 20,
    seed: int = 0,
    out: Annotated[Path | None, typer.Option(help="Keep the sweeps there.")] = None,
    toys: Annotated[bool, typer.Option("--toys", help="Have trials play by ToyEvaluators.")] = False,
) -> None:
    """Prints how many kills were of which kind, and which files differ, as one line of JSON."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        with watched(folder):
            counts, folders = kill_and_start_again(file, folder, kills, seed, TOYS if toys else COMMAND)
        whole = sweep_contents(folder / "whole")
        different = {each.name: differences(sweep_contents(each), whole) for each in folders}
        found = {"kills": counts, "sweeps": len(folders), "files": len(whole)}
        print(json.dumps({**found, "different": [f"{name}/{file}" for name in different for file in different[name]]}))
        raise typer.Exit(int(any(different.values())))


if __name__ == "__main__":
    typer.run(main)
