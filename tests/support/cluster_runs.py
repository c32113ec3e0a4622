"""Runs in separate processes, on this machine or on a simulated cluster. Importing this module requires Ray."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import neuroevo
from neuroevo.runs.database import DATABASE
from tests.support.databases import query
from tests.support.runs import config, results
from tests.support.separate_machines import Machine

pytest.importorskip("ray", reason="Ray is not installed")
ROOT = Path(__file__).parents[2]
SECONDS = 300  # time limit of a run; no run takes a quarter of it


def start(
    path: Path,
    changes: dict[str, Any],
    address: str | None = None,
    resume: bool = False,
    machine: Machine | None = None,
) -> subprocess.Popen[str]:
    """Start `neuroevo train` with a changed configuration of tests.support.runs."""
    file = path.with_suffix(".toml")
    file.write_text(config(**changes).toml())
    command = [sys.executable, "-m", "neuroevo", "train", str(file), "--resume" if resume else "--out", str(path)]
    command += [] if address is None else ["--cluster", address, "--set", "cluster.hedge=3.0"]
    output: dict[str, Any] = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if machine is not None:
        return machine.start(*command, **output)
    return subprocess.Popen(command, cwd=ROOT, text=True, **output)


def wait_until(what: Callable[[], object], process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Wait until what() is true while the run continues; no test needs half of the time limit."""
    deadline = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a run, which must succeed, and return its output."""
    try:
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, output
    return output


def count_episodes(path: Path) -> int:
    """Return the number of episodes' outcomes in a run's database that no state contains yet; 0 before it exists."""
    return query(path, "SELECT count(*) FROM episodes")[0][0] if (path / DATABASE).exists() else 0


def train(path: Path, changes: dict[str, Any], address: str | None = None) -> dict[str, Any]:
    """Train on the cluster or in this process, and return the results without clocks."""
    if address is None:
        neuroevo.train(config(**changes), out=path)
    else:
        finish(start(path, changes, address))
    return results(path)
