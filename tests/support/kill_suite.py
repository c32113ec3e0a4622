"""Kills a suite with SIGKILL again and again, starts it again each time, and compares it with one that was left alone.

    python -m tests.support.kill_suite SUITE --kills 20 [--seed S]

Each kill is of one of three kinds: of the suite's process, whose runs then end by themselves; of a run's process, while
the suite goes on with the others; or of all of them at once. It comes while the suite starts, or later, at a random
moment of a sixth of the time that the suite takes. When the suite is finished before the last kill, its folder is
compared and another one is begun; the last one runs to its end. What is compared is in run_files.py.
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

from tests.support import orphans
from tests.support.kill_resume import ROOT, watched
from tests.support.run_files import differences, suite_contents

KINDS = ("suite", "run", "all")


def kill_and_start_again(suite: Path, out: Path, kills: int, seed: int = 0) -> tuple[Counter[str], list[Path]]:
    """Runs the suite into out/"whole", and into out/"killed0", ..., which are killed `kills` times together.

    Returns how many kills were of which kind, and the folders. AssertionError: a suite failed, or left something.
    """
    rng, counts = random.Random(seed), Counter[str]()
    began = time.monotonic()
    _end(_start(suite, out / "whole"), 0)
    took, folders = time.monotonic() - began, [out / "killed0"]
    while counts.total() < kills:
        process = _start(suite, folders[-1])
        if _wait(process, rng.uniform(0, took / 6), until_runs=rng.random() < 0.8):
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


def _wait(process: subprocess.Popen[str], seconds: float, until_runs: bool) -> bool:
    """Waits for so long, counted from when there are runs if that is wanted. Whether the process has ended."""
    while until_runs and process.poll() is None and not _runs(process):
        time.sleep(0.005)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


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
