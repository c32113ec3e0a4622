"""Kills a suite with SIGKILL again and again, starts it again each time, and compares it with one that was left alone.

    python -m tests.support.kill_suite SUITE --kills 20 [--seed S]

Each kill is of one of three kinds: of the suite's process, whose runs then end by themselves; of a run's process, while
the suite goes on with the others; or of all of them at once. A fifth of them come in the suite's first second, the
others at a random moment soon after its runs have finished up to MOST more generations. When a suite is finished
before the last kill, another one is begun in a folder of its own; the last one runs to its end. All are compared, as
run_files.py says.
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
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from neuroevo.runs.database import DATABASE
from tests.support import orphans
from tests.support.kill_resume import ROOT, watched
from tests.support.run_files import differences, suite_contents
from tests.support.runs import count_rows

KINDS = ("suite", "run", "all")
MOST = 10  # generations between two kills


def kill_and_start_again(suite: Path, out: Path, kills: int, seed: int = 0) -> tuple[Counter[str], list[Path]]:
    """Runs the suite into out/"whole", and into out/"killed0", ..., which are killed `kills` times together.

    Returns how many kills were of which kind, and the folders. AssertionError: a suite failed, or left something.
    """
    rng, counts, folders = random.Random(seed), Counter[str](), [out / "killed0"]
    _end(_start(suite, out / "whole"), 0)
    while counts.total() < kills:
        before, process = _generations(folders[-1]), _start(suite, folders[-1])
        early = rng.random() < 0.2
        if not early:
            _wait_for(folders[-1], before + rng.randint(1, MOST), process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, 1 if early else 0.05))
        if process.poll() is not None:
            _end(process, 0, 1)  # 1: of its runs one was killed, which it goes on with when it is started again
            folders += [out / f"killed{len(folders)}"] if process.returncode == 0 else []
            continue
        kind, runs = rng.choice(KINDS), _runs(process)
        if kind == "run" and not runs:
            kind = "suite"
        for number in rng.sample(runs, 1) if kind == "run" else runs if kind == "all" else []:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(number, signal.SIGKILL)
        counts[kind] += 1
        if kind == "run":
            _end(process, 0, 1)
            folders += [out / f"killed{len(folders)}"] if process.returncode == 0 else []
        else:
            process.kill()
            _end(process, -9)
    _end(_start(suite, folders[-1]), 0)
    return counts, folders


def _start(suite: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "neuroevo", "suite", str(suite), "--out", str(out)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str], *expected: int) -> None:
    """Waits for the process, then for those that it leaves. AssertionError: it ends with another code."""
    stderr = process.communicate()[1]
    assert process.returncode in expected, f"{process.returncode} {stderr}"
    assert process.returncode == 1 or stderr == "", stderr
    orphans.expect_none()


def _generations(out: Path) -> int:
    """How many the suite's runs have finished together."""
    return sum(count_rows(each.parent) for each in out.rglob(DATABASE))


def _wait_for(out: Path, generations: int, process: subprocess.Popen[str]) -> None:
    """Waits until the suite's runs have so many, or its process has ended."""
    while _generations(out) < generations and process.poll() is None:
        time.sleep(0.01)


def _runs(process: subprocess.Popen[str]) -> list[int]:
    """Ids of the processes of its runs."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    return []


def main(
    suite: Path,
    kills: Annotated[int, typer.Option(min=1)] = 20,
    seed: int = 0,
    out: Annotated[Path | None, typer.Option(help="Keep the suites there.")] = None,
) -> None:
    """Prints how many kills were of which kind, and which files differ, as one line of JSON."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        with watched(folder):
            counts, folders = kill_and_start_again(suite, folder, kills, seed)
        whole = suite_contents(folder / "whole")
        different = {each.name: differences(suite_contents(each), whole) for each in folders}
        found = {"kills": counts, "suites": len(folders), "files": len(whole)}
        print(json.dumps({**found, "different": [f"{name}/{file}" for name in different for file in different[name]]}))
        raise typer.Exit(int(any(different.values())))


if __name__ == "__main__":
    typer.run(main)
