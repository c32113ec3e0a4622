"""Pools of Gymnasium's environments for tests, and the worker processes behind them."""

from __future__ import annotations

import gc
import os
import time
from functools import cache
from pathlib import Path

import pytest

from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool

TOYS = "tests.support.gymnasium_toys:"


def pool_of(name: str, slots: int = 1, workers: int = 1, timeout: float = 100.0, retries: int = 0, **kwargs) -> EnvPool:
    options = {"workers": workers, "timeout": timeout, "retries": retries, "kwargs": kwargs}
    return EnvPool(registry.resolve(f"gymnasium:{name}", options), slots)


def children(of: int | None = None) -> set[int]:
    """Return the process ids of the children of a process, by default this one."""
    tasks = Path(f"/proc/{of or os.getpid()}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def gone(processes: set[int], seconds: float = 10) -> bool:
    """Return whether all processes end in time without becoming zombies of this process."""
    end = time.monotonic() + seconds
    while any(Path(f"/proc/{process}").exists() for process in processes) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(Path(f"/proc/{process}").exists() for process in processes)


@cache
def _freeze_what_others_left(module: str) -> None:
    """Freeze existing objects once per test file, so that garbage collections skip objects of other files."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_left_behind(request):
    """Check that a pool's processes end with the pool."""
    _freeze_what_others_left(request.module.__name__)
    before = children()
    yield
    gc.collect()
    assert gone(children() - before)
